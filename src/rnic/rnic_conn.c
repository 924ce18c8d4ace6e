#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_table.h"
#include "rnic_tune.h"

/* How long a handshake may take, and a connection be held for a queue pair that is
 * not ready. */
#define HANDSHAKE_NS (5 * UTIL_NS_PER_S)
#define LINGER_NS    (1 * UTIL_NS_PER_S)
#define BACKOFF_MIN  (1 * UTIL_NS_PER_MS)
#define BACKOFF_MAX  (1 * UTIL_NS_PER_S)

static bool handshake_ready(struct rnic_io *io, uint32_t events);
static bool we_connect(const struct rnic_qp *qp);

void rnic_conn_free(struct rnic_io *io)
{
	struct rnic_conn *c = (struct rnic_conn *)io;

	free(c->part);
	free(c->pend);
	free(c->jobs);
	free(c);
}

static void conn_close(struct rnic_conn *c)
{
	if (c->io.fd < 0)
		return;
	if (!c->qp && c->state != RNIC_CONN_LINGER)
		c->e->n_strangers--;
	rnic_timer_cancel(c->e, &c->timer);
	list_del(&c->link);
	list_del(&c->due.link);
	c->qp = NULL;
	rnic_io_close(&c->io);
}

static void detach(struct rnic_conn *c)
{
	struct rnic_qp *qp = c->qp;

	if (!qp)
		return;
	if (qp->conn == c)
		qp->conn = NULL;
	if (qp->rsp_conn == c)
		qp->rsp_conn = NULL;
	c->qp = NULL;
}

static void reconnect_later(struct rnic_qp *qp)
{
	uint64_t wait = qp->backoff;

	qp->backoff = wait * 2 > BACKOFF_MAX ? BACKOFF_MAX : wait * 2;
	rnic_timer_arm(qp->e, &qp->connect_timer, util_now_ns() + wait);
}

void rnic_conn_lost(struct rnic_conn *c)
{
	struct rnic_qp *qp = c->qp;
	bool was_up = c->state == RNIC_CONN_UP;

	if (c->io.fd < 0)
		return;
	if (qp) {
		detach(c);
		c->state = RNIC_CONN_LINGER; /* no stranger */
		if (was_up) {
			qp->lost = true;
			qp->req.rnr = false; /* nobody is left to say READY */
			rnic_req_watch(qp);
		} else if (we_connect(qp)) {
			reconnect_later(qp);
		}
	}
	conn_close(c);
}

static void on_timer(struct rnic_timer *t, uint64_t now)
{
	(void)now;
	rnic_conn_lost(container_of(t, struct rnic_conn, timer));
}

static struct rnic_conn *conn_new(struct rnic_engine *e, int fd, uint32_t events)
{
	struct rnic_conn *c = calloc(1, sizeof(*c));

