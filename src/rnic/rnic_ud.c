/* UD: one UDP socket for each queue pair, one datagram for each message. The port of
 * the socket is the upper part of the queue pair's number, so a datagram's source
 * address says which queue pair it comes from. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_log.h"
#include "wire_crc32c.h"
#include "rnic_conn.h"
#include "rnic_table.h"

#define GRH 40
/* Adapters report in the service level which header the GRH holds; UCX reads it there. */
#define SL_IPV4 2
/* Datagrams taken from one socket in a pass, at most. A pass starts with one, because
 * asking for a second that is not there costs as much as the first; as long as passes
 * find what they ask for, they ask for twice as many. */
#define READS_PER_PASS 64

static struct rnic_qp *of(struct rnic_io *io)
{
	return container_of(io, struct rnic_qp, ud_io);
}

/* ---- sending ---- */

static size_t build(struct rnic_qp *qp, struct rnic_swqe *w, uint8_t *buf)
{
	bool se = w->flags & IBV_SEND_SOLICITED, imm = w->opcode == IBV_WR_SEND_WITH_IMM;
	struct wire_seg seg = {.opcode = imm ? (se ? WIRE_OP_SEND_IMM_SE : WIRE_OP_SEND_IMM)
					     : (se ? WIRE_OP_SEND_SE : WIRE_OP_SEND),
			       .last = true,
			       .qn = WIRE_QN_SEND,
			       .msn = w->mgid_hash ? w->mgid_hash : ++qp->ud_msn,
			       .mo = imm ? ntohl(w->imm) : 0};
	size_t hdr;
	enum rnic_mem_error err = RNIC_MEM_OK;
	uint32_t crc;

	/* IBTA: a Q_Key with the top bit set asks for the queue pair's own. */
	seg.ulp = w->qkey & 0x80000000 ? qp->attr.qkey : w->qkey;
	hdr = wire_dgram_encode(&seg, buf);
	crc = wire_crc32c(0, buf + 4, hdr - 4);
	if (w->inl)
		crc = wire_crc32c_copy(crc, buf + hdr, w->sge, w->length);
	else
		err = rnic_mem_gather(qp->e, qp->ibv.pd, w->sge, w->num_sge, 0, buf + hdr,
				      w->length, &crc);
	if (err)
		return 0;
	for (int i = 0; i < 4; i++)
		buf[i] = (uint8_t)(crc >> (8 * i));
	return hdr + w->length;
}

/* As transmit, where the kernel must be told which of our addresses is the source, or
 * which interface a multicast datagram takes. */
