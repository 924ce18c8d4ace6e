/* Sending on an open connection: what goes out, in which order, in how many calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "rnic_conn.h"

/* Bytes handed to the kernel in one call, if there are as many. TCP is a quarter faster
 * with 256 KB than with 64 KB in a call; MSG_MORE, which should have the same effect,
 * halves the bandwidth instead, because the receiver gets its data late and in bursts. */
#define BATCH (256 * 1024)
/* Of these, at most about this many are copied first. */
#define BATCH_STAGED (64 * 1024)
/* Calls in a row for one connection: others, and what comes in, want their turn. */
#define BATCHES_PER_PUMP 4
/* Pieces of one call: frames that are built in the engine's buffer are one piece as long
 * as no payload lies between them. */
#define PIECES 80
_Static_assert(BATCH_STAGED + WIRE_MPA_FPDU_MAX <= RNIC_TXBUF, "a batch and its last frame fit");
_Static_assert(2 * (BATCH / RNIC_DIRECT_MIN + 1) + 1 <= PIECES, "so do its pieces");

/* A stream of messages is acknowledged at least this often. Each acknowledgement is a
 * packet that the sender's core has to take in, so as rarely as its queues bear it. */
#define ACK_MESSAGES 16
#define ACK_BYTES    (1 << 20)

struct batch {
	struct iovec iov[PIECES];
	int n;
	size_t staged; /* bytes in the engine's buffer */
	size_t len;    /* all bytes */
};

static void add_piece(struct batch *b, const void *base, size_t len)
{
	struct iovec *last = b->n ? &b->iov[b->n - 1] : NULL;

	if (!len)
		return;
	if (last && (char *)last->iov_base + last->iov_len == base)
		last->iov_len += len;
	else
		b->iov[b->n++] = (struct iovec){(void *)base, len};
	b->len += len;
}

static void add_frame(struct batch *b, const uint8_t *buf, size_t len,
		      const struct rnic_direct *direct)
{
	size_t head = direct->len ? direct->at : len;

	add_piece(b, buf, head);
	add_piece(b, direct->data, direct->len);
	add_piece(b, buf + head, len - head);
	b->staged += len;
}

static int make_room(struct rnic_conn *c, size_t len)
{
	uint8_t *p;

	if (c->pend_off == c->pend_len)
		c->pend_off = c->pend_len = 0;
	if (c->pend_len + len <= c->pend_cap)
		return 0;
	p = realloc(c->pend, c->pend_len + len);
	if (!p)
		return -ENOMEM;
	c->pend = p;
	c->pend_cap = c->pend_len + len;
	return 0;
}

/* Keeps what the kernel did not take: all pieces but their first `skip` bytes. */
static int keep(struct rnic_conn *c, const struct iovec *iov, int n, size_t skip, size_t len)
{
	if (make_room(c, len - skip))
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		size_t part = iov[i].iov_len > skip ? iov[i].iov_len - skip : 0;

		if (rnic_guard_copy(c->pend + c->pend_len,
				    (char *)iov[i].iov_base + iov[i].iov_len - part, part))
			return -EFAULT;
		c->pend_len += part;
		skip -= iov[i].iov_len - part;
	}
	return 0;
}

