/* A peer's byte stream, from the first byte of the handshake on, against a whole device.
 *
 * No threads, no loopback: the connection is one end of a socket pair that is handed to
 * the device as if it had been accepted, and its handler is called directly.
 *
 * An input is a byte of options and a list of steps:
 *
 *   options    1 the peer is UC, 2 no handshake is made for the input, 4 nothing is
 *              posted beforehand, 8 the peer stays connected while the queue pair resets
 *   0x00-0x9f  frame: the next byte is its length, the bytes after it are a ULPDU. It is
 *              given a length and a checksum, and a key or an address of ours where the
 *              bytes say so, because nobody guesses these
 *   0xa0-0xcf  the application posts something
 *   0xd0-0xdf  the application changes the queue pair's state
 *   0xe0-0xff  raw bytes: the next byte is their number
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "rnic.h"
#include "rnic_conn.h"
#include "wire_mpa.h"

#define OPEN_LEN 8192
#define SIDE     4096
#define CANARY   0xc5
#define PEER_QPN 0x000105
#define PSN      0x123456

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qps[2];
static struct ibv_mr *mr, *closed_mr;
static uint8_t *map;

static struct rnic_engine *engine(void)
{
	return rnic_ctx(ctx)->e;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {.send_cq = scq,
					.recv_cq = rcq,
					.qp_type = type,
					.sq_sig_all = 1,
					.cap = {16, 16, 2, 2, 64}};

	return rnic_create_qp(pd, &attr);
}

static void set_up(void)
{
	const struct rnic_device *dev;

	setenv("WEFT_ADDR", "127.0.0.1", 1);
	setenv("WEFT_PROGRESS", "0", 1);
	setenv("WEFT_LOG", "error", 1); /* a million refusals */
	dev = rnic_device_get();
	HOLDS(dev);
	ctx = rnic_open_device((struct ibv_device *)&dev->ibv);
	HOLDS(ctx);
	pd = rnic_alloc_pd(ctx);
	scq = rnic_create_cq(ctx, 256, NULL, NULL, 0);
	rcq = rnic_create_cq(ctx, 256, NULL, NULL, 0);
	HOLDS(pd && scq && rcq);
	map = mmap(NULL, OPEN_LEN + 2 * SIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	HOLDS(map != MAP_FAILED);
	memset(map, CANARY, OPEN_LEN + 2 * SIDE);
	mr = rnic_reg_mr(pd, map + SIDE, OPEN_LEN, 0x1000,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	closed_mr = rnic_reg_mr(pd, map, SIDE, 0x1000, 0);
	qps[0] = make_qp(IBV_QPT_RC);
	qps[1] = make_qp(IBV_QPT_UC);
	HOLDS(mr && closed_mr && qps[0] && qps[1]);
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_gid_entry gid;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	bool rc = qp->qp_type == IBV_QPT_RC;

	HOLDS(!rnic_modify_qp(qp, &attr, IBV_QP_STATE));
	HOLDS(!rnic_query_gid_entry(ctx, 1, 0, &gid));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = PEER_QPN,
				    .rq_psn = PSN,
				    .sq_psn = PSN,
				    .max_rd_atomic = 4,
				    .max_dest_rd_atomic = 4,
				    .rnr_retry = 7,
				    .retry_cnt = 7,
				    .timeout = 20,
				    .ah_attr = {.is_global = 1, .port_num = 1}};
	attr.ah_attr.grh.dgid = gid.gid;
	HOLDS(!rnic_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	HOLDS(!rnic_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN |
				      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(!rnic_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC
					  : 0)));
}

/* ---- one run ---- */

struct run {
	struct ibv_qp *qp;
	int fd;                     /* the peer's end */
	uint64_t posted, completed; /* sends, by number */
	uint64_t recv_posted, recv_completed;
};

/* Lets every connection look at its socket, as a pass would. */
static void look(uint32_t events)
{
	struct rnic_engine *e = engine();
	struct rnic_conn *c, *tmp;

	rnic_enter(e);
	list_for_each_safe (c, tmp, &e->conns, link) {
		c->io.ready(&c->io, events);
	}
	rnic_leave(e);
}

