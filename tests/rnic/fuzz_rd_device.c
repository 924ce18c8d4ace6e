/* Packets of an RD peer against a whole device.
 *
 * No threads: the peer is a socket of this program, with which the handshake is made; after
 * that packets are handed to the device directly, and what it sends is thrown away.
 *
 * An input is a byte of options and a list of steps:
 *
 *   options    1 nothing is posted beforehand, 2 the device has not asked for the peer itself,
 *              4 the peer has not made a pair, 8 the queue pair is reset at the end
 *   0x00-0x9f  packet: its type is in the lower four bits; 0x10 a wrong id. Six bytes follow:
 *              flags, count, psn, and the two acks (relative to what is expected), length of
 *              the body; then the body. Lengths, CRC, ids, and keys, handles, lives and cookies
 *              where the body says so, are made right, because nobody guesses these
 *   0xa0-0xaf  the application posts a receive
 *   0xb0-0xcf  the application posts a request
 *   0xd0-0xd7  the application changes the queue pair's state
 *   0xd8-0xdf  time passes, all timers fire
 *   0xe0-0xff  raw bytes with a CRC: the next byte is their number
 */
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "rnic.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "util_clock.h"

#define OPEN_LEN 8192
#define SIDE     4096
#define CANARY   0xc5
#define QKEY     0x1234
#define LIFE     UINT64_C(0x1122334455667788)
#define ID       UINT64_C(0x99aabbccddeeff01)
#define MANY     4096

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qp;
static struct ibv_mr *mr, *closed_mr;
static struct ibv_ah *ah;
static uint8_t *map;
static int sock;
static struct sockaddr_in own;
static uint32_t own_qpn;

static struct rnic_rd *rd(void)
{
	return rnic_qp(qp)->rd;
}

static struct rnic_engine *engine(void)
{
	return rnic_ctx(ctx)->e;
}

static void set_up_socket(void)
{
	socklen_t len = sizeof(own);

	own = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	HOLDS(sock >= 0 && !bind(sock, (struct sockaddr *)&own, sizeof(own)) &&
	      !getsockname(sock, (struct sockaddr *)&own, &len));
	own_qpn = (uint32_t)ntohs(own.sin_port) << 8 | RNIC_RD_INDEX;
}

static void set_up(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.sq_sig_all = 1,
		.cap = {16, 16, 2, 2, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
	struct ibv_ah_attr aattr = {.is_global = 1, .port_num = 1};
	const struct rnic_device *dev;
	struct ibv_gid_entry gid;

	setenv("WEFT_ADDR", "127.0.0.1", 1);
	setenv("WEFT_PROGRESS", "0", 1);
	setenv("WEFT_RD_SHM", "0", 1);
	setenv("WEFT_RD_MTU", "1472", 1);
	setenv("WEFT_RD_PEERS", "8", 1);
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
	attr.pd = pd;
	attr.send_cq = scq;
	attr.recv_cq = rcq;
	qp = rnic_create_rd_qp(ctx, &attr);
	HOLDS(mr && closed_mr && qp && !rnic_query_gid_entry(ctx, 1, 0, &gid));
	aattr.grh.dgid = gid.gid;
	ah = rnic_create_ah(pd, &aattr);
	HOLDS(ah);
	set_up_socket();
}

static void to_rts(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET,
				   .port_num = 1,
				   .qkey = QKEY,
				   .rnr_retry = 1,
				   .min_rnr_timer = 1,
				   .timeout = 14,
				   .retry_cnt = 1};

	HOLDS(!rnic_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	HOLDS(!rnic_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	HOLDS(!rnic_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(!rnic_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY));
}

/* ---- one run ---- */

struct run {
	uint64_t cookie, id;        /* that the device gave */
	uint64_t posted, completed; /* requests */
	uint64_t recv_posted, recv_completed;
	uint64_t late; /* by how much timers think it is later */
	uint8_t seen[MANY], recv_seen[MANY];
};

/* Each one once, in whatever order. */
static void reap(struct run *r)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(scq, 16, wc)) > 0)
		for (int i = 0; i < n; i++, r->completed++)
			HOLDS(wc[i].wr_id < r->posted && !r->seen[wc[i].wr_id]++);
	while ((n = ibv_poll_cq(rcq, 16, wc)) > 0)
		for (int i = 0; i < n; i++, r->recv_completed++)
			HOLDS(wc[i].wr_id < r->recv_posted && !r->recv_seen[wc[i].wr_id]++);
}

