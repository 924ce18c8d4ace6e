/* What can be said to a port, or by one, that is not how two processes meet: it is refused,
 * nothing crashes, and no descriptor stays behind. */
#include "link_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util_rand.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

enum what {
	MEM,
	MEM_UNSEALED,
	MEM_HALF,
	MEM_SMALL,
	MEM_LARGE,
	MEM_READ,
	MEM_FILE,
	BELL,
	PIPE,
	BELL_BLOCKS,
	NONE
};

static int make(enum what what)
{
	size_t bytes = shm_area_bytes(RIG_RING);
	int p[2];

	switch (what) {
	case MEM:
		return rig_memfd(bytes, SEALS);
	case MEM_UNSEALED:
		return rig_memfd(bytes, 0);
	case MEM_HALF:
		return rig_memfd(bytes, F_SEAL_GROW);
	case MEM_SMALL:
		return rig_memfd(bytes - 1, SEALS);
	case MEM_LARGE:
		return rig_memfd(bytes + 4096, SEALS);
	case MEM_READ:
		return rig_memfd(bytes, SEALS | F_SEAL_WRITE);
	case MEM_FILE:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case BELL:
		return rig_bell();
	case BELL_BLOCKS:
		return eventfd(0, EFD_CLOEXEC);
	case PIPE:
		assert_int_equal(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
		close(p[0]);
		return p[1];
	default:
		return -1;
	}
}

struct lie {
	const char *what;
	int err; /* what the port makes of it */
	enum what fds[4];
	uint32_t magic; /* 0: the right one; as are those below */
	uint16_t version, kind;
	uint64_t ring, to;
	int len; /* more or less than a message */
};

static const struct lie lies[] = {
	{"truth", 1, {MEM, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"wrong magic", -EPROTO, {MEM, BELL, NONE}, 1, 0, 0, 0, 0, 0},
	{"wrong version", -EPROTO, {MEM, BELL, NONE}, 0, 99, 0, 0, 0, 0},
	{"an answer", -EPROTO, {MEM, BELL, NONE}, 0, 0, SHM_MSG_ANSWER, 0, 0, 0},
	{"to somebody else", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, 0, 1, 0},
	{"short", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, 0, 0, -1},
	{"long", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, 0, 0, 1},
	{"empty, with descriptors", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, 0, 0, -32},
	{"no descriptor", -EPROTO, {NONE}, 0, 0, 0, 0, 0, 0},
	{"one descriptor", -EPROTO, {MEM, NONE}, 0, 0, 0, 0, 0, 0},
	{"three descriptors", -EPROTO, {MEM, BELL, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"swapped", -EPROTO, {BELL, MEM, NONE}, 0, 0, 0, 0, 0, 0},
	{"not sealed", -EPROTO, {MEM_UNSEALED, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"can shrink", -EPROTO, {MEM_HALF, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"too small", -EPROTO, {MEM_SMALL, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"too large", -EPROTO, {MEM_LARGE, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"read only", -EPROTO, {MEM_READ, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"a file", -EPROTO, {MEM_FILE, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"a pipe as doorbell", -EPROTO, {MEM, PIPE, NONE}, 0, 0, 0, 0, 0, 0},
	{"a doorbell that blocks", -EPROTO, {MEM, BELL_BLOCKS, NONE}, 0, 0, 0, 0, 0, 0},
	{"a larger ring", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, 2 * RIG_RING, 0, 0},
	{"an odd ring", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, RIG_RING + 1, 0, 0},
	{"a ring beyond 32 bits",
	 -EPROTO,
	 {MEM, BELL, NONE},
	 0,
	 0,
	 0,
	 (UINT64_C(1) << 32) + RIG_RING,
	 0,
	 0},
	{"no ring", -EPROTO, {MEM, BELL, NONE}, 0, 0, 0, UINT64_MAX, 0, 0},
};

static void tell(int sock, const struct lie *lie, uint64_t from, uint64_t to, uint16_t kind)
{
	uint8_t buf[64] = {0};
	struct shm_msg m = {.magic = lie->magic ? lie->magic : SHM_MSG_MAGIC,
			    .version = lie->version ? lie->version : SHM_MSG_VERSION,
			    .kind = lie->kind ? lie->kind : kind,
			    .from = from,
			    .to = lie->to ? lie->to : to,
			    .ring = lie->ring ? lie->ring : RIG_RING};
	int fds[4], n = 0, len = (int)sizeof(m) + lie->len;

	memcpy(buf, &m, sizeof(m));
	while (n < 4 && lie->fds[n] != NONE) {
		fds[n] = make(lie->fds[n]);
		assert_true(fds[n] >= 0);
		n++;
	}
	rig_raw_send(sock, buf, (size_t)len, fds, n);
	while (n > 0)
		close(fds[--n]);
}

static void test_hello(void **state)
{
	int bell = rig_bell(), sock;
	struct shm_link link;
	struct shm_port port;

	(void)state;
	_Static_assert(sizeof(struct shm_msg) == 32, "the empty one is 32 less");
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		int ret;

		sock = rig_raw_connect(port.name);
		assert_int_equal(shm_port_accept(&port, bell, &link), 0);
		assert_int_equal(shm_link_input(&link), 0); /* silence is allowed */
		tell(sock, &lies[i], 77, port.name, SHM_MSG_HELLO);
		ret = shm_link_input(&link);
		if (ret != lies[i].err)
			fail_msg("%s: %d instead of %d", lies[i].what, ret, lies[i].err);
		if (ret < 0)
			assert_int_equal(shm_link_input(&link), ret);
		shm_link_close(&link);
		close(sock);
	}
	shm_port_close(&port);
	close(bell);
}

static const struct lie answers[] = {
	{"truth", 1, {BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"a hello", -EPROTO, {BELL, NONE}, 0, 0, SHM_MSG_HELLO, 0, 0, 0},
	{"wrong version", -EPROTO, {BELL, NONE}, 0, 99, 0, 0, 0, 0},
	{"to somebody else", -EPROTO, {BELL, NONE}, 0, 0, 0, 0, 1, 0},
	{"another ring", -EPROTO, {BELL, NONE}, 0, 0, 0, 2 * RIG_RING, 0, 0},
	{"short", -EPROTO, {BELL, NONE}, 0, 0, 0, 0, 0, -1},
	{"no descriptor", -EPROTO, {NONE}, 0, 0, 0, 0, 0, 0},
	{"two descriptors", -EPROTO, {BELL, BELL, NONE}, 0, 0, 0, 0, 0, 0},
	{"memory as doorbell", -EPROTO, {MEM, NONE}, 0, 0, 0, 0, 0, 0},
	{"a pipe as doorbell", -EPROTO, {PIPE, NONE}, 0, 0, 0, 0, 0, 0},
};

static void test_answer(void **state)
{
	uint64_t name = rig_name();
	int bell = rig_bell(), port = rig_raw_listen(name), sock;
	struct shm_link link;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		int ret;

		assert_int_equal(shm_link_connect(&link, name, 55, RIG_RING, bell), 0);
		sock = accept(port, NULL, NULL);
		assert_true(sock >= 0);
		assert_int_equal(shm_link_input(&link), 0);
		tell(sock, &answers[i], name, 55, SHM_MSG_ANSWER);
		ret = shm_link_input(&link);
		if (ret != answers[i].err)
			fail_msg("%s: %d instead of %d", answers[i].what, ret, answers[i].err);
		shm_link_close(&link);
		close(sock);
	}
	close(port);
	close(bell);
}

/* More descriptors than any buffer holds, and again when the link is up. */
static void test_flood(void **state)
{
	struct shm_msg m = {.magic = SHM_MSG_MAGIC,
			    .version = SHM_MSG_VERSION,
			    .kind = SHM_MSG_HELLO,
			    .ring = RIG_RING};
	int bell = rig_bell(), sock, many[50];
	struct shm_link link;
	struct shm_port port;

	(void)state;
	for (int i = 0; i < 50; i++)
		many[i] = bell;
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	m.to = port.name;
	for (int n = 0; n < 50; n++) {
		sock = rig_raw_connect(port.name);
		assert_int_equal(shm_port_accept(&port, bell, &link), 0);
		rig_raw_send(sock, &m, sizeof(m), many, n);
		assert_int_equal(shm_link_input(&link), -EPROTO);
		shm_link_close(&link);
		close(sock);
	}
	for (int n = 0; n < 50; n += 7) {
		sock = rig_raw_connect(port.name);
		assert_int_equal(shm_port_accept(&port, bell, &link), 0);
		tell(sock, &lies[0], 77, port.name, SHM_MSG_HELLO);
		assert_int_equal(shm_link_input(&link), 1);
		assert_int_equal(shm_link_input(&link), 1);
		rig_raw_send(sock, &m, sizeof(m), many, n);
		assert_int_equal(shm_link_input(&link), -EPROTO);
		shm_link_close(&link);
		close(sock);
	}
	shm_port_close(&port);
	close(bell);
}

#define GARBAGE_SEED 11

static void test_garbage(void **state)
{
	int bell = rig_bell(), sock;
	struct shm_link link;
	struct shm_port port;
	struct util_rand r;
	uint8_t buf[4096];

	(void)state;
	util_rand_seed(&r, GARBAGE_SEED);
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	for (int i = 0; i < 500; i++) {
		size_t len = 1 + util_rand_below(&r, i % 2 ? 64 : sizeof(buf));

		util_rand_bytes(&r, buf, len);
		sock = rig_raw_connect(port.name);
		assert_int_equal(shm_port_accept(&port, bell, &link), 0);
		rig_raw_send(sock, buf, len, &bell, (int)util_rand_below(&r, 2));
		assert_int_equal(shm_link_input(&link), -EPROTO);
		shm_link_close(&link);
		close(sock);
	}
	shm_port_close(&port);
	close(bell);
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, rig_count_before, rig_count_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COUNTED(test_hello),
		COUNTED(test_answer),
		COUNTED(test_flood),
		COUNTED(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
