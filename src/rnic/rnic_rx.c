/* Receiving on an open connection: taking the byte stream apart. */
#include <errno.h>
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
	case WIRE_CTL_PACE:
		c->lazy = ctl->arg;
		c->want_pump |= !c->lazy && c->owe_ack;
		break;
	case WIRE_CTL_DAMAGED:
		rnic_req_damaged(qp, ctl->seq);
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

/* A frame whose CRC is wrong. TCP has checked the bytes, so the likely cause is a sender
 * whose application wrote into the buffer while it was being sent. If the frame is a
 * request, it can be asked for again; true: it was, and the stream goes on behind it. */
static bool ask_again(struct rnic_conn *c, const uint8_t *ulpdu, size_t len)
{
	static atomic_bool told;
	struct wire_term why;
	struct wire_seg seg;

	if (c->rx_marked || c->state != RNIC_CONN_UP || c->qp->ibv.qp_type != IBV_QPT_RC ||
	    wire_seg_decode(&seg, ulpdu, len, &why) < 0 ||
	    (seg.tagged ? seg.opcode != WIRE_OP_WRITE : seg.qn != WIRE_QN_SEND) ||
	    !rnic_rsp_damaged(c->qp, c))
		return false;
	c->e->stats.bad_crc++;
	util_log_once(&told, UTIL_LOG_WARN,
		      "a message arrived damaged and is sent again; was its buffer written to "
		      "before the send completed? (further ones are only counted)");
	return true;
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
		if (n == -EBADMSG && !c->rx_marked) {
			ulpdu_len = (size_t)buf[used] << 8 | buf[used + 1];
			if (ask_again(c, buf + used + WIRE_MPA_LEN_HDR, ulpdu_len)) {
				used += wire_mpa_fpdu_len(ulpdu_len);
				continue;
			}
		}
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

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
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
	if (c->io.fd >= 0 && c->qp)
		c->due.busy = c->lazy || c->part || c->qp->rsp.receiving || c->qp->rsp.write_len;
	if (c->io.fd >= 0 && c->want_pump)
		rnic_stream_pump(c);
	return did;
}

bool rnic_stream_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_conn *c = (struct rnic_conn *)io;
	bool did = false;

	if (c->state == RNIC_CONN_LINGER) {
		if (events & EPOLLOUT) {
			did = true;
			rnic_stream_pump(c);
		}
		if (c->io.fd >= 0)
			did |= discard(c);
		return did;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		did = receive(c);
	if (c->io.fd >= 0 && events & EPOLLOUT) {
		did = true;
		rnic_stream_pump(c);
	}
	return did;
}
