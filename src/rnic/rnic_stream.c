/* Traffic on an open connection: what goes out in which order, and taking the byte
 * stream apart. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "util_log.h"
#include "rnic_conn.h"

/* A pass gives one connection at most this many reads, so that others get their turn. */
#define READS_PER_PASS 4

/* Bytes handed to the kernel in one call, if there are as many. */
#define BATCH 65536
/* Calls in a row for one connection: others, and what comes in, want their turn. */
#define BATCHES_PER_PUMP 8
_Static_assert(BATCH + WIRE_MPA_FPDU_MAX <= RNIC_TXBUF, "a batch and its last frame fit");

/* A stream of messages is acknowledged at least this often. Each acknowledgement is a
 * packet that the sender's core has to take in, so as rarely as its queues bear it. */
#define ACK_MESSAGES 16
#define ACK_BYTES    (1 << 20)

/* ---- sending ---- */

static int keep(struct rnic_conn *c, const uint8_t *buf, size_t len)
{
	if (c->pend_off == c->pend_len)
		c->pend_off = c->pend_len = 0;
	if (c->pend_len + len > c->pend_cap) {
		size_t cap = c->pend_len + len;
		uint8_t *p = realloc(c->pend, cap);

		if (!p)
			return -ENOMEM;
		c->pend = p;
		c->pend_cap = cap;
	}
	memcpy(c->pend + c->pend_len, buf, len);
	c->pend_len += len;
	return 0;
}

/* Returns the bytes taken, or -errno; a full socket takes 0. */
static ssize_t put(struct rnic_conn *c, const uint8_t *buf, size_t len, bool more)
{
	ssize_t n = send(c->io.fd, buf, len,
			 MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));

	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int rnic_stream_write(struct rnic_conn *c, const uint8_t *buf, size_t len, bool more)
{
	ssize_t n = 0;

	if (c->pend_off == c->pend_len) {
		n = put(c, buf, len, more);
		if (n < 0)
			return (int)n;
	}
	if ((size_t)n == len)
		return 0;
	rnic_io_want(&c->io, EPOLLIN | EPOLLOUT);
	return keep(c, buf + n, len - (size_t)n);
}

static int flush_pending(struct rnic_conn *c)
{
	while (c->pend_off < c->pend_len) {
		ssize_t n = put(c, c->pend + c->pend_off, c->pend_len - c->pend_off,
				false);

		if (n < 0)
			return (int)n;
		if (!n) {
			rnic_io_want(&c->io, EPOLLIN | EPOLLOUT);
			return -EAGAIN;
		}
		c->pend_off += (size_t)n;
	}
	/* A connection that is keeping up holds no buffer. */
	free(c->pend);
	c->pend = NULL;
	c->pend_len = c->pend_off = c->pend_cap = 0;
	rnic_io_want(&c->io, EPOLLIN);
	return 0;
}

static size_t term_frame(struct rnic_conn *c, uint8_t *buf)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_TERMINATE, .last = true, .qn = WIRE_QN_TERMINATE, .msn = 1};
	uint8_t payload[WIRE_TERM_MAX];
	struct rnic_frame f;
	size_t len = wire_term_encode(&c->term, payload);

	rnic_frame_begin(&f, buf, &seg, len, c->crc);
	rnic_frame_add(&f, payload, len, c->crc);
	c->owe_term = false;
	c->e->stats.terminates_sent++;
	return rnic_frame_end(&f, c->crc);
}

/* Control messages, in the order in which the peer must see them: first what was
 * executed, then what could not be. */
static size_t control_frames(struct rnic_conn *c, uint8_t *buf)
{
	struct rnic_rsp *rsp = c->qp ? &c->qp->rsp : NULL;
	size_t len = 0;

	if (c->owe_ack && rsp) {
		len += rnic_frame_control(c, buf + len, WIRE_CTL_ACK, 0, rsp->done);
		rsp->acked = rsp->done;
		c->unacked = 0;
	}
	if (c->owe_rnr && rsp) {
		len += rnic_frame_control(c, buf + len, WIRE_CTL_RNR, c->qp->attr.min_rnr_timer,
					  rsp->done + 1);
		c->e->stats.rnr_sent++;
	}
	if (c->owe_ready)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_READY, 0, c->ready_seq);
	if (c->owe_retry)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_RETRY, 0, c->retry_seq);
	if (c->owe_probe)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_PROBE, 0, 0);
	c->owe_ack = c->owe_rnr = c->owe_ready = c->owe_retry = c->owe_probe = false;
	list_del(&c->due.link);
	return len;
}

