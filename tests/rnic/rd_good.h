/* Traffic that has to work, whatever failed before it. */
#ifndef WEFT_RD_GOOD_H
#define WEFT_RD_GOOD_H

#include "rig_rd.h"

#define LONG (140 * 1000) /* a hundred packets of an Ethernet's size */

/* Sends of several sizes, one receive for each; a write, a read and an atomic between them. */
static inline void good(struct rd_pair *p)
{
	static uint64_t next_id = 1000;
	static const uint32_t sizes[] = {0, 1, 1400, 1500, LONG, 8};
	uint64_t *word = (uint64_t *)(p->b.buf + (2 << 20)), before;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t id = next_id++;

		memset(p->a.buf, (int)id, sizes[i]);
		end_recv(&p->b, id, 0, sizes[i]);
		rd_post(&p->ab, IBV_WR_SEND, id, 0, sizes[i], 0);
		CHECK_EQ(EXPECT_OK(p->b.rcq, id).byte_len, sizes[i]);
		EXPECT_OK(p->a.scq, id);
		CHECK(!memcmp(p->a.buf, p->b.buf, sizes[i]));
	}
	rd_post(&p->ab, IBV_WR_RDMA_WRITE, next_id, 0, LONG, 1 << 20);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK(!memcmp(p->a.buf, p->b.buf + (1 << 20), LONG));
	rd_post(&p->ab, IBV_WR_RDMA_READ, next_id, 1 << 20, LONG, 1 << 20);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK(!memcmp(p->a.buf + (1 << 20), p->b.buf + (1 << 20), LONG));
	before = *word;
	rd_add(&p->ab, next_id, 0, 2 << 20, 3);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK_EQ(*word, before + 3);
	expect_none(p->b.rcq, 1);
	CHECK_EQ(end_query(&p->a), IBV_QPS_RTS);
	CHECK_EQ(end_query(&p->b), IBV_QPS_RTS);
}

#endif