/* Returns the bytes taken, or -errno; a full socket takes 0. */
static ssize_t put(struct rnic_conn *c, struct iovec *iov, int n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	ssize_t sent;

	if (n == 1)
		sent = send(c->io.fd, iov->iov_base, iov->iov_len, flags);
	else
		sent = sendmsg(c->io.fd, &msg, flags);
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int write_pieces(struct rnic_conn *c, struct iovec *iov, int n, size_t len)
{
	ssize_t sent = 0;

	if (c->pend_off == c->pend_len) {
		sent = put(c, iov, n);
		if (sent < 0)
			return (int)sent;
	}
	if ((size_t)sent == len)
		return 0;
	rnic_io_want(&c->io, EPOLLIN | EPOLLOUT);
	return keep(c, iov, n, (size_t)sent, len);
}

int rnic_stream_write(struct rnic_conn *c, const uint8_t *buf, size_t len)
{
	struct iovec iov = {(void *)buf, len};

	return write_pieces(c, &iov, 1, len);
}

static int flush_pending(struct rnic_conn *c)
{
	while (c->pend_off < c->pend_len) {
		struct iovec iov = {c->pend + c->pend_off, c->pend_len - c->pend_off};
		ssize_t n = put(c, &iov, 1);

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
	if (c->owe_damaged && rsp)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_DAMAGED, 0, rsp->done + 1);
	if (c->owe_pace)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_PACE, c->lazy_wanted, 0);
	if (c->owe_ready)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_READY, 0, c->ready_seq);
	if (c->owe_retry)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_RETRY, 0, c->retry_seq);
	if (c->owe_probe)
		len += rnic_frame_control(c, buf + len, WIRE_CTL_PROBE, 0, 0);
	c->owe_ack = c->owe_rnr = c->owe_damaged = false;
	c->owe_pace = c->owe_ready = c->owe_retry = c->owe_probe = false;
	rnic_due_rides(&c->due);
	return len;
}

/* Responses and requests take turns, frame by frame, so that neither a large read nor
 * a large write holds up the other direction's work. */
static size_t data_frame(struct rnic_conn *c, uint8_t *buf, struct rnic_direct *direct)
{
	size_t len = 0;

	for (int i = 0; i < 2 && !len; i++) {
		c->turn = !c->turn;
		if (c->turn)
			len = rnic_rsp_frame(c, buf);
		else if (c->qp && c == c->qp->conn)
			len = rnic_req_frame(c->qp, buf, direct);
	}
	return len;
}

static size_t next_frame(struct rnic_conn *c, uint8_t *buf, struct rnic_direct *direct)
{
	size_t len;

	if (c->owe_ack || c->owe_rnr || c->owe_damaged || c->owe_ready || c->owe_retry ||
	    c->owe_probe || c->owe_pace) {
		len = control_frames(c, buf);
		if (len)
			return len;
	}
	len = data_frame(c, buf, direct);
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

		err = rnic_stream_write(c, out, n);
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

void rnic_stream_pump(struct rnic_conn *c)
{
	struct rnic_engine *e = c->e;
	bool all = false; /* nothing is left to send */
	uint32_t sent;
	int err = 0;

	if (c->io.fd < 0 || (c->state != RNIC_CONN_UP && c->state != RNIC_CONN_LINGER))
		return;
	sent = c->qp ? c->qp->req.sent_seq : 0;
	c->want_pump = false;
	err = flush_pending(c);
	for (int batches = 0; !err; batches++) {
		struct batch b = {.n = 0};
		size_t n = 1;

		if (batches == BATCHES_PER_PUMP) {
			rnic_io_want(&c->io, EPOLLIN | EPOLLOUT); /* go on in the next pass */
			break;
		}
		while (n && b.len < BATCH && b.staged < BATCH_STAGED) {
			struct rnic_direct direct = {0};

			n = next_frame(c, e->txbuf + b.staged, &direct);
			add_frame(&b, e->txbuf + b.staged, n, &direct);
		}
		if (!b.len) {
			all = true;
			break;
		}
		err = c->tx_marked ? write_marked(c, e->txbuf, b.staged)
				   : write_pieces(c, b.iov, b.n, b.len);
		if (!err && c->pend_off < c->pend_len)
			err = -EAGAIN;
	}
	if (c->qp && c->qp->conn == c) {
		if (c->qp->req.sent_seq != sent)
			rnic_req_pace(c->qp); /* only then has something changed */
		rnic_req_reap(c->qp);
	}
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
	rnic_due_add(c->e, &c->due, c->e->now);
}