/* Completions come in the order of posting, each one once. */
static void reap(struct run *r)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(scq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			HOLDS(wc[i].wr_id == r->completed++ && wc[i].wr_id < r->posted);
	while ((n = ibv_poll_cq(rcq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			HOLDS(wc[i].wr_id == r->recv_completed++ && wc[i].wr_id < r->recv_posted);
}

static void give(struct run *r, const void *bytes, size_t len)
{
	static uint8_t sink[65536];

	if (len && send(r->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	look(EPOLLIN);
	while (recv(r->fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		look(EPOLLOUT);
	reap(r);
}

static void post_recv(struct run *r, uint8_t op)
{
	struct ibv_sge sge[2] = {{0x1000 + op * 8u, op & 1 ? 100 : 4000, mr->lkey},
				 {0x1000 + OPEN_LEN - 64, op & 2 ? 64 : 128, mr->lkey}};
	struct ibv_recv_wr wr = {.wr_id = r->recv_posted, .sg_list = sge, .num_sge = 1}, *bad;

	if (op & 4)
		wr.num_sge = 2;
	if (op == 0xaf)
		sge[0].lkey = closed_mr->lkey; /* may not be written to */
	if (!ibv_post_recv(r->qp, &wr, &bad))
		r->recv_posted++;
}

static void post_send(struct run *r, uint8_t op)
{
	struct ibv_sge sge = {0x1000, op & 8 ? 2000 : 64, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = r->posted, .sg_list = &sge, .num_sge = 1}, *bad;

	wr.opcode = (enum ibv_wr_opcode)(op & 7);
	wr.send_flags = op & 0x10 ? IBV_SEND_FENCE : 0;
	wr.wr.rdma.remote_addr = 0x1000;
	wr.wr.rdma.rkey = 7;
	if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = 0x1000;
		wr.wr.atomic.rkey = 7;
	}
	if (!ibv_post_send(r->qp, &wr, &bad))
		r->posted++;
}

static void change_state(struct run *r, uint8_t op)
{
	struct ibv_qp_attr attr = {.qp_state = op & 1   ? IBV_QPS_SQD
					       : op & 2 ? IBV_QPS_RTS
							: IBV_QPS_ERR};

	rnic_modify_qp(r->qp, &attr, IBV_QP_STATE);
	look(EPOLLIN);
	reap(r);
}

/* Bytes 2 to 5 of a tagged segment are a key; ff.. and fe.. stand for the real ones. */
static void put_keys(uint8_t *ulpdu, size_t len)
{
	static const size_t at[] = {2, 34, 26}; /* write; read request; atomic request */

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		uint32_t key;

		if (len < at[i] + 4 || ulpdu[at[i]] < 0xfe)
			continue;
		key = htonl(ulpdu[at[i]] == 0xff ? mr->rkey : closed_mr->rkey);
		memcpy(ulpdu + at[i], &key, sizeof(key));
	}
}

static void frame(struct run *r, const uint8_t *bytes, size_t len)
{
	uint8_t fpdu[WIRE_MPA_LEN_HDR + 256 + 8];

	if (len)
		memcpy(fpdu + WIRE_MPA_LEN_HDR, bytes, len);
	put_keys(fpdu + WIRE_MPA_LEN_HDR, len);
	give(r, fpdu, wire_mpa_fpdu_seal(fpdu, len, true));
}

static void handshake(struct run *r)
{
	struct wire_mpa_hs hs = {.revision = 1, .crc = true};
	struct wire_hello h = {.version = WIRE_HELLO_VERSION,
			       .type = r->qp == qps[1] ? WIRE_HELLO_UC : WIRE_HELLO_RC,
			       .src_qpn = PEER_QPN,
			       .dst_qpn = r->qp->qp_num,
			       .rq_psn = PSN,
			       .dst_addr = INADDR_LOOPBACK};
	uint8_t buf[WIRE_MPA_HS_MAX];
	int len;

	hs.pd_len = (uint16_t)wire_hello_encode(&h, hs.pd);
	len = wire_mpa_hs_encode(&hs, buf, sizeof(buf));
	HOLDS(len > 0);
	give(r, buf, (size_t)len);
	HOLDS(rnic_qp(r->qp)->conn);
}

static void steps(struct run *r, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size;) {
		uint8_t op = data[i++];
		size_t len;

		if (op >= 0xa0 && op < 0xb0) {
			post_recv(r, op);
			reap(r); /* in error it is complete already */
			continue;
		}
		if (op >= 0xb0 && op < 0xd0) {
			post_send(r, op);
			reap(r);
			continue;
		}
		if (op >= 0xd0 && op < 0xe0) {
			change_state(r, op);
			continue;
		}
		len = i < size ? data[i++] : 0;
		if (len > size - i)
			len = size - i;
		if (op < 0xa0)
			frame(r, data + i, len);
		else
			give(r, data + i, len);
		i += len;
	}
}

static bool untouched(const uint8_t *p)
{
	return p[0] == CANARY && !memcmp(p, p + 1, SIDE - 1);
}

static void check(struct run *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	HOLDS(untouched(map) && untouched(map + SIDE + OPEN_LEN));
	/* Whatever happened, everything that was posted comes back. */
	rnic_modify_qp(r->qp, &attr, IBV_QP_STATE);
	reap(r);
	HOLDS(r->completed == r->posted && r->recv_completed == r->recv_posted);
}

static void clean_up(struct run *r)
{
	struct ibv_async_event ev;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct rnic_engine *e = engine();

	HOLDS(!rnic_modify_qp(r->qp, &attr, IBV_QP_STATE));
	close(r->fd);
	for (int i = 0; i < 8 && !list_empty(&e->conns); i++)
		look(EPOLLIN | EPOLLHUP);
	HOLDS(list_empty(&e->conns));
	HOLDS(!e->n_strangers && list_empty(&e->due));
	while (!list_empty(&rnic_ctx(ctx)->events)) {
		HOLDS(!rnic_get_async_event(ctx, &ev));
		rnic_ack_async_event(&ev);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
	struct run r = {0};
	int fd[2];

	if (!ctx)
		set_up();
	if (!size)
		return 0;
	r.qp = qps[data[0] & 1];
	to_rts(r.qp);
	HOLDS(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd));
	r.fd = fd[1];
	rnic_enter(engine());
	rnic_conn_accepted(engine(), fd[0], loopback);
	rnic_leave(engine());
	if (!(data[0] & 4))
		for (uint8_t i = 0; i < 4; i++)
			post_recv(&r, i);
	if (!(data[0] & 2))
		handshake(&r);
	steps(&r, data + 1, size - 1);
	if (data[0] & 8) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

		HOLDS(untouched(map) && untouched(map + SIDE + OPEN_LEN));
		HOLDS(!rnic_modify_qp(r.qp, &attr, IBV_QP_STATE));
		look(EPOLLIN);
	} else {
		check(&r);
	}
	clean_up(&r);
	return 0;
}
