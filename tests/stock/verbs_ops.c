/* Every operation of an RC queue pair, for a capture: stock programs do not know all of
 * them. An ordinary verbs program, linked with the system's libibverbs; two queue pairs
 * of one process talk to each other, so it needs no second program. All data is checked.
 *
 *	verbs_ops        the operations, then a bad key, so that a Terminate is sent, too
 *	verbs_ops ud     datagrams
 */
#include <infiniband/verbs.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL 100
#define LARGE 100000 /* several segments, and not a multiple of four */
#define GRH   40

static struct ibv_context *ctx;
static struct ibv_pd *pd;

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "verbs_ops: line %d: %s\n", __LINE__, #cond);              \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
}

static void open_side(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.qp_type = type,
					.cap = {.max_send_wr = 16,
						.max_recv_wr = 16,
						.max_send_sge = 2,
						.max_recv_sge = 2,
						.max_inline_data = 64}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	s->cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	CHECK(s->cq);
	init.send_cq = init.recv_cq = s->cq;
	s->buf = calloc(1, LARGE);
	CHECK(s->buf);
	s->mr = ibv_reg_mr(pd, s->buf, LARGE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(s->mr);
	s->qp = ibv_create_qp(pd, &init);
	CHECK(s->qp);
	attr.qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK(!ibv_modify_qp(s->qp, &attr, mask));
}

static struct ibv_ah_attr to_ourselves(void)
{
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = 0, .hop_limit = 64}};

	CHECK(!ibv_query_gid(ctx, 1, 0, &ah.grh.dgid));
	return ah;
}

static void connect_rc(struct side *from, struct side *to)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .ah_attr = to_ourselves(),
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = to->qp->qp_num,
				   .max_dest_rd_atomic = 4,
				   .min_rnr_timer = 12};

	CHECK(!ibv_modify_qp(from->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	CHECK(!ibv_modify_qp(from->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void fill(struct side *s, size_t len, int seed)
{
	for (size_t i = 0; i < len; i++)
		s->buf[i] = (uint8_t)(i * 7 + i / 256 + (size_t)seed);
}

static void post_recv(struct side *s, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->buf, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(s->qp, &wr, &bad));
}

static struct ibv_wc next_completion(struct side *s)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (!n && time(NULL) < end);
	CHECK(n == 1);
	return wc;
}

/* Posts a request of `a` at `b`'s memory, with what is special about it already in wr. */
static void post(struct side *a, struct side *b, struct ibv_send_wr *wr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)a->buf, len, a->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = (uintptr_t)b->buf;
		wr->wr.atomic.rkey = b->mr->rkey;
	} else if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
		wr->wr.rdma.remote_addr = (uintptr_t)b->buf;
		if (!wr->wr.rdma.rkey)
			wr->wr.rdma.rkey = b->mr->rkey;
	}
	CHECK(!ibv_post_send(a->qp, wr, &bad));
}

static void run(struct side *a, struct side *b, struct ibv_send_wr wr, uint32_t len)
{
	post(a, b, &wr, len);
	CHECK(next_completion(a).status == IBV_WC_SUCCESS);
}

static void sends(struct side *a, struct side *b)
{
	static const uint32_t lens[] = {0, 1, SMALL, LARGE};

	for (int i = 0; i < 16; i++) {
		uint32_t len = lens[i % 4];
		bool imm = i & 4, solicited = i & 8;
		struct ibv_send_wr wr = {.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					 .imm_data = htonl(0xcafe0000u + (unsigned int)i),
					 .send_flags = solicited ? IBV_SEND_SOLICITED : 0};
		struct ibv_wc wc;

		if (len == 1)
			wr.send_flags |= IBV_SEND_INLINE;
		fill(a, len, i);
		memset(b->buf, 0, len);
		post_recv(b, LARGE);
		run(a, b, wr, len);
		wc = next_completion(b);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == len);
		CHECK(!imm || (wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == wr.imm_data));
		CHECK(!memcmp(a->buf, b->buf, len));
	}
}