	if (!c || fd < 0)
		goto fail;
	c->io = (struct rnic_io){
		.fd = fd, .ready = handshake_ready, .release = rnic_conn_free, .data = true};
	c->e = e;
	list_init(&c->link);
	list_init(&c->due.link);
	rnic_timer_init(&c->timer, on_timer);
	if (rnic_io_add(e, &c->io, events))
		goto fail;
	list_add_tail(&c->link, &e->conns);
	return c;
fail:
	free(c);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int alloc_jobs(struct rnic_conn *c, struct rnic_qp *qp)
{
	/* a power of two, so that indices may wrap */
	for (c->job_cap = 1; c->job_cap < qp->attr.max_dest_rd_atomic;)
		c->job_cap *= 2;
	c->job_max = qp->attr.max_dest_rd_atomic;
	c->jobs = calloc(c->job_cap, sizeof(*c->jobs));
	return c->jobs ? 0 : -ENOMEM;
}

/* ---- the handshake's frames ---- */

static int send_hello(struct rnic_conn *c, const struct rnic_qp *qp, bool reply)
{
	struct wire_mpa_hs hs = {.reply = reply,
				 .revision = 1,
				 .crc = util_tune_bool(rnic_tune(RNIC_TUNE_CRC)),
				 .markers = util_tune_bool(rnic_tune(RNIC_TUNE_MARKERS))};
	struct wire_hello h = {.version = WIRE_HELLO_VERSION,
			       .type = qp->ibv.qp_type == IBV_QPT_UC ? WIRE_HELLO_UC
								     : WIRE_HELLO_RC,
			       .src_qpn = qp->ibv.qp_num,
			       .dst_qpn = qp->attr.dest_qp_num,
			       .rq_psn = qp->attr.rq_psn & 0xffffff,
			       .dst_addr = ntohl(qp->peer.s_addr)};
	uint8_t buf[WIRE_MPA_HS_MAX];
	int len;

	hs.pd_len = (uint16_t)wire_hello_encode(&h, hs.pd);
	/* Either side's C bit turns CRCs on, each side's M bit its own direction. A
	 * reply repeats the C that is in force. */
	c->crc |= hs.crc;
	hs.crc = c->crc;
	c->rx_marked = hs.markers;
	len = wire_mpa_hs_encode(&hs, buf, sizeof(buf));
	return len < 0 ? len : rnic_stream_write(c, buf, (size_t)len);
}

static void send_reject(struct rnic_conn *c)
{
	struct wire_mpa_hs hs = {.reply = true, .revision = 1, .reject = true};
	uint8_t buf[WIRE_MPA_HS_MAX];
	int len = wire_mpa_hs_encode(&hs, buf, sizeof(buf));

	if (len > 0)
		rnic_stream_write(c, buf, (size_t)len);
	rnic_conn_lost(c);
}

static void foreign(struct rnic_conn *c, const char *what)
{
	static atomic_bool told;
	char addr[INET_ADDRSTRLEN];

	c->e->stats.foreign_streams++;
	inet_ntop(AF_INET, &c->peer, addr, sizeof(addr));
	util_log_once(&told, UTIL_LOG_WARN,
		      "refused a connection from %s: %s (further ones are only counted)", addr,
		      what);
	rnic_conn_lost(c);
}

/* Reads until one handshake frame is whole. -EAGAIN: not yet. */
static int read_hello(struct rnic_conn *c, struct wire_mpa_hs *hs, struct wire_hello *h)
{
	ssize_t n;
	int used;

	if (!c->part) {
		c->part = malloc(WIRE_MPA_HS_MAX + 1);
		if (!c->part)
			return -ENOMEM;
		c->part_len = 0;
	}
	n = recv(c->io.fd, c->part + c->part_len, WIRE_MPA_HS_MAX + 1 - c->part_len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -ECONNRESET;
	c->part_len += (size_t)n;
	used = wire_mpa_hs_decode(hs, c->part, c->part_len);
	if (used < 0)
		return used;
	/* Nobody may send more before the other side has answered. */
	if ((size_t)used != c->part_len)
		return -EPROTO;
	free(c->part);
	c->part = NULL;
	c->part_len = 0;
	if (hs->reject)
		return -ECONNREFUSED;
	return wire_hello_decode(h, hs->pd, hs->pd_len);
}

/* ---- the accepting side ---- */

static bool hello_fits(const struct rnic_qp *qp, const struct rnic_conn *c)
{
	const struct wire_hello *h = &c->hello;

	return h->type == (qp->ibv.qp_type == IBV_QPT_UC ? WIRE_HELLO_UC : WIRE_HELLO_RC) &&
	       h->src_qpn == qp->attr.dest_qp_num && c->peer.s_addr == qp->peer.s_addr &&
	       rnic_conn_psn_fits(qp, c);
}

/* The peer says which sequence number it expects from us. Ours is known from RTS on. */
bool rnic_conn_psn_fits(const struct rnic_qp *qp, const struct rnic_conn *c)
{
	return (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD) ||
	       c->hello.rq_psn == (qp->attr.sq_psn & 0xffffff);
}

/* The queue pair got the sequence number that tells the peer from a stranger, and the
 * peer that it has is one. As long as nothing was executed for it, the right one can
 * still come. */
void rnic_conn_disown(struct rnic_conn *c)
{
	const struct rnic_rsp *rsp = &c->qp->rsp;

	if (!rsp->done && !rsp->send_msn && !rsp->receiving && !rsp->write_len)
		c->state = RNIC_CONN_REPLIED;
	foreign(c, "it does not fit the queue pair that it names");
}

static bool ready_to_receive(const struct rnic_qp *qp)
{
	return qp->ibv.state == IBV_QPS_RTR || qp->ibv.state == IBV_QPS_RTS ||
	       qp->ibv.state == IBV_QPS_SQD;
}

static void up(struct rnic_conn *c, struct rnic_qp *qp)
{
	c->io.ready = rnic_stream_ready;
	qp->conn = qp->rsp_conn = c;
	qp->backoff = BACKOFF_MIN;
}

/* A request names a queue pair: answer it, hold it, or refuse it. */
static void try_accept(struct rnic_conn *c)
{
	struct rnic_qp *qp = rnic_table_get(c->e->qps, c->hello.dst_qpn);

	if (!qp || qp->ibv.qp_type == IBV_QPT_UD || qp->ibv.state == IBV_QPS_ERR) {
		send_reject(c);
		return;
	}
	if (!ready_to_receive(qp)) {
		c->state = RNIC_CONN_HELD;
		/* The peer has nothing to say until we answer, but it may leave. */
		rnic_io_want(&c->io, EPOLLRDHUP);
		return;
	}
	if (!hello_fits(qp, c)) {
		foreign(c, "it does not fit the queue pair that it names");
		return;
	}
	if (qp->conn || qp->lost) {
		send_reject(c);
		return;
	}
	c->e->n_strangers--;
	c->qp = qp;
	c->pd = qp->ibv.pd;
	c->state = RNIC_CONN_REPLIED;
	rnic_io_want(&c->io, EPOLLIN);
	if (alloc_jobs(c, qp) || send_hello(c, qp, true)) {
		rnic_conn_lost(c);
		return;
	}
	up(c, qp);
}

static bool read_request(struct rnic_conn *c)
{
	struct wire_mpa_hs hs;
	size_t had = c->part_len;
	int err = read_hello(c, &hs, &c->hello);

	if (err == -EAGAIN)
		return c->part_len != had;
	if (!err && hs.reply)
		err = -EPROTO;
	if (err == -EPROTO) {
		foreign(c, "it does not speak MPA with a Weft hello");
	} else if (err) {
		rnic_conn_lost(c);
	} else {
		c->crc = hs.crc;
		c->tx_marked = hs.markers;
		try_accept(c);
	}
	return true;
}

static bool evict(struct rnic_engine *e, enum rnic_conn_state state)
{
	struct rnic_conn *c;

	list_for_each (c, &e->conns, link) {
		if (c->state == state) {
			e->stats.foreign_streams++;
			rnic_conn_lost(c);
			return true;
		}
	}
	return false;
}

/* Room for one more connection that nobody has claimed. A peer that means it says hello
 * within a round trip, so the one that has been silent for longest goes; else the one
 * that has waited longest for a queue pair, which will try again if it is honest. */
static bool make_room(struct rnic_engine *e)
{
	return e->n_strangers < e->max_strangers || evict(e, RNIC_CONN_ACCEPTED) ||
	       evict(e, RNIC_CONN_HELD);
}

void rnic_conn_accepted(struct rnic_engine *e, int fd, struct in_addr peer)
{
	int on = 1;
	struct rnic_conn *c;

	if (!make_room(e)) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = conn_new(e, fd, EPOLLIN);
	if (!c)
		return;
	e->n_strangers++;
	c->peer = peer;
	c->state = RNIC_CONN_ACCEPTED;
	rnic_timer_arm(e, &c->timer, util_now_ns() + HANDSHAKE_NS);
}

void rnic_conn_scarce(int err)
{
	static atomic_bool told;

	util_log_once(
		&told, UTIL_LOG_WARN, "there can not be another connection: %s%s", strerror(err),
		err == EMFILE ? "; each needs a descriptor, 'ulimit -n' is how many there may be"
			      : "");
}

/* ---- the connecting side ---- */

static void begin_connect(struct rnic_qp *qp)
{
	const struct rnic_device *dev = qp->ctx->dev;
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr = dev->addr[qp->attr.ah_attr.grh.sgid_index].addr};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr = qp->peer,
				 .sin_port = htons((uint16_t)(qp->attr.dest_qp_num >> 8))};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct rnic_conn *c;