static ssize_t transmit_from(struct rnic_qp *qp, const struct rnic_swqe *w, void *buf, size_t len,
			     struct sockaddr_in *to)
{
	struct iovec iov = {buf, len};
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} ctl = {0};
	struct in_pktinfo *pi = (struct in_pktinfo *)CMSG_DATA(&ctl.hdr);
	struct msghdr msg = {.msg_name = to,
			     .msg_namelen = sizeof(*to),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &ctl,
			     .msg_controllen = sizeof(ctl.room)};

	ctl.hdr.cmsg_level = IPPROTO_IP;
	ctl.hdr.cmsg_type = IP_PKTINFO;
	ctl.hdr.cmsg_len = CMSG_LEN(sizeof(*pi));
	pi->ipi_spec_dst = qp->ctx->dev->addr[w->sgid_index].addr;
	if (w->mgid_hash)
		pi->ipi_ifindex = (int)qp->ctx->dev->addr[w->sgid_index].ifindex;
	return sendmsg(qp->ud_io.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t transmit(struct rnic_qp *qp, const struct rnic_swqe *w, void *buf, size_t len)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr = w->dst,
				 .sin_port = htons((uint16_t)(w->dst_qpn >> 8))};
	int fast = w->mgid_hash ? -1 : rnic_ud_fast(qp, &to, w->sgid_index);

	/* Whatever is wrong there, a full buffer or an error that the peer's machine
	 * reported for an earlier datagram, the other socket has its own say. */
	if (fast >= 0 && send(fast, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return (ssize_t)len;
	if (qp->ctx->dev->n_addr > 1 || w->mgid_hash)
		return transmit_from(qp, w, buf, len, &to);
	return sendto(qp->ud_io.fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
		      sizeof(to));
}

/* One work request. False: the socket is full. */
static bool send_one(struct rnic_qp *qp, struct rnic_swqe *w)
{
	static atomic_bool told;
	size_t len;

	if (w->length > WIRE_DGRAM_PAYLOAD_MAX) {
		w->status = IBV_WC_LOC_LEN_ERR;
		return true;
	}
	len = build(qp, w, qp->e->txbuf);
	if (!len) {
		w->status = IBV_WC_LOC_PROT_ERR;
		return true;
	}
	if (transmit(qp, w, qp->e->txbuf, len) >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	/* Unreliable: a datagram without a way is a datagram lost. */
	qp->e->stats.ud_dropped++;
	util_log_once(&told, UTIL_LOG_INFO, "UD datagram dropped: %s", strerror(errno));
	return true;
}

void rnic_ud_pump(struct rnic_qp *qp)
{
	bool room = true;

	while (room && qp->sq.tx != qp->sq.tail && qp->ibv.state == IBV_QPS_RTS) {
		struct rnic_swqe *w = rnic_swqe(qp, qp->sq.tx);

		room = send_one(qp, w);
		if (qp->ibv.state != IBV_QPS_RTS || (room && w->status))
			break; /* all is flushed, or this one is to be reported */
		if (room)
			qp->sq.tx++;
	}
	rnic_io_want(&qp->ud_io, room ? EPOLLIN : EPOLLIN | EPOLLOUT);
	rnic_req_reap(qp);
}

/* ---- receiving ---- */

static void make_grh(uint8_t *grh, size_t len, struct in_addr from, struct in_addr to)
{
	struct iphdr ip = {.version = 4,
			   .ihl = 5,
			   .tot_len = htons((uint16_t)(len + 28)),
			   .ttl = 64,
			   .protocol = IPPROTO_UDP,
			   .saddr = from.s_addr,
			   .daddr = to.s_addr};

	memset(grh, 0, GRH - sizeof(ip));
	memcpy(grh + GRH - sizeof(ip), &ip, sizeof(ip));
}

void rnic_ud_deliver(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *payload,
		     size_t len, struct sockaddr_in *from, struct in_addr to)
{
	struct ibv_wc wc = {.opcode = IBV_WC_RECV,
			    .byte_len = (uint32_t)len + GRH,
			    .src_qp = (uint32_t)ntohs(from->sin_port) << 8 | RNIC_UD_INDEX,
			    .slid = (uint16_t)ntohl(from->sin_addr.s_addr),
			    .sl = SL_IPV4,
			    .wc_flags = IBV_WC_GRH};
	struct rnic_rwqe *wqe = qp->rsp.wqe;
	struct ibv_pd *pd = rnic_recv_pd(qp);
	uint8_t grh[GRH];

	if (seg->ulp != qp->attr.qkey) {
		static atomic_bool told;

		qp->e->stats.bad_qkey++;
		util_log_once(&told, UTIL_LOG_INFO, "UD datagram with a wrong Q_Key dropped");
		return;
	}
	if (!rnic_recv_take(qp, wqe, NULL)) {
		qp->e->stats.ud_dropped++;
		return;
	}
	make_grh(grh, len, from->sin_addr, to);
	wc.wr_id = wqe->wr_id;
	if (len + GRH > wqe->length)
		wc.status = IBV_WC_LOC_LEN_ERR;
	else if (rnic_mem_scatter(qp->e, pd, wqe->sge, wqe->num_sge, 0, grh, GRH) ||
		 rnic_mem_scatter(qp->e, pd, wqe->sge, wqe->num_sge, GRH, payload, (uint32_t)len))
		wc.status = IBV_WC_LOC_PROT_ERR;
	if (seg->opcode == WIRE_OP_SEND_IMM || seg->opcode == WIRE_OP_SEND_IMM_SE) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = htonl(seg->mo);
	}
	rnic_complete_recv(qp, &wc,
			   seg->opcode == WIRE_OP_SEND_SE || seg->opcode == WIRE_OP_SEND_IMM_SE);
}

/* Receives one datagram into the engine's buffer, and learns which of our addresses it
 * was sent to. Its length, or -1. */
ssize_t rnic_ud_recv(struct rnic_engine *e, int fd, struct sockaddr_in *from, struct in_addr *to)
{
	struct iovec iov = {e->rxbuf, RNIC_RXBUF};
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} ctl;
	struct msghdr msg = {.msg_name = from,
			     .msg_namelen = sizeof(*from),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &ctl,
			     .msg_controllen = sizeof(ctl.room)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return n;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h))
		if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO)
			*to = ((struct in_pktinfo *)CMSG_DATA(h))->ipi_addr;
	return n;
}