static void writes_and_reads(struct side *a, struct side *b)
{
	static const uint32_t lens[] = {0, 1, SMALL, LARGE};

	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc;

		fill(a, lens[i], 20 + i);
		run(a, b, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, lens[i]);
		CHECK(!memcmp(a->buf, b->buf, lens[i]));

		fill(a, lens[i], 30 + i);
		post_recv(b, 0);
		run(a, b,
		    (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					 .imm_data = htonl(i),
					 .send_flags = i & 1 ? IBV_SEND_SOLICITED : 0},
		    lens[i]);
		wc = next_completion(b);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK(wc.imm_data == htonl(i) && wc.byte_len == lens[i]);
		CHECK(!memcmp(a->buf, b->buf, lens[i]));

		fill(b, lens[i], 40 + i);
		run(a, b, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ}, lens[i]);
		CHECK(!memcmp(a->buf, b->buf, lens[i]));
	}
}

static void atomics(struct side *a, struct side *b)
{
	struct ibv_send_wr add = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_send_wr swap = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
	uint64_t *here = (uint64_t *)a->buf, *there = (uint64_t *)b->buf;

	*there = 40;
	add.wr.atomic.compare_add = 2;
	run(a, b, add, 8);
	CHECK(*here == 40 && *there == 42);
	swap.wr.atomic.compare_add = 42;
	swap.wr.atomic.swap = 7;
	run(a, b, swap, 8);
	CHECK(*here == 42 && *there == 7);
	run(a, b, swap, 8); /* does not match any more */
	CHECK(*here == 7 && *there == 7);
}

/* A Send that comes before its receive waits and is sent again. */
static void receiver_not_ready(struct side *a, struct side *b)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct timespec moment = {.tv_nsec = 50000000};

	fill(a, SMALL, 50);
	post(a, b, &wr, SMALL);
	nanosleep(&moment, NULL);
	post_recv(b, LARGE);
	CHECK(next_completion(b).status == IBV_WC_SUCCESS);
	CHECK(next_completion(a).status == IBV_WC_SUCCESS);
	CHECK(!memcmp(a->buf, b->buf, SMALL));
}

/* A key that opens nothing: the peer answers with a Terminate. */
static void bad_key(enum ibv_wr_opcode opcode)
{
	struct side a, b;
	struct ibv_send_wr wr = {.opcode = opcode};

	open_side(&a, IBV_QPT_RC);
	open_side(&b, IBV_QPT_RC);
	connect_rc(&a, &b);
	connect_rc(&b, &a);
	wr.wr.rdma.rkey = b.mr->rkey ^ 0x5a5a5a5a;
	post(&a, &b, &wr, SMALL);
	CHECK(next_completion(&a).status == IBV_WC_REM_ACCESS_ERR);
}

static void rc(void)
{
	struct side a, b;

	open_side(&a, IBV_QPT_RC);
	open_side(&b, IBV_QPT_RC);
	connect_rc(&a, &b);
	connect_rc(&b, &a);
	sends(&a, &b);
	writes_and_reads(&a, &b);
	atomics(&a, &b);
	receiver_not_ready(&a, &b);
	sends(&b, &a); /* and in the other direction */
	atomics(&b, &a);
	bad_key(IBV_WR_RDMA_WRITE);
	bad_key(IBV_WR_RDMA_READ);
}

static void ready_ud(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void ud(void)
{
	static const uint32_t lens[] = {0, 1, SMALL, 4096};
	struct ibv_ah_attr ah_attr = to_ourselves();
	struct side a, b;
	struct ibv_ah *ah;

	open_side(&a, IBV_QPT_UD);
	open_side(&b, IBV_QPT_UD);
	ready_ud(&a);
	ready_ud(&b);
	ah = ibv_create_ah(pd, &ah_attr);
	CHECK(ah);
	for (int i = 0; i < 8; i++) {
		uint32_t len = lens[i % 4];
		struct ibv_send_wr wr = {
			.opcode = i & 4 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
			.wr.ud = {.ah = ah, .remote_qpn = b.qp->qp_num, .remote_qkey = 0x11111111}};
		struct ibv_wc wc;

		fill(&a, len, i);
		post_recv(&b, LARGE);
		run(&a, &b, wr, len);
		wc = next_completion(&b);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == len + GRH);
		CHECK(!memcmp(a.buf, b.buf + GRH, len));
	}
}

int main(int argc, char **argv)
{
	open_device();
	if (argc > 1 && !strcmp(argv[1], "ud"))
		ud();
	else
		rc();
	puts("all good");
	return 0;
}
