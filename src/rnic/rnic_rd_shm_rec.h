/* Records in the rings of rnic_rd_shm.h, from one process to another of the same machine and
 * program version: native byte order. Private to the two files that read and write them. */
#ifndef WEFT_RNIC_RD_SHM_REC_H
#define WEFT_RNIC_RD_SHM_REC_H

#include "rnic_rd_shm.h"

enum rec_op {
	/* Requests; seq is their number. */
	REC_SEND = 1,
	REC_WRITE,
	REC_WRITE_IMM,
	REC_READ,
	REC_ADD,
	REC_SWAP,
	REC_VOID, /* a number that will have no contents */
	/* Responses; imm is the handle. */
	REC_DATA,
	REC_VALUE,
	REC_ERROR,
	/* About requests of the other side; seq is their number. */
	REC_ACK,
	REC_NAK, /* imm: enum wire_rd_reason, or 0: the sender's own memory is gone */
	REC_RNR, /* imm: code of the RNR timer */
	REC_READY,
	/* Once: where to find a word, what it is; and the answer, imm: it was found. */
	REC_WORD,
	REC_FOUND,
	REC_BYE,    /* the queue pair ends */
	REC_COPIED, /* imm: the grant of a response that is not needed any more */
};

enum rec_flag {
	REC_LAST = 1,   /* the last piece of its message */
	REC_DIRECT = 2, /* the body says where the data is */
	REC_IMM = 4,
	REC_SOLICITED = 8,
};

struct rec {
	uint8_t op, flags;
	uint16_t n; /* REC_DIRECT: pieces of memory in the body; else bytes to skip before the data
		     */
	uint32_t seq;
	uint32_t ack; /* requests of the other side that are executed */
	uint32_t imm;
	uint32_t len; /* of the whole message */
	uint32_t off; /* of this piece */
	uint8_t body[];
};

struct rec_target {
	uint64_t addr;
	uint32_t rkey, handle;
};

/* With REC_DIRECT: by which permission, and where the data is. */
struct rec_from {
	uint32_t grant, word;
	struct iovec iov[];
};

/* From here on it is cheaper to let the receiver fetch the data. */
#define REC_DIRECT_MIN 16384
/* ... in pieces of this size, so that others get their turn. */
#define REC_DIRECT_MAX (1u << 20)
/* Pieces of larger messages where the receiver cannot fetch. */
#define REC_PIECE 16384

static inline uint8_t rec_flags(const struct rnic_swqe *w)
{
	bool imm = w->opcode == IBV_WR_SEND_WITH_IMM || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	return (uint8_t)((imm ? REC_IMM : 0) | (w->flags & IBV_SEND_SOLICITED ? REC_SOLICITED : 0));
}

/* Tells the peer what it needs to find out whether it can fetch from our memory. */
void rnic_rd_shm_introduce(struct rnic_rd_shm *s);
/* Reads the ring. True: there was something. */
bool rnic_rd_shm_look(struct rnic_rd_shm *s);

#endif
