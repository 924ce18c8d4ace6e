#include "link_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int before;

int rig_count_before(void **state)
{
	(void)state;
	before = count_fds();
	return 0;
}

int rig_count_after(void **state)
{
	int after = count_fds();

	(void)state;
	if (after != before)
		print_error("%d descriptors before, %d after\n", before, after);
	return after != before;
}

int rig_bell(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

uint64_t rig_bell_count(int bell)
{
	uint64_t n = 0;

	return read(bell, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

uint64_t rig_name(void)
{
	static uint32_t n;

	return (uint64_t)getpid() << 32 | ++n;
}

void rig_up(struct rig *r, uint32_t ring)
{
	uint64_t name = rig_name(), own = rig_name();

	r->bell_a = rig_bell();
	r->bell_b = rig_bell();
	assert_int_equal(shm_port_open(&r->port, name, 4), 0);
	assert_int_equal(shm_link_connect(&r->a, name, own, ring, r->bell_a), 0);
	assert_int_equal(shm_link_input(&r->a), 0);
	assert_int_equal(shm_port_accept(&r->port, r->bell_b, &r->b), 0);
	assert_int_equal(shm_link_input(&r->b), 1);
	assert_int_equal(shm_link_input(&r->a), 1);
	assert_true(r->a.peer == name && r->b.peer == own);
}

void rig_down(struct rig *r)
{
	shm_link_close(&r->a);
	shm_link_close(&r->b);
	shm_port_close(&r->port);
	close(r->bell_a);
	close(r->bell_b);
}

void rig_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 10000), 1);
}

static int raw_socket(struct sockaddr_un *sun, socklen_t *len, uint64_t name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n;

	assert_true(fd >= 0);
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = sprintf(sun->sun_path + 1, "weft-rd-%016" PRIx64, name);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return fd;
}

int rig_raw_listen(uint64_t name)
{
	struct sockaddr_un sun;
	socklen_t len;
	int fd = raw_socket(&sun, &len, name);

	assert_int_equal(bind(fd, (struct sockaddr *)&sun, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

int rig_raw_connect(uint64_t name)
{
	struct sockaddr_un sun;
	socklen_t len;
	int fd = raw_socket(&sun, &len, name);

	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

void rig_raw_send(int sock, const void *buf, size_t len, const int *fds, int n)
{
	size_t bytes = (size_t)n * sizeof(int);
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		struct cmsghdr *cm = (struct cmsghdr *)control;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(bytes);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(cm), fds, bytes);
	}
	assert_int_equal(sendmsg(sock, &mh, MSG_NOSIGNAL), (ssize_t)len);
}

int rig_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}
