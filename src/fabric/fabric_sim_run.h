/* The ranks of a simulation. Inside of fabric_sim*.c only. */
#ifndef WEFT_FABRIC_SIM_RUN_H
#define WEFT_FABRIC_SIM_RUN_H

#include "fabric_sim_net.h"

struct sim_rank {
	/* What it sends. */
	/* In the network's pool; the n-th of the message is at n mod FABRIC_SIM_PARTS_MAX. */
	uint32_t part[FABRIC_SIM_PARTS_MAX];
	uint32_t parts;   /* of this stage's message, so far */
	uint32_t numbers; /* those of no bytes, too */
	uint32_t posted;  /* so many of them the host knows of */
	/* Those of them that are not yet on the wire as a whole; the others may have arrived, and
	 * their place in the pool is another's. */
	uint32_t live[FABRIC_SIM_PARTS_MAX];
	uint32_t n_live;
	uint32_t turn;  /* which of these has the next packet */
	uint32_t stage; /* FABRIC_NONE: not begun; the number of stages: at the end */
	bool busy;      /* the host is sending a packet */
	/* What has not arrived yet, of what it sends and what is sent to it in this stage. */
	uint32_t sends, receives;
	uint32_t to; /* EXCHANGE: the receiver */
	/* EXCHANGE: who waits for this rank to come to their stage, and who waits behind it. */
	uint32_t waiters, next_waiter;
	/* What it receives. */
	struct sim_queue drain;
	bool draining;
};

struct sim {
	struct sim_net net;
	const struct fabric_sim_traffic *traffic;
	struct fabric_sim_result *result;
	struct sim_rank *ranks;
	uint32_t at_end;       /* ranks that have no more to send */
	uint64_t under_way;    /* parts that have not arrived */
	uint64_t stages_begun; /* by all ranks together */
	uint32_t stage;        /* in step: of all */
	uint64_t stage_began;
	int error;
	char *why;
	size_t why_size;
};

/* 0, or -EINVAL, -E2BIG, -ENOMEM with one sentence in why. */
int sim_check(const struct fabric_routes *routes, const struct fabric_sim_config *c,
	      const struct fabric_sim_traffic *tr, char *why, size_t why_size);

/* Hosts: fabric_sim_host.c. */

/* The parts of the rank's message, which are in place, are posted. */
void sim_host_post(struct sim *s, uint32_t rank);
/* There are more of them than `before`, when they were the last time. */
void sim_host_more(struct sim *s, uint32_t rank, uint32_t before);
void sim_host_posted(struct sim *s, uint32_t rank);
void sim_host_ready(struct sim *s, uint32_t rank);
void sim_host_credit(struct sim *s, uint32_t rank);
void sim_host_arrives(struct sim *s, uint32_t rank, uint32_t packet);
void sim_host_drained(struct sim *s, uint32_t rank);

/* Progress: fabric_sim_rank.c. */

void sim_rank_begins(struct sim *s, uint32_t rank);
/* In step: all begin the next stage, if nothing of this one is under way. */
void sim_step_next(struct sim *s);
void sim_rank_on_wire(struct sim *s, uint32_t rank);
void sim_rank_arrived(struct sim *s, const struct sim_part *part);

#endif
