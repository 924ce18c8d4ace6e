/* Posting, completions, events. */
#include <poll.h>
#include "rig.h"

struct ibv_sge end_sge(const struct end *e, size_t off, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)e->buf + off, .length = len, .lkey = e->mr->lkey};
}

void work_init(struct work *w, const struct end *e, enum ibv_wr_opcode op, uint64_t wr_id,
	       size_t off, uint32_t len, size_t to)
{
	memset(w, 0, sizeof(*w));
	w->sge = end_sge(e, off, len);
	w->wr.wr_id = wr_id;
	w->wr.opcode = op;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	w->wr.send_flags = IBV_SEND_SIGNALED;
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->wr.wr.atomic.remote_addr = e->peer.addr + to;
		w->wr.wr.atomic.rkey = e->peer.rkey;
	} else if (op != IBV_WR_SEND && op != IBV_WR_SEND_WITH_IMM) {
		w->wr.wr.rdma.remote_addr = e->peer.addr + to;
		w->wr.wr.rdma.rkey = e->peer.rkey;
	}
}

int post(struct end *e, struct work *w)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(e->qp, &w->wr, &bad);

	CHECK(!err || bad);
	return err;
}

void end_send(struct end *e, uint64_t wr_id, size_t off, uint32_t len)
{
	struct work w;

	work_init(&w, e, IBV_WR_SEND, wr_id, off, len, 0);
	CHECK_0(post(e, &w));
}

void end_write(struct end *e, uint64_t wr_id, size_t off, uint32_t len, size_t to)
{
	struct work w;

	work_init(&w, e, IBV_WR_RDMA_WRITE, wr_id, off, len, to);
	CHECK_0(post(e, &w));
}

void end_read(struct end *e, uint64_t wr_id, size_t off, uint32_t len, size_t to)
{
	struct work w;

	work_init(&w, e, IBV_WR_RDMA_READ, wr_id, off, len, to);
	CHECK_0(post(e, &w));
}

void end_add(struct end *e, uint64_t wr_id, size_t off, size_t to, uint64_t add)
{
	struct work w;

	work_init(&w, e, IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, off, 8, to);
	w.wr.wr.atomic.compare_add = add;
	CHECK_0(post(e, &w));
}

int try_recv(struct end *e, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = end_sge(e, off, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	CHECK(!err || bad == &wr);
	return err;
}

void end_recv(struct end *e, uint64_t wr_id, size_t off, uint32_t len)
{
	CHECK_0(try_recv(e, wr_id, off, len));
}

int try_srq_recv(struct ibv_srq *srq, const struct end *e, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = end_sge(e, off, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* ---- completions ---- */

bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t end = util_now_ns() + ms * RIG_MS;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		CHECK(n >= 0);
		if (n)
			return true;
	} while (util_now_ns() < end);
	return false;
}

struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, const char *file,
		     int line)
{
	struct ibv_wc wc = {0};

	rig_check(wait_wc(cq, &wc, RIG_WAIT), "a completion in time", file, line);
	rig_check_eq((long long)wc.wr_id, (long long)wr_id, "wr_id", file, line);
	rig_check_eq(wc.status, status, "status", file, line);
	return wc;
}

void expect_none(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, ms))
		return;
	fprintf(stderr, "unexpected completion: wr_id %llu, status %d, opcode %d\n",
		(unsigned long long)wc.wr_id, wc.status, wc.opcode);
	CHECK(!"no completion");
}

void expect_run(struct ibv_cq *cq, uint64_t first, unsigned int n, enum ibv_wc_status status)
{
	for (unsigned int i = 0; i < n; i++)
		EXPECT(cq, first + i, status);
}

/* ---- asynchronous events ---- */

bool wait_event(struct rig *r, struct ibv_async_event *ev, unsigned int ms)
{
	struct pollfd pfd = {.fd = r->ctx->async_fd, .events = POLLIN};

	if (poll(&pfd, 1, (int)ms) <= 0)
		return false;
	CHECK_0(rnic_get_async_event(r->ctx, ev));
	return true;
}

void expect_event(struct rig *r, enum ibv_event_type type, const void *object)
{
	struct ibv_async_event ev;

	CHECK(wait_event(r, &ev, RIG_WAIT));
	CHECK_EQ(ev.event_type, type);
	CHECK(!object || ev.element.qp == object);
	rnic_ack_async_event(&ev);
}

void expect_no_event(struct rig *r, unsigned int ms)
{
	struct ibv_async_event ev;

	if (!wait_event(r, &ev, ms))
		return;
	fprintf(stderr, "unexpected event %d\n", ev.event_type);
	rnic_ack_async_event(&ev);
	CHECK(!"no event");
}