	if (fd < 0) {
		rnic_conn_scarce(errno);
	} else {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		/* The peer recognises us by our address. The port is chosen by connect,
		 * which can share it with connections to other peers. */
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		if (bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
		    (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)) {
			close(fd);
			fd = -1;
		}
	}
	c = conn_new(qp->e, fd, EPOLLOUT);
	if (!c) {
		reconnect_later(qp);
		return;
	}
	c->state = RNIC_CONN_CONNECTING;
	c->qp = qp;
	c->pd = qp->ibv.pd;
	c->peer = qp->peer;
	qp->conn = qp->rsp_conn = c;
	rnic_timer_arm(qp->e, &c->timer, util_now_ns() + HANDSHAKE_NS);
	if (alloc_jobs(c, qp))
		rnic_conn_lost(c);
}

static bool connected(struct rnic_conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	rnic_io_want(&c->io, EPOLLIN);
	if (err || send_hello(c, c->qp, false)) {
		rnic_conn_lost(c);
		return true;
	}
	c->state = RNIC_CONN_REQUEST;
	return true;
}

static bool read_reply(struct rnic_conn *c)
{
	struct rnic_qp *qp = c->qp;
	struct wire_mpa_hs hs;
	size_t had = c->part_len;
	int err = read_hello(c, &hs, &c->hello);

	if (err == -EAGAIN)
		return c->part_len != had;
	if (!err && (!hs.reply || !hello_fits(qp, c)))
		err = -EPROTO;
	if (err) {
		if (err == -EPROTO)
			foreign(c, "what answered is not the queue pair that was named");
		else
			rnic_conn_lost(c);
		return true;
	}
	c->crc |= hs.crc;
	c->tx_marked = hs.markers;
	c->state = RNIC_CONN_UP;
	rnic_timer_cancel(c->e, &c->timer);
	up(c, qp);
	c->owe_probe = true; /* our first word lets the peer speak */
	rnic_stream_pump(c);
	return true;
}

