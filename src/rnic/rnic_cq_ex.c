/* ibv_start_poll and its relatives: one entry at a time, read field by field. */
#include <errno.h>
#include <time.h>
#include "util_clock.h"
#include "rnic_cq.h"

static struct rnic_cq *of(struct ibv_cq_ex *ex)
{
	return (struct rnic_cq *)ex;
}

static int load(struct rnic_cq *cq)
{
	if (!rnic_cq_pop(cq, &cq->cur))
		return ENOENT;
	cq->ex.wr_id = cq->cur.wc.wr_id;
	cq->ex.status = cq->cur.wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct rnic_cq *cq = of(ex);

	if (attr->comp_mask)
		return EINVAL;
	if (cq->e->dead)
		return EIO;
	if (!load(cq))
		return 0;
	rnic_cq_poll_begin(cq);
	rnic_engine_poll(cq->e);
	if (!load(cq)) {
		cq->polling = true; /* until end_poll */
		return 0;
	}
	rnic_cq_poll_end(cq);
	return ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return load(of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct rnic_cq *cq = of(ex);

	if (cq->polling) {
		cq->polling = false;
		rnic_cq_poll_end(cq);
	}
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return of(ex)->cur.stamp;
}

/* The stamp is monotonic; the wall clock of that moment is today's, less the age. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct timespec ts;
	uint64_t age = util_now_ns() - of(ex)->cur.stamp;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * UTIL_NS_PER_S + (uint64_t)ts.tv_nsec - age;
}

void rnic_cq_ex_ops(struct rnic_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	cq->stamped = wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
