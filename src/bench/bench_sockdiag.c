/* The kernel's own account of socket memory, by sock_diag (what `ss -m` prints). Each
 * socket is charged for the data it queues and for what it has reserved beyond that
 * (fwd_alloc); the socket's own structures are not in it. */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench_proc.h"

struct wanted {
	const uint32_t *inode;
	size_t n;
	struct bench_holding *h;
	uint64_t *count; /* h->tcp or h->udp */
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int ask(int fd, int protocol)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req_v2 req;
	} msg = {
		.nlh = {.nlmsg_len = sizeof(msg),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_INET,
			.sdiag_protocol = (uint8_t)protocol,
			.idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
			.idiag_states = UINT32_MAX},
	};

	return send(fd, &msg, sizeof(msg), 0) < 0 ? -errno : 0;
}

static void add_memory(const struct rtattr *attr, struct bench_holding *h)
{
	const uint32_t *mem = RTA_DATA(attr);

	if (RTA_PAYLOAD(attr) < (SK_MEMINFO_BACKLOG + 1) * sizeof(*mem))
		return;
	h->queued += (uint64_t)mem[SK_MEMINFO_RMEM_ALLOC] + mem[SK_MEMINFO_WMEM_QUEUED] +
		     mem[SK_MEMINFO_FWD_ALLOC] + mem[SK_MEMINFO_OPTMEM] + mem[SK_MEMINFO_BACKLOG];
	h->rcvbuf += mem[SK_MEMINFO_RCVBUF];
	h->sndbuf += mem[SK_MEMINFO_SNDBUF];
}

static void one_socket(const struct nlmsghdr *nlh, const struct wanted *w)
{
	const struct inet_diag_msg *diag = NLMSG_DATA(nlh);
	int len = (int)(nlh->nlmsg_len - NLMSG_LENGTH(sizeof(*diag)));

	if (!bsearch(&diag->idiag_inode, w->inode, w->n, sizeof(*w->inode), by_number))
		return;
	++*w->count;
	for (const struct rtattr *attr = (const struct rtattr *)(diag + 1); RTA_OK(attr, len);
	     attr = RTA_NEXT(attr, len))
		if (attr->rta_type == INET_DIAG_SKMEMINFO)
			add_memory(attr, w->h);
}

/* 1: more to come, 0: that was all, or -errno. */
static int one_buffer(const char *buf, ssize_t got, const struct wanted *w)
{
	uint32_t len = (uint32_t)got;

	for (const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf; NLMSG_OK(nlh, len);
	     nlh = NLMSG_NEXT(nlh, len)) {
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 0;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(nlh))->error;
		if (nlh->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			one_socket(nlh, w);
	}
	return 1;
}

static int dump(int protocol, const struct wanted *w)
{
	struct timeval limit = {.tv_sec = 2};
	_Alignas(struct nlmsghdr) char buf[32768];
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	ret = ask(fd, protocol);
	if (!ret)
		ret = 1;
	while (ret > 0) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		ret = n < 0 ? -errno : n ? one_buffer(buf, n, w) : 0;
	}
	close(fd);
	return ret;
}

int bench_sockdiag(const uint32_t *inode, size_t n, struct bench_holding *h)
{
	struct wanted w = {.inode = inode, .n = n, .h = h, .count = &h->tcp};
	int ret = dump(IPPROTO_TCP, &w);

	if (ret)
		return ret;
	w.count = &h->udp;
	return dump(IPPROTO_UDP, &w);
}