static bool handshake_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_conn *c = (struct rnic_conn *)io;

	switch (c->state) {
	case RNIC_CONN_CONNECTING:
		/* A poller's guess says nothing about a connection that is being made. */
		return events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? connected(c) : false;
	case RNIC_CONN_REQUEST:
		return read_reply(c);
	case RNIC_CONN_ACCEPTED:
		return read_request(c);
	case RNIC_CONN_HELD:
		if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
			rnic_conn_lost(c);
		return false;
	default:
		return false;
	}
}

/* ---- queue pairs ---- */

/* Both ends in one queue pair: a socket pair needs no handshake. */
static void connect_to_self(struct rnic_qp *qp)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd))
		return;
	for (int i = 0; i < 2; i++) {
		struct rnic_conn *c = conn_new(qp->e, fd[i], EPOLLIN);

		if (!c) {
			if (!i)
				close(fd[1]);
			else
				rnic_conn_lost(qp->conn);
			return;
		}
		c->qp = qp;
		c->pd = qp->ibv.pd;
		c->state = RNIC_CONN_UP;
		c->crc = util_tune_bool(rnic_tune(RNIC_TUNE_CRC));
		c->io.ready = rnic_stream_ready;
		if (i)
			qp->rsp_conn = c;
		else
			qp->conn = c;
		if (alloc_jobs(c, qp)) {
			rnic_conn_lost(c);
			return;
		}
	}
}