bool rnic_ud_decode(struct rnic_engine *e, struct wire_seg *seg, size_t len)
{
	static atomic_bool told;
	int hdr = wire_dgram_decode(seg, e->rxbuf, len);

	if (hdr >= 0)
		return true;
	if (hdr == -EBADMSG)
		e->stats.bad_crc++;
	else
		e->stats.foreign_dgrams++;
	util_log_once(&told, UTIL_LOG_WARN,
		      "dropped a datagram that is %s (further ones are only counted)",
		      hdr == -EBADMSG ? "damaged" : "not Weft's");
	return false;
}

static ssize_t receive(struct rnic_qp *qp, int fd, bool ask, struct sockaddr_in *from,
		       struct in_addr *to)
{
	socklen_t len = sizeof(*from);

	if (ask)
		return rnic_ud_recv(qp->e, fd, from, to);
	return recvfrom(fd, qp->e->rxbuf, RNIC_RXBUF, MSG_DONTWAIT, (struct sockaddr *)from, &len);
}

bool rnic_ud_drain(struct rnic_qp *qp, int fd, bool ask, uint8_t sgid_index, uint32_t events)
{
	unsigned int got = 0, want = qp->ud_burst ? qp->ud_burst : 1;

	while (got < want && events & (EPOLLIN | EPOLLERR)) {
		struct sockaddr_in from;
		struct in_addr to = qp->ctx->dev->addr[sgid_index].addr;
		struct wire_seg seg;
		ssize_t n = receive(qp, fd, ask, &from, &to);

		if (n < 0)
			break;
		got++;
		if (qp->ibv.state < IBV_QPS_RTR || qp->ibv.state == IBV_QPS_ERR)
			continue; /* not listening */
		if (rnic_ud_decode(qp->e, &seg, (size_t)n))
			rnic_ud_deliver(qp, &seg, qp->e->rxbuf + WIRE_DGRAM_HDR,
					(size_t)n - WIRE_DGRAM_HDR, &from, to);
	}
	if (got < want)
		qp->ud_burst = got ? 1 : 0;
	else if (qp->ud_burst)
		qp->ud_burst = want < READS_PER_PASS ? 2 * want : want;
	else
		qp->ud_burst = 1;
	return got;
}

static bool ud_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_qp *qp = of(io);
	bool did = rnic_ud_drain(qp, io->fd, qp->ctx->dev->n_addr > 1, 0, events);

	if (events & EPOLLOUT) {
		did = true;
		rnic_ud_pump(qp);
	}
	return did;
}

/* ---- opening ---- */

int rnic_ud_open(struct rnic_qp *qp)
{
	const struct rnic_device *dev = qp->ctx->dev;
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = dev->n_addr == 1 ? dev->addr[0].addr.s_addr
								      : htonl(INADDR_ANY)};
	socklen_t len = sizeof(sin);
	int on = 1, size = RNIC_UD_SOCKBUF, err;

	qp->ud_io = (struct rnic_io){.ready = ud_ready, .data = true};
	qp->ud_io.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (qp->ud_io.fd < 0)
		return -errno;
	setsockopt(qp->ud_io.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(qp->ud_io.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (dev->n_addr > 1)
		setsockopt(qp->ud_io.fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (bind(qp->ud_io.fd, (struct sockaddr *)&sin, len) ||
	    getsockname(qp->ud_io.fd, (struct sockaddr *)&sin, &len)) {
		err = -errno;
		close(qp->ud_io.fd);
		return err;
	}
	qp->ibv.qp_num = (uint32_t)ntohs(sin.sin_port) << 8 | RNIC_UD_INDEX;
	err = rnic_table_add(qp->e->qps, qp->ibv.qp_num, qp);
	if (!err) {
		err = rnic_io_add(qp->e, &qp->ud_io, EPOLLIN);
		if (err)
			rnic_table_del(qp->e->qps, qp->ibv.qp_num);
	}
	if (err)
		close(qp->ud_io.fd);
	return err;
}

void rnic_ud_close(struct rnic_qp *qp)
{
	rnic_table_del(qp->e->qps, qp->ibv.qp_num);
	rnic_ud_fast_close(qp);
	rnic_io_close(&qp->ud_io);
}
