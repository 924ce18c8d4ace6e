/* Strangers at the door: connections that are not, not yet, or never will be a peer's. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include "peer.h"
#include "rnic_conn.h"

static uint16_t door(const struct end *e)
{
	return (uint16_t)(e->qp->qp_num >> 8);
}

static int strangers(struct court *c)
{
	struct rnic_engine *e = rig_engine(&c->rig);
	int n;

	rnic_lock(e);
	n = e->n_strangers;
	rnic_unlock(e);
	return n;
}

static void no_strangers(struct court *c)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;
	int n;

	while ((n = strangers(c)) && rig_now_ms() < end)
		usleep(1000);
	CHECK_EQ(n, 0);
}

/* The real peer is let in, whatever happened before. */
static void real_peer(struct court *c)
{
	static struct peer p;
	struct wire_seg seg = {.opcode = WIRE_OP_SEND, .last = true, .msn = 1};

	end_recv(&c->victim, 4711, 0, 64);
	peer_meet(&p, &c->victim);
	peer_frame(&p, &seg, "hello", 5);
	CHECK_EQ(EXPECT_OK(c->victim.rcq, 4711).byte_len, 5);
	peer_hang_up(&p);
}

/* ---- noise ---- */

static void refused_at_once(struct court *c, const void *bytes, size_t len)
{
	static struct peer p;
	uint64_t before;

	no_strangers(c); /* those of before are counted */
	before = rig_stats(&c->rig).foreign_streams;
	peer_dial(&p, door(&c->victim));
	peer_write(&p, bytes, len);
	CHECK(peer_closed(&p, RIG_WAIT));
	peer_hang_up(&p);
	CHECK_EQ(rig_stats(&c->rig).foreign_streams, before + 1);
	court_check(c);
}