/* What the device says, of which hellos are of interest. */
static void listen_to(struct run *r, struct wire_rd *h, struct wire_rd_hello *hello, int type)
{
	uint8_t buf[2048];
	ssize_t n;

	while ((n = recv(sock, buf, sizeof(buf), 0)) > 0) {
		HOLDS(wire_rd_decode(h, buf, (size_t)n) == WIRE_RD_HDR);
		if (h->type <= WIRE_RD_REFUSE)
			HOLDS(!wire_rd_hello_decode(hello, buf + WIRE_RD_HDR, WIRE_RD_HELLO));
		if (h->type == WIRE_RD_CHALLENGE)
			r->cookie = hello->cookie;
		if (h->type == WIRE_RD_ACCEPT && h->id == ID)
			r->id = hello->id;
		if (h->type == type)
			return;
	}
	h->type = 0;
}

static void give(struct run *r, uint8_t *packet, size_t len)
{
	uint8_t *p;
	struct wire_rd h;
	struct wire_rd_hello hello;

	if (len >= WIRE_RD_HDR)
		wire_rd_seal(packet, len);
	p = exact_copy(packet, len);
	rnic_enter(engine());
	rnic_rd_packet(rd(), rd()->main, &own, 0, p, len);
	rnic_rd_settle(rd());
	rnic_leave(engine());
	free(p);
	listen_to(r, &h, &hello, -1);
	reap(r);
}

static void say_hello(struct run *r, uint8_t type, uint64_t id, uint64_t cookie)
{
	struct wire_rd h = {.type = type, .id = id};
	struct wire_rd_hello hello = {.life = LIFE,
				      .id = ID,
				      .cookie = cookie,
				      .src_qpn = own_qpn,
				      .dst_qpn = qp->qp_num,
				      .qkey = QKEY,
				      .mtu = 1472,
				      .room = 100000};
	uint8_t buf[WIRE_RD_HDR + WIRE_RD_HELLO];

	wire_rd_encode(&h, buf);
	wire_rd_hello_encode(&hello, buf + WIRE_RD_HDR);
	give(r, buf, sizeof(buf));
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
	if (r->recv_posted < MANY && !ibv_post_recv(qp, &wr, &bad))
		r->recv_posted++;
}

static void post_send(struct run *r, uint8_t op)
{
	struct ibv_qp_ex *ex = rnic_qp_to_qp_ex(qp);

	if (r->posted == MANY)
		return;
	ibv_wr_start(ex);
	ex->wr_id = r->posted;
	ex->wr_flags = op & 0x10 ? IBV_SEND_FENCE : 0;
	switch (op & 7) {
	case 0:
	case 1:
		ibv_wr_rdma_write(ex, 7, 0x1000);
		break;
	case 2:
		ibv_wr_rdma_write_imm(ex, 7, 0x1000, 5);
		break;
	case 3:
	case 4:
		ibv_wr_rdma_read(ex, 7, 0x1000);
		break;
	case 5:
		ibv_wr_atomic_fetch_add(ex, 7, 0x1000, 1);
		break;
	default:
		ibv_wr_send(ex);
		break;
	}
	ibv_wr_set_ud_addr(ex, ah, own_qpn, QKEY);
	ibv_wr_set_sge(ex, mr->lkey, 0x1000, op & 8 ? 5000 : 64);
	if (!ibv_wr_complete(ex))
		r->posted++;
}