/* Responses and requests take turns, frame by frame, so that neither a large read nor
 * a large write holds up the other direction's work. */
static size_t data_frame(struct rnic_conn *c, uint8_t *buf)
{
	size_t len = 0;

	for (int i = 0; i < 2 && !len; i++) {
		c->turn = !c->turn;
		if (c->turn)
			len = rnic_rsp_frame(c, buf);
		else if (c->qp && c == c->qp->conn)
			len = rnic_req_frame(c->qp, buf);
	}
	return len;
}

static size_t next_frame(struct rnic_conn *c, uint8_t *buf)
{
	size_t len;

	if (c->owe_ack || c->owe_rnr || c->owe_ready || c->owe_retry || c->owe_probe) {
		len = control_frames(c, buf);
		if (len)
			return len;
	}
	len = data_frame(c, buf);
	if (!len && c->owe_term)
		len = term_frame(c, buf);
	return len;
}

/* With markers, the frames just built are taken apart again and rebuilt. Slow, and
 * only for peers that insist. */
static int write_marked(struct rnic_conn *c, uint8_t *buf, size_t len)
{
	static const size_t room = WIRE_MPA_FPDU_MARKED_MAX;
	uint8_t *out = malloc(room);
	int err = 0;

	if (!out)
		return -ENOMEM;
	for (size_t at = 0; at < len && !err;) {
		size_t ulpdu_len = ((size_t)buf[at] << 8) | buf[at + 1];
		size_t n = wire_mpa_mark_fpdu(&c->tx_mark, out, buf + at + WIRE_MPA_LEN_HDR,
					      ulpdu_len, c->crc);

		err = rnic_stream_write(c, out, n, true);
		at += wire_mpa_fpdu_len(ulpdu_len);
	}
	free(out);
	return err;
}

/* After the last word: no more sending, but the peer's bytes must be read until its
 * end, because closing a socket with unread data resets the connection and may take
 * the last word with it. */
static void finish(struct rnic_conn *c)
{
	shutdown(c->io.fd, SHUT_WR);
}

