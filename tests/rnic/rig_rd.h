/* The rig's part for RD queue pairs: ends that name their peer with each request. */
#ifndef WEFT_RIG_RD_H
#define WEFT_RIG_RD_H

#include "rig.h"
#include "weft/weftdv.h"

struct rig_opts rd_defaults(void);

/* A way from an end to a peer: address handle, number, Q_Key, and where its memory is. */
struct way {
	struct end *from;
	struct ibv_ah *ah;
	struct rig_addr to;
	uint32_t qkey;
};

void way_make(struct way *w, struct end *from, const struct rig_addr *to, uint32_t label);
void way_free(struct way *w);

/* Posts one request with one element; offsets as in work_init. Checks that it was taken. */
void rd_post(struct way *w, enum ibv_wr_opcode op, uint64_t wr_id, size_t off, uint32_t len,
	     size_t to);
int rd_try(struct way *w, enum ibv_wr_opcode op, uint64_t wr_id, size_t off, uint32_t len,
	   size_t to);
/* A send from `off` after which the memory there is free again, kept at `keep`. */
void rd_send_keep(struct way *w, uint64_t wr_id, size_t off, uint32_t len, size_t keep);
void rd_add(struct way *w, uint64_t wr_id, size_t off, size_t to, uint64_t add);
void rd_cas(struct way *w, uint64_t wr_id, size_t off, size_t to, uint64_t compare, uint64_t swap);

struct weftdv_rd_stats rd_stats(const struct end *e);

/* Two ends of one process that know each other. */
struct rd_pair {
	struct rig rig;
	struct end a, b;
	struct way ab, ba;
};
void rd_pair_open(struct rd_pair *p, const struct rig_opts *oa, const struct rig_opts *ob);
void rd_pair_close(struct rd_pair *p);

#endif
