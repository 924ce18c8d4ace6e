#include "shm_msg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for some more than are wanted, so that too many can be told from too few. */
#define FDS_ROOM 8

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(FDS_ROOM * sizeof(int))];
};

int shm_msg_send(int sock, const struct shm_msg *m, const int *fds, int n_fds)
{
	size_t bytes = (size_t)n_fds * sizeof(int);
	union control c = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.buf,
			    .msg_controllen = CMSG_SPACE(bytes)};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(cm), fds, bytes);
	return sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Takes all descriptors out of the control messages; returns how many there were. */
static int collect(struct msghdr *mh, int fds[FDS_ROOM])
{
	struct cmsghdr *cm;
	int n = 0;

	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		size_t bytes = cm->cmsg_len - CMSG_LEN(0);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		/* Written by the kernel into a buffer of FDS_ROOM: more do not fit. */
		memcpy(fds + n, CMSG_DATA(cm), bytes);
		n += (int)(bytes / sizeof(int));
	}
	return n;
}

static bool same_kind(const struct shm_msg *m, const struct shm_msg *want)
{
	return m->magic == want->magic && m->version == want->version && m->kind == want->kind &&
	       m->to == want->to;
}

static int judge(const struct msghdr *mh, ssize_t len, int got, int wanted)
{
	/* The kernel stops at the first descriptor that this process has no number left
	 * for, and reports it like a buffer that is too small. The buffer is not. */
	if ((mh->msg_flags & MSG_CTRUNC) && got < wanted)
		return -EMFILE;
	if (got == 0 && len == 0)
		return -ECONNRESET;
	if (mh->msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		return -EPROTO;
	return len == (ssize_t)sizeof(struct shm_msg) && got == wanted ? 0 : -EPROTO;
}

int shm_msg_recv(int sock, const struct shm_msg *want, struct shm_msg *m, int *fds, int n_fds)
{
	union control c;
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.buf,
			    .msg_controllen = sizeof(c.buf)};
	ssize_t len = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int all[FDS_ROOM], got, err;

	if (len < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	got = collect(&mh, all);
	err = judge(&mh, len, got, n_fds);
	if (!err && !same_kind(m, want))
		err = -EPROTO;
	if (!err) {
		memcpy(fds, all, (size_t)n_fds * sizeof(int));
		return 0;
	}
	while (got > 0)
		close(all[--got]);
	return err;
}
