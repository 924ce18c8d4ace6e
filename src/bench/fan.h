/* What weft-verbs-perf measures with: node 0 and its n peers.
 *
 * Node 0 (the root) is the process that the user started. The peers live in one or more other
 * processes, each with as many of their queue pairs as it was asked for: where there are fewer
 * cores than peers, n processes would measure the scheduler. A node is one process's part for one
 * transport type: one CQ, one registered buffer, an end for each peer (the root) or for each of
 * the peers that it plays (the others).
 *
 * The buffer is cut into slots of the same length on both sides: a head of 64 bytes, where the
 * GRH of a UD message ends and where marks stand, and room for a message. Slot 0 is what the root
 * sends from; slot 1 + i belongs to peer i at the root, slot 1 + k to its k-th end at a peer,
 * which answers from where the message came in. One thread uses a node.
 */
#ifndef WEFT_BENCH_FAN_H
#define WEFT_BENCH_FAN_H

#include "bench_verbs.h"
#include "fan_round.h"
#include "fan_type.h"

#define FAN_PROTOCOL  "weft-fan 1"
#define FAN_MAX_N     1024 /* peers */
#define FAN_MAX_PROCS 128
#define FAN_MAX_SIZE  (16u << 20)
#define FAN_MAX_BYTES ((uint64_t)1 << 30) /* of one node's buffer */
#define FAN_MAX_TIMES ((uint64_t)1 << 22) /* that a peer keeps in one step */
#define FAN_HEAD      64
#define FAN_MARK      8 /* where in the head a mark stands */
#define FAN_SPARE     16
#define FAN_BATCH     16

enum fan_op {
	FAN_OP_OPEN = 64, /* kind: type; arg: ends here, first, stride, room, sleepy, group */
	FAN_OP_STEP,      /* arg: mode, size, ends in use, most rounds, nanoseconds (stream) */
	FAN_OP_CLOSE,
};

enum fan_mode {
	FAN_ECHO,   /* peers answer; those of one-sided types only keep their device going */
	FAN_STAGE2, /* peers read from the root, and keep how long each read took */
	FAN_STREAM, /* both sides send as fast as they can */
	FAN_MODES,
};

struct fan_end {
	struct ibv_qp *qp; /* the root of a datagram service has one for all */
	struct ibv_ah *ah;
	struct bench_addr addr; /* its vaddr: the message of our slot at the other side */
	uint64_t since;         /* stage 2: when the read was posted */
	uint64_t done;          /* stage 2: reads of this end */
	uint32_t seq;           /* root: the last message that was answered */
	unsigned int unsignalled, unposted, outstanding;
	char mark;   /* peer: the last one seen */
	bool member; /* peer: attached to the multicast group */
};

struct fan_node {
	struct bench_env *env;
	const struct fan_type *type;
	bool root, sleepy;
	unsigned int n;             /* ends */
	unsigned int first, stride; /* peer: its k-th end is peer first + k * stride */
	size_t room, slot, slots, len;
	unsigned int recvs; /* posted on each queue pair */
	size_t inline_max;
	struct ibv_comp_channel *channel; /* sleepy */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *shared;
	struct ibv_ah *group; /* multicast, root */
	union ibv_gid mgid;
	char *buf;
	struct fan_end *end;
	struct ibv_wc *wc; /* taken from the CQ and not looked at yet */
	unsigned int wc_room, wc_head, wc_tail;
	unsigned int unsignalled; /* shared */

	/* Of the step. */
	enum fan_mode mode;
	enum fan_notice notice;
	unsigned int active;
	size_t size;
	uint64_t deadline;
	bool refill; /* receives may have been used up */
};

struct fan_req {
	enum ibv_wr_opcode opcode;
	char *local;
	size_t len;
	uint64_t remote;
	uint32_t imm;
	bool signal;
	uint64_t id;
};

#define FAN_RECV   (1ull << 63) /* a receive's wr_id: that, and the slot */
#define FAN_OF(id) ((unsigned int)((id)&0xffff))

static inline char *fan_msg(const struct fan_node *node, unsigned int slot)
{
	return node->buf + slot * node->slot + FAN_HEAD;
}

/* fan_node.c: what both sides do. 0 or -errno. */
int fan_node_make(struct fan_node *node, struct bench_env *env, const struct fan_type *type,
		  unsigned int n, size_t room);
void fan_node_free(struct fan_node *node);
/* Swaps addresses of n ends, first, first + stride, ..., with the process at ctl, and connects. */
int fan_node_join(struct fan_node *node, struct bench_ctl *ctl, unsigned int first,
		  unsigned int stride, unsigned int n);
int fan_node_prepare(struct fan_node *node, enum fan_mode mode, size_t size, unsigned int active);
/* The longest message of this type on the device that is open. */
size_t fan_type_limit(const struct bench_env *env, const struct fan_type *type);

/* fan_post.c: requests and completions. */
int fan_post(struct fan_node *node, unsigned int end, const struct fan_req *req);
int fan_refill(struct fan_node *node, unsigned int slot); /* the slot's receive, once more */
int fan_refill_all(struct fan_node *node);                /* what unposted says */
/* 1: *wc is the next completion, which succeeded; 0: none; -EIO: one that did not. */
int fan_take(struct fan_node *node, struct ibv_wc *wc);
/* A write of the message, or in stage 2 of the mark alone, to the other side's slot; with
 * immediate data where that is how it is noticed. */
int fan_write(struct fan_node *node, unsigned int end, char *msg, uint32_t imm);
/* Where the byte is that a write changes last. */
char *fan_mark(const struct fan_node *node, char *msg);

/* fan_stream.c: sends round-robin on all ends for ns; *bytes: what completed in that time. */
int fan_stream(struct fan_node *node, uint64_t ns, uint64_t *bytes, uint64_t *msgs);

/* fan_peer.c: serves one root. *known: it was one, of this version. */
int fan_serve(struct bench_env *env, bool *known);

/* fan_root.c: the root's view of all peers. */
struct fan_root {
	struct bench_env env;
	struct bench_ctl ctl[FAN_MAX_PROCS];
	unsigned int procs, share[FAN_MAX_PROCS]; /* ends of each, of the type that is open */
	unsigned int opened;                      /* processes that know it */
	bool sleepy;
	struct fan_node node;
};

int fan_root_hello(struct fan_root *root);
int fan_root_open(struct fan_root *root, const struct fan_type *type, unsigned int n, size_t room);
void fan_root_close(struct fan_root *root);
void fan_root_bye(struct fan_root *root);

struct fan_step {
	enum fan_mode mode;
	size_t size;
	unsigned int n;
	size_t rounds;
	uint32_t seq0;
	uint64_t budget; /* nanoseconds; stream: how long */
};
/* Appends to t, which has room for step->rounds more. Stage 2: the trips are the peers' reads, and
 * a round the longest of them. */
int fan_root_step(struct fan_root *root, const struct fan_step *step, struct fan_times *t);
/* Bytes per second of both directions together. */
int fan_root_stream(struct fan_root *root, const struct fan_step *step, double *rate, double *msgs);
/* For those who post themselves: between these the peers echo. */
int fan_root_begin(struct fan_root *root, const struct fan_step *step);
/* The peers' counts of a stream are added to those; both may be NULL. */
int fan_root_finish(struct fan_root *root, uint64_t *bytes, uint64_t *msgs);
/* -errno when a peer has something to say where it should be silent. */
int fan_root_check(struct fan_root *root);

/* fan_root_ops.c: a round's device, whose argument is a struct fan_root. */
extern const struct fan_ops fan_root_ops;

#endif