static void test_noise(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	static const char ssh[] = "SSH-2.0-OpenSSH_9.2p1 Debian\r\n";
	struct wire_hello h;
	struct wire_mpa_hs hs;
	uint8_t buf[WIRE_MPA_HS_MAX + 64];
	size_t len;
	struct court c;
	int n;

	(void)state;
	court_open(&c);
	court_victim(&c);
	refused_at_once(&c, http, sizeof(http));
	refused_at_once(&c, ssh, sizeof(ssh));
	for (int i = 0; i < 50; i++) {
		util_rand_bytes(rig_rand(), buf, 64);
		buf[0] &= 0x3f; /* not an 'M' */
		refused_at_once(&c, buf, 1 + util_rand_below(rig_rand(), 64));
	}
	h = peer_hello(&c.victim);
	/* every byte of a good request, changed, is refused or means another one */
	len = peer_request(&h, buf);
	for (size_t i = 0; i < len; i++) {
		static struct peer p;

		peer_request(&h, buf);
		if (i == 16 || i == 18 || i == 19)
			continue; /* flags, length: good ones, or not whole yet */
		buf[i] ^= 0x80;
		peer_dial(&p, door(&c.victim));
		peer_write(&p, buf, len);
		if (i < len - 4) /* the last word is advice */
			CHECK(peer_answer(&p, RIG_WAIT) < 1);
		else
			rig_sleep_ms(50); /* or it would be met only after it has gone */
		peer_hang_up(&p);
	}
	/* a reply instead of a request */
	hs = (struct wire_mpa_hs){.reply = true, .revision = 1};
	hs.pd_len = (uint16_t)wire_hello_encode(&h, hs.pd);
	n = wire_mpa_hs_encode(&hs, buf, sizeof(buf));
	refused_at_once(&c, buf, (size_t)n);
	/* private data that is not ours, or too much of it */
	hs = (struct wire_mpa_hs){.revision = 1, .pd_len = 0};
	n = wire_mpa_hs_encode(&hs, buf, sizeof(buf));
	refused_at_once(&c, buf, (size_t)n);
	hs.pd_len = 512;
	n = wire_mpa_hs_encode(&hs, buf, sizeof(buf));
	refused_at_once(&c, buf, (size_t)n);
	/* words that nobody asked for yet */
	len = peer_request(&h, buf);
	refused_at_once(&c, buf, len + 1);
	no_strangers(&c);
	CHECK_EQ(end_query(&c.victim), IBV_QPS_RTS);
	real_peer(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* Silence, and half a sentence: waited for, but not for ever, and without burning
 * the core meanwhile. */
static void test_silence(void **state)
{
	struct wire_hello h;
	uint8_t buf[WIRE_MPA_HS_MAX];
	static struct peer p[4];
	struct court c;
	uint64_t since, cpu;

	(void)state;
	court_open(&c);
	court_victim(&c);
	h = peer_hello(&c.victim);
	peer_request(&h, buf);
	peer_dial(&p[0], door(&c.victim));
	peer_dial(&p[1], door(&c.victim));
	peer_write(&p[1], buf, 1);
	peer_dial(&p[2], door(&c.victim));
	peer_write(&p[2], buf, 30);
	peer_dial(&p[3], door(&c.victim)); /* leaves again */
	peer_write(&p[3], buf, 10);
	peer_hang_up(&p[3]);
	since = rig_now_ms();
	cpu = rig_cpu_ns();
	for (int i = 0; i < 3; i++)
		CHECK(peer_closed(&p[i], 9000));
	CHECK(rig_now_ms() - since >= 4000);
	CHECK(rig_cpu_ns() - cpu < 1000 * RIG_MS);
	for (int i = 0; i < 3; i++)
		peer_hang_up(&p[i]);
	no_strangers(&c);
	court_check(&c);
	real_peer(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* One byte at a time is slow, but it is a peer. */
static void test_slow(void **state)
{
	static struct peer p;
	struct wire_seg seg = {.opcode = WIRE_OP_SEND, .last = true, .msn = 1};
	struct wire_hello h;
	uint8_t buf[WIRE_MPA_HS_MAX], ulpdu[64], fpdu[128];
	struct court c;
	size_t len;

	(void)state;
	court_open(&c);
	court_victim(&c);
	end_recv(&c.victim, 1, 0, 64);
	h = peer_hello(&c.victim);
	peer_dial(&p, door(&c.victim));
	len = peer_request(&h, buf);
	for (size_t i = 0; i < len; i++) {
		peer_write(&p, buf + i, 1);
		usleep(300);
	}
	CHECK_EQ(peer_answer(&p, RIG_WAIT), 1);
	len = wire_seg_encode(&seg, ulpdu);
	memset(ulpdu + len, 0x73, 4);
	len = peer_seal(fpdu, ulpdu, len + 4);
	for (size_t i = 0; i < len; i++) {
		peer_write(&p, fpdu + i, 1);
		usleep(300);
	}
	CHECK_EQ(EXPECT_OK(c.victim.rcq, 1).byte_len, 4);
	CHECK_0(memcmp(c.victim.buf, "ssss", 4));
	peer_hang_up(&p);
	court_check(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* ---- good manners, wrong door ---- */

static int ask(struct court *c, const struct wire_hello *h)
{
	static struct peer p;
	uint8_t buf[WIRE_MPA_HS_MAX];
	int got;

	peer_dial(&p, door(&c->victim));
	peer_write(&p, buf, peer_request(h, buf));
	got = peer_answer(&p, RIG_WAIT);
	peer_hang_up(&p);
	return got;
}

static void test_wrong_door(void **state)
{
	struct rig_opts o = rig_defaults();
	struct wire_hello h, good;
	struct court c;
	struct end ud;

	(void)state;
	court_open(&c);
	court_victim(&c);
	o.type = IBV_QPT_UD;
	end_make(&ud, &c.rig, &o);
	good = h = peer_hello(&c.victim);
	h.dst_qpn = (good.dst_qpn & 0xffff00) | 0xfe; /* nobody */
	CHECK_EQ(ask(&c, &h), 0);
	h.dst_qpn = ud.qp->qp_num;
	CHECK_EQ(ask(&c, &h), 0);
	h.dst_qpn = c.honest.b.qp->qp_num; /* taken, and not by us */
	CHECK_EQ(ask(&c, &h), -1);
	h = good;
	h.src_qpn++;
	CHECK_EQ(ask(&c, &h), -1);
	h = good;
	h.rq_psn ^= 1;
	CHECK_EQ(ask(&c, &h), -1);
	h = good;
	h.type = WIRE_HELLO_UC;
	CHECK_EQ(ask(&c, &h), -1);
	CHECK(rig_stats(&c.rig).foreign_streams >= 4);
	no_strangers(&c);
	court_check(&c);
	real_peer(&c);
	/* who comes second comes too late; who comes after an error, too */
	h = good;
	CHECK(ask(&c, &h) < 1);
	CHECK_0(end_state(&c.victim, IBV_QPS_ERR));
	CHECK(ask(&c, &h) < 1);
	end_destroy(&ud);
	court_dismiss(&c);
	court_close(&c);
}

/* Someone who knows the numbers, but not the sequence number, and comes while the
 * queue pair does not know it either (RTR): must not keep the real peer out. */
static void test_usurper(void **state)
{
	static struct peer bad;
	struct wire_hello h;
	uint8_t buf[WIRE_MPA_HS_MAX];
	struct rig_addr to;
	struct court c;

	(void)state;
	court_open(&c);
	court_victim(&c);
	CHECK_0(end_state(&c.victim, IBV_QPS_RESET));
	to = peer_addr(&c.victim);
	end_init(&c.victim);
	end_rtr(&c.victim, &to);
	h = peer_hello(&c.victim);
	h.rq_psn ^= 0x77;
	peer_dial(&bad, door(&c.victim));
	peer_write(&bad, buf, peer_request(&h, buf));
	CHECK_EQ(peer_answer(&bad, RIG_WAIT), 1);
	peer_control(&bad, WIRE_CTL_PROBE, 0, 0);
	rig_sleep_ms(50);
	end_rts(&c.victim);
	CHECK(peer_closed(&bad, RIG_WAIT));
	peer_hang_up(&bad);
	real_peer(&c);
	court_check(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* Accepted, and then not a word: that is no connection either. */
static void test_no_first_word(void **state)
{
	static struct peer p;
	struct wire_hello h;
	uint8_t buf[WIRE_MPA_HS_MAX];
	struct court c;

	(void)state;
	court_open(&c);
	court_victim(&c);
	h = peer_hello(&c.victim);
	peer_dial(&p, door(&c.victim));
	peer_write(&p, buf, peer_request(&h, buf));
	CHECK_EQ(peer_answer(&p, RIG_WAIT), 1);
	peer_hang_up(&p);
	rig_sleep_ms(20);
	real_peer(&c);
	court_check(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* ---- the log ---- */

static void noisy(int sock, void *arg)
{
	struct court c;

	(void)sock;
	CHECK(dup2(*(int *)arg, STDERR_FILENO) == STDERR_FILENO);
	court_open(&c);
	court_victim(&c);
	for (int i = 0; i < 50; i++)
		refused_at_once(&c, "hello, world", 12);
	court_dismiss(&c);
	court_close(&c);
}

/* A hundred strangers, one line. */
static void test_logged_once(void **state)
{
	int fd = memfd_create("log", 0), lines = 0;
	struct rig_proc proc;
	char line[512];
	FILE *f;

	(void)state;
	CHECK(fd >= 0);
	rig_spawn(&proc, noisy, &fd);
	rig_join(&proc);
	CHECK_0(lseek(fd, 0, SEEK_SET));
	f = fdopen(fd, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		lines += strstr(line, "refused a connection") != NULL;
	fclose(f);
	CHECK_EQ(lines, 1);
}

/* ---- many ---- */

struct crowd {
	uint16_t port;
	int n;
};

/* Another process, because descriptors are limited for each. */
static void crowd(int sock, void *arg)
{
	const struct crowd *crowd = arg;
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(crowd->port)};
	struct rlimit lim;
	int fd = -1;

	CHECK_0(getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = lim.rlim_max;
	CHECK_0(setrlimit(RLIMIT_NOFILE, &lim));
	for (int i = 0; i < crowd->n; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
			break;
		if (i % 3 == 1)
			CHECK(send(fd, "MPA ID Re", 9, MSG_NOSIGNAL) != 0);
	}
	rig_say(sock, 'C');
	rig_hear(sock, 'G');
}

static void flood(int n, rlim_t limit)
{
	struct rig_proc proc;
	struct rlimit old, lim;
	struct crowd cr = {.n = n};
	uint64_t cpu;
	struct court c;
	int fds;

	court_open(&c);
	court_victim(&c);
	cr.port = door(&c.victim);
	CHECK_0(getrlimit(RLIMIT_NOFILE, &old));
	lim = old;
	fds = rig_open_fds();
	rig_spawn(&proc, crowd, &cr);
	if (limit) {
		lim.rlim_cur = (rlim_t)fds + limit;
		CHECK_0(setrlimit(RLIMIT_NOFILE, &lim));
	}
	rig_hear(proc.sock, 'C');
	for (int i = 0; i < 20; i++) {
		court_check(&c);
		rig_sleep_ms(5);
	}
	CHECK(strangers(&c) <= 4096);
	cpu = rig_cpu_ns();
	rig_sleep_ms(300);
	CHECK(rig_cpu_ns() - cpu < 150 * RIG_MS); /* standing there costs nothing */
	rig_say(proc.sock, 'G');
	rig_join(&proc);
	CHECK_0(setrlimit(RLIMIT_NOFILE, &old));
	no_strangers(&c);
	real_peer(&c);
	court_dismiss(&c);
	court_close(&c);
}

static void test_flood(void **state)
{
	(void)state;
	flood(5000, 0);
}

/* With hardly any descriptors left. */
static void test_flood_out_of_descriptors(void **state)
{
	(void)state;
	flood(300, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_logged_once), /* first: each process logs it once */
		RIG_TEST(test_noise),       RIG_TEST(test_silence),
		RIG_TEST(test_slow),        RIG_TEST(test_wrong_door),
		RIG_TEST(test_usurper),     RIG_TEST(test_no_first_word),
		RIG_TEST(test_flood),       RIG_TEST(test_flood_out_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