static bool we_connect(const struct rnic_qp *qp)
{
	struct in_addr own = qp->ctx->dev->addr[qp->attr.ah_attr.grh.sgid_index].addr;

	if (qp->ibv.qp_num != qp->attr.dest_qp_num)
		return qp->ibv.qp_num < qp->attr.dest_qp_num;
	return ntohl(own.s_addr) < ntohl(qp->peer.s_addr);
}

static void on_connect_timer(struct rnic_timer *t, uint64_t now)
{
	struct rnic_qp *qp = container_of(t, struct rnic_qp, connect_timer);

	(void)now;
	if (ready_to_receive(qp) && !qp->conn && !qp->lost)
		begin_connect(qp);
}

void rnic_conn_start(struct rnic_qp *qp)
{
	struct rnic_conn *c, *tmp;

	qp->lost = false;
	qp->backoff = BACKOFF_MIN;
	rnic_timer_cancel(qp->e, &qp->connect_timer);
	rnic_timer_init(&qp->connect_timer, on_connect_timer);
	if (qp->ibv.qp_num == qp->attr.dest_qp_num &&
	    rnic_addr_index(qp->ctx->dev, qp->peer) >= 0) {
		connect_to_self(qp);
	} else if (we_connect(qp)) {
		begin_connect(qp);
	} else {
		list_for_each_safe (c, tmp, &qp->e->conns, link) {
			if (c->state == RNIC_CONN_HELD && c->hello.dst_qpn == qp->ibv.qp_num)
				try_accept(c);
		}
	}
}

void rnic_conn_release(struct rnic_conn *c)
{
	if (!c || c->io.fd < 0)
		return;
	if (c->state != RNIC_CONN_UP) {
		c->state = RNIC_CONN_LINGER;
		detach(c);
		conn_close(c);
		return;
	}
	/* Acknowledgements that are held back go first: they name what was executed. */
	if (c->owe_ack || c->owe_rnr)
		rnic_stream_pump(c);
	if (c->io.fd < 0)
		return;
	detach(c);
	if (!c->owe_term)
		c->job_head = c->job_tail;
	c->state = RNIC_CONN_LINGER;
	rnic_timer_arm(c->e, &c->timer, util_now_ns() + LINGER_NS);
	rnic_stream_pump(c);
}

void rnic_conn_terminate(struct rnic_conn *c, struct wire_term *why, const uint8_t *ulpdu,
			 size_t len)
{
	struct rnic_qp *qp = c->qp;
	enum ibv_event_type event = IBV_EVENT_QP_REQ_ERR;

	if (!qp)
		return; /* a full completion queue has broken it already */
	util_log(UTIL_LOG_INFO, "QP 0x%06x: request of peer 0x%06x refused: %s", qp->ibv.qp_num,
		 qp->attr.dest_qp_num, wire_term_str(why));
	if (ulpdu)
		wire_term_cite(why, ulpdu, len);
	c->term = *why;
	c->owe_term = true;
	if (why->layer == WIRE_LAYER_LLP)
		event = IBV_EVENT_QP_FATAL;
	else if ((why->layer == WIRE_LAYER_RDMAP && why->etype == WIRE_ETYPE_RDMAP_PROTECTION) ||
		 (why->layer == WIRE_LAYER_DDP && why->etype == WIRE_ETYPE_DDP_TAGGED))
		event = IBV_EVENT_QP_ACCESS_ERR;
	rnic_event_raise(qp->ctx, event, qp);
	rnic_req_reap(qp); /* a request of ours may be what failed */
	rnic_qp_error(qp);
}
