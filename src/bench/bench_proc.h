/* What this process holds: memory, descriptors, sockets and their kernel buffers. */
#ifndef WEFT_BENCH_PROC_H
#define WEFT_BENCH_PROC_H

#include <stddef.h>
#include <stdint.h>

/* All counts and bytes; sent over the control connection as it is, so only uint64_t. */
struct bench_holding {
	uint64_t rss, pss, private_dirty; /* /proc/self/smaps_rollup */
	uint64_t heap;                    /* in use according to malloc */
	uint64_t fds, socket_fds;         /* /proc/self/fd */
	uint64_t tcp, udp;                /* sockets of this process */
	uint64_t queued;         /* kernel memory charged to them: data queued and reserved */
	uint64_t rcvbuf, sndbuf; /* what they may grow to, in all */
	uint64_t ns_tcp, ns_udp; /* in use in the network namespace (sockstat) */
	uint64_t tcp_mem_pages;  /* TCP buffer pages, the whole machine (sockstat) */
};

void bench_holding_take(struct bench_holding *h);

/* Kernel objects behind one socket descriptor (sock, inode, dentry, file, epoll item):
 * bytes for a TCP socket according to /proc/slabinfo, 0 when that cannot be read. */
uint64_t bench_socket_objects(void);

/* bench_sockdiag.c: fills tcp, udp, queued, rcvbuf and sndbuf for the sockets with the
 * given inodes (ascending). Returns 0 or -errno. */
int bench_sockdiag(const uint32_t *inode, size_t n, struct bench_holding *h);

#endif