static void change_state(uint8_t op)
{
	struct ibv_qp_attr attr = {.qp_state = op & 1 ? IBV_QPS_RTS : IBV_QPS_ERR};

	rnic_modify_qp(qp, &attr, IBV_QP_STATE);
}

static bool fire(struct rnic_timer *t, uint64_t now)
{
	if (t->slot < 0 || t->at > now)
		return false;
	rnic_timer_cancel(engine(), t);
	t->fire(t, now);
	return true;
}

/* One of those that are due; true: there may be more. */
static bool fire_one(uint64_t now)
{
	struct rnic_rd_peer *peer;
	struct rnic_rd_path *path;

	list_for_each (path, &rd()->all_paths, all)
		if (fire(&path->timer, now))
			return true;
	list_for_each (peer, &rd()->peers, link)
		if (fire(&peer->timer, now))
			return true;
	return false;
}

static void pass_time(struct run *r, uint8_t op)
{
	r->late += (UTIL_NS_PER_MS / 10) << 2 * (op & 7);
	rnic_enter(engine());
	for (int i = 0; i < 32 && fire_one(util_now_ns() + r->late); i++)
		rnic_rd_settle(rd());
	rnic_leave(engine());
}

/* ---- packets ---- */

static void put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, sizeof(v));
}

static void put_keys(uint8_t *body, size_t len)
{
	static const size_t at[] = {2, 34, 26, 18}; /* tagged; read; atomic; handles */

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		if (len < at[i] + 4 || body[at[i]] < 0xfd)
			continue;
		put32(body + at[i], body[at[i]] == 0xff   ? mr->rkey
				    : body[at[i]] == 0xfe ? closed_mr->rkey
							  : rd()->handle);
	}
}

static void put_hello(const struct run *r, uint8_t *body)
{
	struct wire_rd_hello h = {.life = body[0] & 1 ? LIFE : body[0] + 1u,
				  .id = body[1] & 1 ? ID : body[1] + 1u,
				  .cookie = body[2] & 1 ? r->cookie : body[2] / 2,
				  .src_qpn = body[3] & 1 ? own_qpn : body[3],
				  .dst_qpn = body[4] & 1 ? qp->qp_num : body[4],
				  .qkey = body[5] & 1 ? QKEY : body[5],
				  .mtu = (uint16_t)(body[6] & 1 ? 1472 : body[6] << 4),
				  .room = body[7] & 1 ? 100000 : body[7]};

	wire_rd_hello_encode(&h, body);
}

static void packet(struct run *r, uint8_t op, const uint8_t *f, const uint8_t *bytes, size_t n)
{
	struct rnic_rd_peer *peer = list_first(&rd()->peers, struct rnic_rd_peer, link);
	struct wire_rd h = {.type = op & 15, .flags = f[0], .count = f[1]};
	unsigned int lane = f[0] & WIRE_RD_RESPONSE;
	uint8_t buf[WIRE_RD_HDR + 256] = {0};

	h.id = h.type == WIRE_RD_INIT ? 0 : h.type == WIRE_RD_RESET ? ID : r->id;
	if (h.type == WIRE_RD_CHALLENGE || h.type == WIRE_RD_ACCEPT || h.type == WIRE_RD_REFUSE) {
		const struct rnic_rd_path *p =
			list_first(&rd()->contacts, struct rnic_rd_path, link);

		h.id = p ? (p->peer ? p->peer->local_id : p->nonce) : ID;
	}
	if (peer)
		HOLDS(rnic_rd_peer_wake(peer)); /* its numbers are wanted */
	h.id += op >> 4 & 1;
	if (h.type == WIRE_RD_DATA)
		h.psn = (uint32_t)(int8_t)f[2] + (peer ? peer->lane[lane].rx.next : 0);
	else if (h.type == WIRE_RD_NAK)
		h.psn = (uint32_t)(int8_t)f[2] + (peer ? peer->lane[0].board.una : 0);
	for (int i = 0; i < 2; i++)
		h.ack[i] = (uint32_t)(int8_t)f[3 + i] + (peer ? peer->lane[i].board.una : 0);
	wire_rd_encode(&h, buf);
	memcpy(buf + WIRE_RD_HDR, bytes, n);
	if (h.type == WIRE_RD_DATA) {
		put_keys(buf + WIRE_RD_HDR, n);
	} else if (h.type <= WIRE_RD_REFUSE && h.type) {
		put_hello(r, buf + WIRE_RD_HDR);
		n = WIRE_RD_HELLO;
	} else if (h.type == WIRE_RD_ACK) {
		n = (size_t)(h.count &= 31) * 8;
		buf[7] = h.count;
	}
	give(r, buf, WIRE_RD_HDR + n);
}

