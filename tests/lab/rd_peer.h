/* What the RD programs of the lab's tests share: a queue pair with one buffer and one completion
 * queue, waiting that leaves the cores to others, and lines over TCP by which two processes find
 * each other. Whatever goes wrong ends the program with a sentence.
 */
#ifndef WEFT_TEST_RD_PEER_H
#define WEFT_TEST_RD_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "weft/weftdv.h"

#define RD_QKEY 0x1ab

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

struct rd_node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	uint8_t *buf;
	size_t len;
};

/* Up to RTS, with room for that many requests and receives. */
void rd_open(struct rd_node *n, size_t len, uint32_t sends, uint32_t recvs);
void rd_close(struct rd_node *n);
void rd_recv(struct rd_node *n, uint64_t wr_id, size_t off, uint32_t len);
/* The next completion, false when there is none. Failed ones end the program. */
bool rd_poll(struct rd_node *n, struct ibv_wc *wc);
/* n->chan->fd is readable: takes the event and asks for the next. Then poll until empty. */
void rd_event(struct rd_node *n);
/* Waits for it at most that long; false: in vain. */
bool rd_wait(struct rd_node *n, int ms);

/* Where a peer is, and its words for it: "GID QPN RKEY ADDRESS". */
struct rd_where {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t at;
};
#define RD_WHERE_LEN 128
void rd_where_print(const struct rd_node *n, char out[RD_WHERE_LEN]);
bool rd_where_parse(struct rd_where *w, const char *text);

struct ibv_ah *rd_ah(struct rd_node *n, const struct rd_where *to, uint32_t label);
/* From one of our own addresses, by its index, to one of the peer's. */
struct ibv_ah *rd_ah_from(struct rd_node *n, uint8_t own, const union ibv_gid *to, uint32_t label);
/* One request; for atomics, `add` is added and off receives the old value. */
void rd_post(struct rd_node *n, const struct rd_where *to, struct ibv_ah *ah, enum ibv_wr_opcode op,
	     uint64_t wr_id, uint32_t imm, size_t off, uint32_t len, size_t there);

/* ---- lines over TCP ---- */

int tcp_listen(uint16_t port);
int tcp_connect(const char *host, uint16_t port); /* tries for ten seconds */
void line_put(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Without its end; false: none came in that time, or the peer is gone. */
bool line_get(int fd, char *buf, size_t size, int ms);

#endif
