#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "rd_peer.h"

void die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- the queue pair ---- */

static void open_device(struct rd_node *n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !n->ctx; i++)
		if (weftdv_is_supported(list[i]))
			n->ctx = ibv_open_device(list[i]);
	if (!n->ctx)
		die("no device of Weft's: run this under 'weft verbs'");
	ibv_free_device_list(list);
}

static void make_qp(struct rd_node *n, uint32_t sends, uint32_t recvs)
{
	struct weftdv_qp_init_attr weft = {.type = WEFTDV_QPT_RD};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = n->cq,
		.recv_cq = n->cq,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = n->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	n->qp = weftdv_create_qp(n->ctx, &attr, &weft);
	if (!n->qp)
		die("no RD queue pair: %s", strerror(errno));
	n->ex = ibv_qp_to_qp_ex(n->qp);
}

static void bring_up(struct rd_node *n)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RD_QKEY};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};

	if (ibv_modify_qp(n->qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ||
	    ibv_modify_qp(n->qp, &rtr, IBV_QP_STATE) ||
	    ibv_modify_qp(n->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("the queue pair does not come up");
}

void rd_open(struct rd_node *n, size_t len, uint32_t sends, uint32_t recvs)
{
	*n = (struct rd_node){.len = len};
	open_device(n);
	n->buf = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	if (!n->buf)
		die("out of memory");
	memset(n->buf, 0, len);
	n->pd = ibv_alloc_pd(n->ctx);
	n->chan = ibv_create_comp_channel(n->ctx);
	n->cq = n->chan ? ibv_create_cq(n->ctx, (int)(sends + recvs), NULL, n->chan, 0) : NULL;
	n->mr = n->pd ? ibv_reg_mr(n->pd, n->buf, len,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
		      : NULL;
	if (!n->cq || !n->mr)
		die("the device does not open: %s", strerror(errno));
	make_qp(n, sends, recvs);
	bring_up(n);
	if (fcntl(n->chan->fd, F_SETFL, O_NONBLOCK) || ibv_req_notify_cq(n->cq, 0))
		die("the completion queue does not notify");
}

void rd_close(struct rd_node *n)
{
	ibv_destroy_qp(n->qp);
	ibv_dereg_mr(n->mr);
	ibv_destroy_cq(n->cq);
	ibv_destroy_comp_channel(n->chan);
	ibv_dealloc_pd(n->pd);
	ibv_close_device(n->ctx);
	free(n->buf);
}

void rd_recv(struct rd_node *n, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)n->buf + off, len, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
	int err = ibv_post_recv(n->qp, &wr, &bad);

	if (err)
		die("a receive was refused: %s", strerror(err));
}

bool rd_poll(struct rd_node *n, struct ibv_wc *wc)
{
	int got = ibv_poll_cq(n->cq, 1, wc);

	if (got < 0)
		die("the completion queue is broken");
	if (got && wc->status != IBV_WC_SUCCESS)
		die("request %llu failed: %s", (unsigned long long)wc->wr_id,
		    ibv_wc_status_str(wc->status));
	return got;
}

void rd_event(struct rd_node *n)
{
	struct ibv_cq *cq;
	void *arg;

	if (ibv_get_cq_event(n->chan, &cq, &arg))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
}

bool rd_wait(struct rd_node *n, int ms)
{
	struct pollfd p = {.fd = n->chan->fd, .events = POLLIN};

	if (poll(&p, 1, ms) <= 0)
		return false;
	rd_event(n);
	return true;
}

/* ---- the peer ---- */

void rd_where_print(const struct rd_node *n, char out[RD_WHERE_LEN])
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_gid(n->ctx, 1, 0, &gid))
		die("the device has no address");
	inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	snprintf(out, RD_WHERE_LEN, "%s %u %u %llu", text, n->qp->qp_num, n->mr->rkey,
		 (unsigned long long)(uintptr_t)n->buf);
}

bool rd_where_parse(struct rd_where *w, const char *text)
{
	char gid[INET6_ADDRSTRLEN];
	unsigned long long at;

	if (sscanf(text, "%45s %u %u %llu", gid, &w->qpn, &w->rkey, &at) != 4)
		return false;
	w->at = at;
	return inet_pton(AF_INET6, gid, w->gid.raw) == 1;
}

struct ibv_ah *rd_ah_from(struct rd_node *n, uint8_t own, const union ibv_gid *to, uint32_t label)
{
	struct ibv_ah_attr attr = {
		.grh = {.dgid = *to, .sgid_index = own, .hop_limit = 64, .flow_label = label},
		.is_global = 1,
		.port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(n->pd, &attr);

	if (!ah)
		die("no address handle: %s", strerror(errno));
	return ah;
}

struct ibv_ah *rd_ah(struct rd_node *n, const struct rd_where *to, uint32_t label)
{
	return rd_ah_from(n, 0, &to->gid, label);
}

void rd_post(struct rd_node *n, const struct rd_where *to, struct ibv_ah *ah, enum ibv_wr_opcode op,
	     uint64_t wr_id, uint32_t imm, size_t off, uint32_t len, size_t there)
{
	struct ibv_qp_ex *ex = n->ex;
	int err;

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	switch (op) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, htonl(imm));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, to->rkey, to->at + there);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, to->rkey, to->at + there, htonl(imm));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, to->rkey, to->at + there);
		break;
	default:
		ibv_wr_atomic_fetch_add(ex, to->rkey, to->at + there, 1);
		break;
	}
	ibv_wr_set_ud_addr(ex, ah, to->qpn, RD_QKEY);
	ibv_wr_set_sge(ex, n->mr->lkey, (uintptr_t)n->buf + off, len);
	err = ibv_wr_complete(ex);
	if (err)
		die("a request was refused: %s", strerror(err));
}

/* ---- lines over TCP ---- */

int tcp_listen(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64))
		die("port %u: %s", port, strerror(errno));
	return fd;
}

static int try_connect(const char *host, uint16_t port)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
	int fd = -1, one = 1;
	char name[8];

	snprintf(name, sizeof(name), "%u", port);
	if (getaddrinfo(host, name, &hints, &found))
		die("host '%s' is not known", host);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int tcp_connect(const char *host, uint16_t port)
{
	uint64_t end = util_now_ns() + 10 * UTIL_NS_PER_S;

	for (;;) {
		int fd = try_connect(host, port);

		if (fd >= 0)
			return fd;
		if (util_now_ns() > end)
			die("%s, port %u: %s", host, port, strerror(errno));
		usleep(20000);
	}
}

void line_put(int fd, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(buf, sizeof(buf) - 1, fmt, ap);
	va_end(ap);
	if (len < 0 || len > (int)sizeof(buf) - 2)
		die("a line is too long");
	buf[len++] = '\n';
	if (send(fd, buf, (size_t)len, MSG_NOSIGNAL) != len)
		die("the other side is gone: %s", strerror(errno));
}

bool line_get(int fd, char *buf, size_t size, int ms)
{
	uint64_t end = util_now_ns() + (uint64_t)ms * UTIL_NS_PER_MS;
	size_t len = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = util_now_ns();

		if (now > end || poll(&p, 1, (int)((end - now) / UTIL_NS_PER_MS) + 1) <= 0)
			return false;
		/* One at a time: what follows the line is somebody else's. */
		if (recv(fd, buf + len, 1, 0) != 1)
			return false;
		if (buf[len] == '\n')
			break;
		if (++len == size)
			return false;
	}
	buf[len] = '\0';
	return true;
}
