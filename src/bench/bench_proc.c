#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_proc.h"

/* On the stack, so that counting sockets does not change the heap it reports. */
#define MAX_SOCKETS 16384

static void take_memory(struct bench_holding *h)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kb;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Rss: %llu", &kb) == 1)
			h->rss = kb << 10;
		else if (sscanf(line, "Pss: %llu", &kb) == 1)
			h->pss = kb << 10;
		else if (sscanf(line, "Private_Dirty: %llu", &kb) == 1)
			h->private_dirty = kb << 10;
	}
	if (f)
		fclose(f);
}

static void take_heap(struct bench_holding *h)
{
	struct mallinfo2 mi = mallinfo2();

	h->heap = mi.uordblks + mi.hblkhd;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void take_sockets(struct bench_holding *h)
{
	uint32_t inode[MAX_SOCKETS];
	size_t n = 0;
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");

	while (d && (e = readdir(d))) {
		char path[300], link[64];
		unsigned int number;
		ssize_t len;

		if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d))
			continue;
		h->fds++;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		if (len < 0)
			continue;
		link[len] = 0;
		if (sscanf(link, "socket:[%u]", &number) == 1 && n < MAX_SOCKETS)
			inode[n++] = number;
	}
	if (d)
		closedir(d);
	h->socket_fds = n;
	qsort(inode, n, sizeof(*inode), by_number);
	bench_sockdiag(inode, n, h);
}

static void take_sockstat(struct bench_holding *h)
{
	FILE *f = fopen("/proc/net/sockstat", "re");
	unsigned long long inuse, mem;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "TCP: inuse %llu orphan %*u tw %*u alloc %*u mem %llu", &inuse,
			   &mem) == 2) {
			h->ns_tcp = inuse;
			h->tcp_mem_pages = mem;
		} else if (sscanf(line, "UDP: inuse %llu", &inuse) == 1) {
			h->ns_udp = inuse;
		}
	}
	if (f)
		fclose(f);
}

void bench_holding_take(struct bench_holding *h)
{
	memset(h, 0, sizeof(*h));
	take_heap(h); /* before stdio takes its share */
	take_sockets(h);
	take_sockstat(h);
	take_memory(h);
}

uint64_t bench_socket_objects(void)
{
	static const char *const part[] = {"TCP", "sock_inode_cache", "dentry", "filp",
					   "eventpoll_epi"};
	FILE *f = fopen("/proc/slabinfo", "re");
	unsigned long long size;
	uint64_t sum = 0;
	char line[512], name[64];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %*u %*u %llu", name, &size) != 2)
			continue;
		for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
			if (!strcmp(name, part[i]))
				sum += size;
	}
	if (f)
		fclose(f);
	return sum;
}
