/* How fast two processes on two cores are through a link, both polling:
 *
 *	bench_shm [RING_KB [CORE CORE]]
 *
 * one word: the floor, a store that the other side sees and answers;
 * latency: half a round trip of 8 bytes, as it is and with a doorbell check after each
 * commit; rate: 8-byte records one way; bandwidth: records of 64 KB one way, copied in and
 * copied out; process_vm_readv: 1 MB out of the other process. Best and median of several
 * rounds: the best is what the machine can do, the median what it does with company.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shm_copy.h"
#include "shm_link.h"
#include "util_clock.h"

#ifndef SMALL
#define SMALL 8 /* bytes */
#endif
#define ROUNDS     9
#define PINGS      100000
#define RATE_COUNT 1000000
#define BULK_LEN   65536
#define BULK_COUNT 8000
#define COPY_LEN   (UINT32_C(1) << 20)
#define COPY_COUNT 300

static struct shm_link self;
static uint32_t ring_bytes;
static uint8_t *buf;
static struct {
	_Alignas(SHM_AREA_APART) _Atomic(uint32_t) v;
} * word;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void meet(struct shm_port *port, uint64_t name, bool child)
{
	int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ret;

	do
		ret = child ? shm_link_connect(&self, name, name + 1, ring_bytes, bell)
			    : shm_port_accept(port, bell, &self);
	while (ret == -EAGAIN);
	while (!ret)
		ret = shm_link_input(&self);
	if (ret < 0) {
		fprintf(stderr, "no link: %s\n", strerror(-ret));
		exit(1);
	}
}

static void put(const void *from, uint32_t len)
{
	void *p;

	while (!(p = shm_ring_reserve(&self.tx, len)))
		;
	memcpy(p, from, len);
	shm_ring_commit(&self.tx, len);
}

static void get(void *to)
{
	const void *p;
	uint32_t len;
	int ret;

	while (!(ret = shm_ring_peek(&self.rx, &p, &len)))
		;
	if (ret < 0)
		exit(1);
	memcpy(to, p, len);
	shm_ring_release(&self.rx);
}

/* Each returns nanoseconds per unit; `first` is the side that measures. */

/* What the machine takes to move a cache line, before anything is built on it: on a virtual
 * machine it changes by a factor of ten with where the hypervisor runs the two cores. */
static double floor_latency(bool first)
{
	uint64_t start = util_now_ns();

	for (uint32_t i = 1; i <= PINGS; i++) {
		if (first)
			atomic_store_explicit(&word[0].v, i, memory_order_release);
		while (atomic_load_explicit(&word[!first ? 0 : 1].v, memory_order_acquire) != i)
			;
		if (!first)
			atomic_store_explicit(&word[1].v, i, memory_order_release);
	}
	if (!first) {
		while (atomic_load(&word[0].v))
			;
		atomic_store(&word[1].v, 0);
	} else {
		start = util_now_ns() - start;
		atomic_store(&word[0].v, 0);
		while (atomic_load(&word[1].v))
			;
	}
	return (double)start / PINGS / 2;
}

static double latency(bool first, bool bell)
{
	uint8_t data[SMALL] = {0};
	uint64_t start = util_now_ns();

	for (int i = 0; i < PINGS; i++) {
		if (!first)
			get(data);
		put(data, sizeof(data));
		if (bell)
			shm_link_ring(&self);
		if (first)
			get(data);
	}
	return (double)(util_now_ns() - start) / PINGS / 2;
}

static double plain(bool first)
{
	return latency(first, false);
}

static double with_bell(bool first)
{
	return latency(first, true);
}

static double stream(bool first, uint32_t len, int count, bool bell)
{
	uint64_t start = util_now_ns();

	for (int i = 0; i < count; i++) {
		if (!first) {
			get(buf);
			continue;
		}
		put(buf, len);
		if (bell)
			shm_link_ring(&self);
	}
	/* The reader says when it has all of it. */
	if (first)
		get(buf);
	else
		put(buf, 8);
	return (double)(util_now_ns() - start) / count;
}

static double rate(bool first)
{
	return stream(first, SMALL, RATE_COUNT, false);
}

static double rate_bell(bool first)
{
	return stream(first, SMALL, RATE_COUNT, true);
}

static double bulk(bool first)
{
	return stream(first, BULK_LEN, BULK_COUNT, false);
}

static double vm_read(bool first)
{
	/* A fork shares addresses, so ours is the other's. */
	struct iovec l = {buf, COPY_LEN}, r = {buf + COPY_LEN, COPY_LEN};
	uint64_t start = util_now_ns(), data = 0;

	if (!first) {
		get(&data);
		return 0;
	}
	for (int i = 0; i < COPY_COUNT; i++) {
		if (shm_copy_from(self.pid, (struct shm_vec){&l, 1}, (struct shm_vec){&r, 1}))
			exit(1);
	}
	start = util_now_ns() - start;
	put(&data, sizeof(data));
	return (double)start / COPY_COUNT;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *what, double (*run)(bool first), bool first, double bytes)
{
	double ns[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ns[i] = run(first);
	if (!first)
		return;
	qsort(ns, ROUNDS, sizeof(ns[0]), ascending);
	printf("%-34s best %9.1f ns  median %9.1f ns", what, ns[0], ns[ROUNDS / 2]);
	if (bytes > 0)
		printf("  median %6.2f GB/s", bytes / ns[ROUNDS / 2]);
	printf("\n");
	fflush(stdout);
}

static void run(bool first)
{
	measure("one word, half round trip", floor_latency, first, 0);
	measure("8 bytes, half round trip", plain, first, 0);
	measure("  with doorbell check", with_bell, first, 0);
	measure("8 bytes, one way", rate, first, 0);
	measure("  with doorbell check", rate_bell, first, 0);
	measure("64 KB, one way", bulk, first, BULK_LEN);
	measure("process_vm_readv of 1 MB", vm_read, first, COPY_LEN);
}

int main(int argc, char **argv)
{
	int core[2] = {argc > 3 ? atoi(argv[2]) : 0, argc > 3 ? atoi(argv[3]) : 1};
	uint64_t name = (uint64_t)getpid() << 32;
	struct shm_port port;
	pid_t child;

	ring_bytes = (uint32_t)(argc > 1 ? atoi(argv[1]) : 4096) * 1024;
	buf = aligned_alloc(4096, 2 * (size_t)COPY_LEN);
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		die("mmap");
	if (!shm_ring_size_ok(ring_bytes) || BULK_LEN > shm_ring_max(ring_bytes)) {
		fprintf(stderr, "the ring must be a power of two, at least %d KB\n",
			4 * BULK_LEN / 1024);
		return 1;
	}
	if (!buf || shm_port_open(&port, name, 8))
		die("port");
	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	/* After the fork: memory of its own on either side. */
	memset(buf, child ? 1 : 2, 2 * (size_t)COPY_LEN);
	pin(core[!child]);
	meet(&port, name, !child);
	run(child != 0);
	shm_link_close(&self);
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	shm_port_close(&port);
	free(buf);
	return 0;
}