static void steps(struct run *r, const uint8_t *data, size_t size)
{
	static const uint8_t zero[6];

	for (size_t i = 0; i < size;) {
		uint8_t op = data[i++], raw[256];
		const uint8_t *f = zero;
		size_t len;

		if (op >= 0xa0 && op < 0xe0) {
			if (op < 0xb0)
				post_recv(r, op);
			else if (op < 0xd0)
				post_send(r, op);
			else if (op < 0xd8)
				change_state(op);
			else
				pass_time(r, op);
			reap(r);
			continue;
		}
		if (op < 0xa0 && size - i >= 6) {
			f = data + i;
			i += 5;
		}
		len = i < size ? data[i++] : 0;
		if (len > size - i)
			len = size - i;
		if (op < 0xa0) {
			packet(r, op, f, data + i, len);
		} else {
			memcpy(raw, data + i, len);
			give(r, raw, len);
		}
		i += len;
	}
}

static bool untouched(const uint8_t *p)
{
	return p[0] == CANARY && !memcmp(p, p + 1, SIDE - 1);
}

static void begin(struct run *r, uint8_t options)
{
	struct wire_rd_hello hello;
	struct wire_rd h;

	to_rts();
	listen_to(r, &h, &hello, -1);
	if (!(options & 4)) {
		say_hello(r, WIRE_RD_INIT, 0, 0);
		say_hello(r, WIRE_RD_INIT, 0, r->cookie);
		HOLDS(r->id);
	}
	if (!(options & 1))
		for (uint8_t i = 0; i < 4; i++)
			post_recv(r, i);
	if (options & 2)
		return;
	post_send(r, 0);
	listen_to(r, &h, &hello, WIRE_RD_INIT);
	if (h.type == WIRE_RD_INIT)
		say_hello(r, WIRE_RD_CHALLENGE, hello.id, 1);
}

static void finish(struct run *r, uint8_t options)
{
	struct ibv_qp_attr attr = {.qp_state = options & 8 ? IBV_QPS_RESET : IBV_QPS_ERR};
	struct ibv_async_event ev;

	HOLDS(untouched(map) && untouched(map + SIDE + OPEN_LEN));
	HOLDS(!rnic_modify_qp(qp, &attr, IBV_QP_STATE));
	reap(r);
	HOLDS(options & 8 || (r->completed == r->posted && r->recv_completed == r->recv_posted));
	HOLDS(list_empty(&rd()->peers) && list_empty(&rd()->all_paths));
	HOLDS(list_empty(&rd()->contacts) && !rd()->n_peers && !rd()->n_paths);
	attr.qp_state = IBV_QPS_RESET;
	HOLDS(!rnic_modify_qp(qp, &attr, IBV_QP_STATE));
	while (!list_empty(&rnic_ctx(ctx)->events)) {
		HOLDS(!rnic_get_async_event(ctx, &ev));
		rnic_ack_async_event(&ev);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run r;

	if (!ctx)
		set_up();
	if (!size)
		return 0;
	memset(&r, 0, sizeof(r));
	begin(&r, data[0]);
	steps(&r, data + 1, size - 1);
	finish(&r, data[0]);
	return 0;
}
