/* What peers cost, by connection or by datagram.
 *
 * RC: one process with N queue pairs, each to a queue pair of its own in the other process.
 * RD: the client has one queue pair for all, and the server N, each of them a peer.
 *
 * A receive per peer, 64-byte buffers, one CQ (and the client's RD queue pair) made
 * beforehand: what grows is the stack's and not the program's. */
#ifndef WEFT_BENCH_PEERS_H
#define WEFT_BENCH_PEERS_H

#include "bench_kind.h"
#include "bench_opts.h"

struct bench_peers;

int bench_peers_run(struct bench_env *env, const struct bench_opts *opts);

/* Server: *peers is made with the first message. */
int bench_peers_serve(struct bench_env *env, struct bench_peers **peers,
		      const struct bench_msg *msg);
void bench_peers_free(struct bench_peers *peers);

/* The parts that both sides share (bench_peers.c), for the client's table. */
struct bench_peers *bench_peers_make(struct bench_env *env, unsigned int max, bool rd);
int bench_peers_grow(struct bench_peers *p, unsigned int n); /* to n in all */
int bench_peers_touch(struct bench_peers *p);                /* a message there and back */

#endif
