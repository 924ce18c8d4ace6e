#include "lab_nl.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab_enter.h"

#define BUF_SIZE (LAB_NL_REQUEST_MAX + 65536)

int lab_raise_files(uint64_t need, struct lab_error *e)
{
	struct rlimit limit;
	rlim_t allowed;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= need)
		return 0;
	allowed = limit.rlim_max;
	if (limit.rlim_max < need && !geteuid())
		limit.rlim_max = need; /* root may, outside of a user namespace */
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return 0;
	}
	return lab_fail(
		e, EMFILE,
		"a lab of this size needs %llu open files, and %llu are allowed; see ulimit -n",
		(unsigned long long)need, (unsigned long long)allowed);
}

int lab_nl_open(struct lab_nl *nl, struct lab_error *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return lab_fail(e, errno, "cannot open a netlink socket: %s", strerror(errno));
	*nl = (struct lab_nl){.fd = fd};
	return 0;
}

int lab_nl_open_on(struct lab_nl *nl, const struct lab *lab, struct fabric_node n,
		   struct lab_error *e)
{
	int ret = lab_enter_net(lab, n, e);

	return ret ? ret : lab_nl_open(nl, e);
}

void lab_nl_close(struct lab_nl *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	free(nl->buf);
	nl->buf = NULL;
	nl->fd = -1;
}

struct nlmsghdr *lab_nl_put(struct lab_nl *nl, uint16_t type, uint16_t flags, size_t extra,
			    const char *what, struct lab_error *e)
{
	struct nlmsghdr *h;

	if (nl->n == LAB_NL_BATCH || nl->len + LAB_NL_REQUEST_MAX > BUF_SIZE)
		if (lab_nl_flush(nl, e))
			return NULL;
	if (!nl->buf)
		nl->buf = malloc(BUF_SIZE);
	if (!nl->buf) {
		lab_fail(e, ENOMEM, "out of memory");
		return NULL;
	}
	h = mnl_nlmsg_put_header(nl->buf + nl->len);
	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	h->nlmsg_seq = ++nl->seq;
	mnl_nlmsg_put_extra_header(h, extra);
	nl->what[nl->n++] = what;
	return h;
}

void lab_nl_done(struct lab_nl *nl, struct nlmsghdr *h)
{
	nl->len += MNL_ALIGN(h->nlmsg_len);
}

static int complain(struct lab_nl *nl, uint32_t seq, int code, struct lab_error *e)
{
	uint32_t i = seq - (nl->seq - nl->n + 1);
	const char *what = i < nl->n ? nl->what[i] : "a request";

	if (code == EPERM)
		return lab_fail(e, code, "no permission to make %s", what);
	return lab_fail(e, code, "the kernel does not make %s: %s", what, strerror(code));
}

/* The kernel answers every request that fails, and the last one in any case. */
static int verdicts(struct lab_nl *nl, struct lab_error *e)
{
	char buf[16384];
	int ret = 0;

	for (;;) {
		ssize_t got = recv(nl->fd, buf, sizeof(buf), 0);
		struct nlmsghdr *h = (void *)buf;
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return lab_fail(e, errno, "netlink: %s", strerror(errno));
		for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
			const struct nlmsgerr *verdict = mnl_nlmsg_get_payload(h);

			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			if (verdict->error && !ret)
				ret = complain(nl, h->nlmsg_seq, -verdict->error, e);
			if (h->nlmsg_seq == nl->seq)
				return ret;
		}
	}
}

int lab_nl_flush(struct lab_nl *nl, struct lab_error *e)
{
	struct nlmsghdr *last = NULL;
	int left = (int)nl->len, ret;

	if (!nl->n)
		return 0;
	for (struct nlmsghdr *h = (void *)nl->buf; mnl_nlmsg_ok(h, left);
	     h = mnl_nlmsg_next(h, &left))
		last = h;
	last->nlmsg_flags |= NLM_F_ACK;
	if (send(nl->fd, nl->buf, nl->len, 0) < 0)
		ret = lab_fail(e, errno, "netlink: %s", strerror(errno));
	else
		ret = verdicts(nl, e);
	/* A lab has many sockets, and uses them one after the other. */
	free(nl->buf);
	nl->buf = NULL;
	nl->n = 0;
	nl->len = 0;
	return ret;
}

/* One part of a list: 1 at its end, 0 before, -errno. That something changed while it was
 * listed (NLM_F_DUMP_INTR) does not matter: a moment earlier or later is as good. */
static int part(struct lab_nl *nl, char *buf, ssize_t len, mnl_cb_t fn, void *arg)
{
	struct nlmsghdr *h = (void *)buf;
	int left = (int)len;

	for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
		if (h->nlmsg_seq != nl->seq)
			continue;
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(h))->error;
		if (fn(h, arg) == MNL_CB_ERROR)
			return -errno;
	}
	return 0;
}

int lab_nl_dump(struct lab_nl *nl, uint16_t type, size_t header, uint8_t family, mnl_cb_t fn,
		void *arg, const char *what, struct lab_error *e)
{
	char request[256];
	struct nlmsghdr *h = mnl_nlmsg_put_header(request);
	char *buf = malloc(65536);
	int ret = 0;

	if (!buf)
		return lab_fail(e, ENOMEM, "out of memory");
	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = ++nl->seq;
	*(uint8_t *)mnl_nlmsg_put_extra_header(h, header) = family;
	if (send(nl->fd, h, h->nlmsg_len, 0) < 0)
		ret = -errno;
	while (!ret) {
		ssize_t got = recv(nl->fd, buf, 65536, 0);

		if (got >= 0)
			ret = part(nl, buf, got, fn, arg);
		else if (errno != EINTR)
			ret = -errno;
	}
	free(buf);
	return ret < 0 ? lab_fail(e, -ret, "cannot list %s: %s", what, strerror(-ret)) : 0;
}
