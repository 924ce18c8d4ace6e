#include "rig_rd.h"

struct rig_opts rd_defaults(void)
{
	struct rig_opts o = rig_defaults();

	o.type = IBV_QPT_DRIVER;
	o.ex = true;
	o.timeout = 18; /* a second, times eight */
	o.buf_len = 4 << 20;
	return o;
}

void way_make(struct way *w, struct end *from, const struct rig_addr *to, uint32_t label)
{
	struct ibv_ah_attr attr = {.grh = {.dgid = to->gid, .hop_limit = 64, .flow_label = label},
				   .is_global = 1,
				   .port_num = 1};

	w->from = from;
	w->to = *to;
	w->qkey = from->o.qkey;
	w->ah = rnic_create_ah(from->rig->pd, &attr);
	CHECK(w->ah);
}

void way_free(struct way *w)
{
	CHECK_0(rnic_destroy_ah(w->ah));
}

static void begin(struct way *w, enum ibv_wr_opcode op, uint64_t wr_id, size_t to)
{
	struct ibv_qp_ex *ex = w->from->ex;

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	switch (op) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, (__be32)wr_id);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, w->to.rkey, w->to.addr + to);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, w->to.rkey, w->to.addr + to, (__be32)wr_id);
		break;
	default:
		ibv_wr_rdma_read(ex, w->to.rkey, w->to.addr + to);
		break;
	}
}

static int end_it(struct way *w, size_t off, uint32_t len)
{
	struct ibv_qp_ex *ex = w->from->ex;
	struct ibv_sge sge = end_sge(w->from, off, len);

	ibv_wr_set_ud_addr(ex, w->ah, w->to.qpn, w->qkey);
	ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(ex);
}

int rd_try(struct way *w, enum ibv_wr_opcode op, uint64_t wr_id, size_t off, uint32_t len,
	   size_t to)
{
	begin(w, op, wr_id, to);
	return end_it(w, off, len);
}

void rd_post(struct way *w, enum ibv_wr_opcode op, uint64_t wr_id, size_t off, uint32_t len,
	     size_t to)
{
	CHECK_0(rd_try(w, op, wr_id, off, len, to));
}

void rd_send_keep(struct way *w, uint64_t wr_id, size_t off, uint32_t len, size_t keep)
{
	struct ibv_sge sge[2] = {end_sge(w->from, off, len / 2),
				 end_sge(w->from, off + len / 2, len - len / 2)};

	begin(w, IBV_WR_SEND, wr_id, 0);
	ibv_wr_set_ud_addr(w->from->ex, w->ah, w->to.qpn, w->qkey);
	ibv_wr_set_sge_list(w->from->ex, 2, sge);
	CHECK_0(rnic_wr_complete_keep(w->from->ex, w->from->buf + keep, w->from->mr->lkey));
}

void rd_add(struct way *w, uint64_t wr_id, size_t off, size_t to, uint64_t add)
{
	struct ibv_qp_ex *ex = w->from->ex;

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(ex, w->to.rkey, w->to.addr + to, add);
	CHECK_0(end_it(w, off, 8));
}

void rd_cas(struct way *w, uint64_t wr_id, size_t off, size_t to, uint64_t compare, uint64_t swap)
{
	struct ibv_qp_ex *ex = w->from->ex;

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_cmp_swp(ex, w->to.rkey, w->to.addr + to, compare, swap);
	CHECK_0(end_it(w, off, 8));
}

struct weftdv_rd_stats rd_stats(const struct end *e)
{
	struct weftdv_rd_stats s;

	CHECK_0(rnic_query_rd(e->qp, &s));
	return s;
}

void rd_pair_open(struct rd_pair *p, const struct rig_opts *oa, const struct rig_opts *ob)
{
	struct rig_opts o = rd_defaults();
	struct rig_addr a, b;

	rig_open(&p->rig);
	end_make(&p->a, &p->rig, oa ? oa : &o);
	end_make(&p->b, &p->rig, ob ? ob : &o);
	end_up(&p->a, NULL);
	end_up(&p->b, NULL);
	a = end_addr(&p->a);
	b = end_addr(&p->b);
	way_make(&p->ab, &p->a, &b, 0);
	way_make(&p->ba, &p->b, &a, 0);
}

void rd_pair_close(struct rd_pair *p)
{
	way_free(&p->ab);
	way_free(&p->ba);
	end_destroy(&p->a);
	end_destroy(&p->b);
	rig_close(&p->rig);
}