static void uncork(struct rnic_conn *c)
{
	int on = 1;

	setsockopt(c->io.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void rnic_stream_pump(struct rnic_conn *c)
{
	struct rnic_engine *e = c->e;
	bool held = false; /* TCP waits for more */
	bool all = false;  /* nothing is left to send */
	int err = 0;

	if (c->io.fd < 0 || (c->state != RNIC_CONN_UP && c->state != RNIC_CONN_LINGER))
		return;
	c->want_pump = false;
	err = flush_pending(c);
	for (int batches = 0; !err; batches++) {
		size_t len = 0, n = 1;

		if (batches == BATCHES_PER_PUMP) {
			rnic_io_want(&c->io, EPOLLIN | EPOLLOUT); /* go on in the next pass */
			break;
		}

		while (n && len < BATCH) {
			n = next_frame(c, e->txbuf + len);
			len += n;
		}
		if (!len) {
			all = true;
			break;
		}
		/* While there is more to come, TCP fills its segments across calls. */
		err = c->tx_marked ? write_marked(c, e->txbuf, len)
				   : rnic_stream_write(c, e->txbuf, len, n != 0);
		held = n != 0 || c->tx_marked;
		if (!err && c->pend_off < c->pend_len)
			err = -EAGAIN;
	}
	if (held && !err)
		uncork(c); /* more was expected, but none came */
	if (c->qp && c->qp->conn == c)
		rnic_req_reap(c->qp);
	if (c->failed && c->qp)
		rnic_qp_error(c->qp);
	if (err && err != -EAGAIN)
		rnic_conn_lost(c);
	else if (all && c->state == RNIC_CONN_LINGER)
		finish(c);
}

static void run_due(struct rnic_due *d)
{
	rnic_stream_pump(container_of(d, struct rnic_conn, due));
}

void rnic_stream_owe_ack(struct rnic_conn *c, size_t bytes)
{
	c->owe_ack = true;
	c->unacked += bytes;
	if (c->qp->rsp.done - c->qp->rsp.acked >= ACK_MESSAGES || c->unacked >= ACK_BYTES)
		c->want_pump = true;
	c->due.run = run_due;
	rnic_due_add(c->e, &c->due);
}

/* ---- receiving ---- */

static void control(struct rnic_conn *c, const struct wire_ctl *ctl)
{
	struct rnic_qp *qp = c->qp;

	switch (ctl->type) {
	case WIRE_CTL_ACK:
		rnic_req_ack(qp, ctl->seq);
		break;
	case WIRE_CTL_RNR:
		rnic_req_rnr(qp, ctl->seq, ctl->arg);
		break;
	case WIRE_CTL_READY:
		rnic_req_ready(qp, ctl->seq);
		break;
	case WIRE_CTL_RETRY:
		rnic_rsp_retry(qp, ctl->seq);
		break;
	}
}

static int protocol_error(struct wire_term *why, uint8_t layer, uint8_t etype, uint8_t ecode)
{
	*why = (struct wire_term){.layer = layer, .etype = etype, .ecode = ecode};
	return -EPROTO;
}

/* One whole segment. 0, or -EPROTO with *why. */
static int segment(struct rnic_conn *c, const uint8_t *ulpdu, size_t len, struct wire_term *why)
{
	struct rnic_qp *qp = c->qp;
	struct wire_seg seg;
	struct wire_term term;
	struct wire_ctl ctl;
	int hdr = wire_seg_decode(&seg, ulpdu, len, why);

	if (hdr < 0)
		return hdr;
	ulpdu += hdr;
	len -= (size_t)hdr;
	switch (seg.opcode) {
	case WIRE_OP_READ_RESP:
		return rnic_req_read_resp(qp, &seg, ulpdu, len, why);
	case WIRE_OP_ATOMIC_RESP:
		return rnic_req_atomic_resp(qp, &seg, ulpdu, len, why);
	case WIRE_OP_CONTROL:
		if (wire_ctl_decode(&ctl, ulpdu, len))
			return protocol_error(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
					      WIRE_RDMAP_UNSPECIFIED);
		control(c, &ctl);
		return 0;
	case WIRE_OP_TERMINATE:
		c->e->stats.terminates_got++;
		if (wire_term_decode(&term, ulpdu, len))
			term = (struct wire_term){.ecode = WIRE_RDMAP_UNSPECIFIED};
		rnic_req_terminated(qp, &term);
		return 0;
	default:
		return rnic_rsp_segment(qp, c, &seg, ulpdu, len, why);
	}
}

/* Handles one frame; false when the connection is no longer with us. */
static bool deliver(struct rnic_conn *c, const uint8_t *ulpdu, size_t len)
{
	struct wire_term why = {0};

	if (c->state == RNIC_CONN_REPLIED) {
		c->state = RNIC_CONN_UP;
		c->want_pump = true; /* sends may have waited for this */
		rnic_timer_cancel(c->e, &c->timer);
	}
	c->qp->req.progress++;
	if (segment(c, ulpdu, len, &why) < 0)
		rnic_conn_terminate(c, &why, ulpdu, len);
	return c->io.fd >= 0 && c->qp && c->state == RNIC_CONN_UP;
}

static void bad_frame(struct rnic_conn *c, int err)
{
	static atomic_bool told;
	struct wire_term why = {.layer = WIRE_LAYER_LLP,
				.ecode = err == -EBADMSG ? WIRE_MPA_CRC : WIRE_MPA_MARKER};

	if (err == -EBADMSG)
		c->e->stats.bad_crc++;
	util_log_once(&told, UTIL_LOG_WARN, "a peer's stream is damaged (%s): connection closed",
		      wire_term_str(&why));
	rnic_conn_terminate(c, &why, NULL, 0);
}

/* Keeps the beginning of a frame until the rest comes. */
static bool save_part(struct rnic_conn *c, const uint8_t *buf, size_t len, size_t need)
{
	size_t cap = need > 64 ? need : 64;
	uint8_t *p = malloc(cap > len ? cap : len);

	if (!p)
		return false;
	memcpy(p, buf, len);
	c->part = p;
	c->part_len = len;
	c->part_cap = cap > len ? cap : len;
	return true;
}

/* Parses frames; returns the bytes used, stops early when the connection goes. */
static size_t parse(struct rnic_conn *c, const uint8_t *buf, size_t len, size_t *need, bool *alive)
{
	size_t used = 0, ulpdu_len;
	const uint8_t *ulpdu;

	*alive = true;
	while (used < len && *alive) {
		int n;

		if (c->rx_marked) {
			ulpdu = c->e->scratch;
			n = wire_mpa_mark_open(&c->rx_mark, buf + used, len - used, c->crc,
					       c->e->scratch, &ulpdu_len, need);
		} else {
			n = wire_mpa_fpdu_open(buf + used, len - used, c->crc, &ulpdu, &ulpdu_len,
					       need);
		}
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			bad_frame(c, n);
			*alive = false;
			break;
		}
		used += (size_t)n;
		*alive = deliver(c, ulpdu, ulpdu_len);
	}
	return used;
}

/* Takes new bytes behind a saved part. Grows the part until its frame is whole. */
static bool feed_part(struct rnic_conn *c, size_t added)
{
	size_t need = 0, used;
	uint8_t *part = c->part;
	bool alive;

	c->part_len += added;
	used = parse(c, part, c->part_len, &need, &alive);
	if (!alive || used == c->part_len) {
		/* deliver() may have freed the connection's part with the connection */
		if (c->part == part) {
			free(c->part);
			c->part = NULL;
			c->part_len = 0;
		}
		return alive;
	}
	c->part_len -= used;
	memmove(part, part + used, c->part_len);
	if (need > c->part_cap) {
		uint8_t *p = realloc(part, need);

		if (!p) {
			rnic_conn_lost(c);
			return false;
		}
		c->part = p;
		c->part_cap = need;
	}
	return true;
}

/* Bytes that came behind a part which is still not whole: its length was not known
 * when the room for it was chosen. */
static bool append_part(struct rnic_conn *c, const uint8_t *buf, size_t len)
{
	if (c->part_len + len > c->part_cap) {
		uint8_t *p = realloc(c->part, c->part_len + len);

		if (!p) {
			rnic_conn_lost(c);
			return false;
		}
		c->part = p;
		c->part_cap = c->part_len + len;
	}
	memcpy(c->part + c->part_len, buf, len);
	return feed_part(c, len);
}

static bool feed_rest(struct rnic_conn *c, const uint8_t *buf, size_t len)
{
	size_t need = 0, used;
	bool alive;

	used = parse(c, buf, len, &need, &alive);
	if (!alive || used == len)
		return alive;
	if (!save_part(c, buf + used, len - used, need)) {
		rnic_conn_lost(c);
		return false;
	}
	return true;
}

/* One read. Returns the bytes, 0 at the end of the stream, -errno. */
static ssize_t read_some(struct rnic_conn *c, size_t *to_part)
{
	struct iovec iov[2] = {{0}, {c->e->rxbuf, RNIC_RXBUF}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	*to_part = 0;
	if (c->part) {
		iov[0] = (struct iovec){c->part + c->part_len, c->part_cap - c->part_len};
		*to_part = iov[0].iov_len;
		n = recvmsg(c->io.fd, &msg, MSG_DONTWAIT);
	} else {
		n = recv(c->io.fd, c->e->rxbuf, RNIC_RXBUF, MSG_DONTWAIT);
	}
	return n < 0 ? -errno : n;
}

static bool discard(struct rnic_conn *c)
{
	ssize_t n = recv(c->io.fd, c->e->rxbuf, RNIC_RXBUF, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		rnic_conn_lost(c);
	return true;
}

static bool receive(struct rnic_conn *c)
{
	bool did = false;

	for (int i = 0; i < READS_PER_PASS; i++) {
		size_t to_part, part;
		ssize_t n = read_some(c, &to_part);
		bool alive = true;

		if (n == -EAGAIN || n == -EINTR)
			break;
		did = true;
		if (n <= 0) {
			rnic_conn_lost(c);
			break;
		}
		part = (size_t)n < to_part ? (size_t)n : to_part;
		if (part)
			alive = feed_part(c, part);
		/* Bytes behind the part: they continue it if it is still not whole. */
		if (alive && (size_t)n > part) {
			if (c->part) {
				alive = append_part(c, c->e->rxbuf, (size_t)n - part);
			} else {
				alive = feed_rest(c, c->e->rxbuf, (size_t)n - part);
			}
		}
		/* A short read has emptied the socket. */
		if (!alive || (size_t)n < to_part + RNIC_RXBUF)
			break;
	}
	if (c->io.fd >= 0 && c->want_pump)
		rnic_stream_pump(c);
	return did;
}

bool rnic_stream_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_conn *c = (struct rnic_conn *)io;
	bool did = false;

	if (c->state == RNIC_CONN_LINGER) {
		if (events & EPOLLOUT)
			rnic_stream_pump(c);
		if (c->io.fd >= 0)
			discard(c);
		return true;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		did = receive(c);
	if (c->io.fd >= 0 && events & EPOLLOUT) {
		did = true;
		rnic_stream_pump(c);
	}
	return did;
}
