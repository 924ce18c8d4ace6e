/* RD queue pairs: peers that are not there, die, sleep, or begin anew. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include "rig_rd.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

/* Half a second: 4.096 us << 14, eight times. */
static struct rig_opts impatient(void)
{
	struct rig_opts o = rd_defaults();

	o.timeout = 14;
	o.retry_cnt = 7;
	return o;
}

static void check_pair(struct rd_pair *p)
{
	static uint64_t id = 5000;

	id++;
	memset(p->a.buf, (int)id, 10000);
	end_recv(&p->b, id, 0, 10000);
	rd_post(&p->ab, IBV_WR_SEND, id, 0, 10000, 0);
	EXPECT_OK(p->b.rcq, id);
	EXPECT_OK(p->a.scq, id);
	CHECK(!memcmp(p->a.buf, p->b.buf, 10000));
}

/* One of each kind. */
static void post_all(struct way *w, uint64_t first, uint32_t len)
{
	rd_post(w, IBV_WR_SEND, first, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_WRITE, first + 1, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_READ, first + 2, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_WRITE_WITH_IMM, first + 3, 0, len, 0);
	rd_add(w, first + 4, 0, 0, 1);
	rd_cas(w, first + 5, 0, 0, 1, 2);
}

/* All n requests from `first` on fail so within these times, while the pair works: what comes of
 * it has larger numbers. */
static void all_fail(struct rd_pair *p, uint64_t first, unsigned int n, enum ibv_wc_status want,
		     unsigned int least, unsigned int most)
{
	uint64_t start = rig_now_ms();
	unsigned int got = 0;

	while (got < n) {
		struct ibv_wc wc;

		CHECK(rig_now_ms() - start < most);
		end_recv(&p->b, 9999, 0, 3000);
		rd_post(&p->ab, IBV_WR_SEND, 9998, 0, 3000, 0);
		EXPECT_OK(p->b.rcq, 9999);
		do {
			CHECK(wait_wc(p->a.scq, &wc, RIG_WAIT));
			if (wc.wr_id == 9998)
				break;
			CHECK(wc.wr_id >= first && wc.wr_id < first + n);
			CHECK_EQ(wc.status, want);
			CHECK(rig_now_ms() - start >= least);
			got++;
		} while (true);
		CHECK_0(wc.status);
	}
	CHECK_EQ(end_query(&p->a), IBV_QPS_RTS);
}

/* ---- nobody ---- */

static int some_socket(uint32_t *qpn)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_0(bind(fd, (struct sockaddr *)&at, sizeof(at)));
	CHECK_0(getsockname(fd, (struct sockaddr *)&at, &len));
	*qpn = (uint32_t)ntohs(at.sin_port) << 8 | 0xfe;
	return fd;
}

static void test_nobody(void **state)
{
	struct rig_addr to;
	struct rd_pair p;
	struct way w;
	int fd;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	to = end_addr(&p.b);
	fd = some_socket(&to.qpn);
	close(fd);
	way_make(&w, &p.a, &to, 0);
	for (int i = 0; i < 2; i++) {
		post_all(&w, 10, 5000);
		all_fail(&p, 10, 6, IBV_WC_RETRY_EXC_ERR, 0, 2500);
	}
	CHECK_EQ(rd_stats(&p.a).peers, 1);
	way_free(&w);
	rd_pair_close(&p);
}

static void test_silent(void **state)
{
	struct rig_opts o = impatient();
	struct rig_addr to;
	struct rd_pair p;
	struct way w;
	int fd;

	(void)state;
	rd_pair_open(&p, &o, NULL);
	to = end_addr(&p.b);
	fd = some_socket(&to.qpn);
	way_make(&w, &p.a, &to, 0);
	post_all(&w, 10, 5000);
	all_fail(&p, 10, 6, IBV_WC_RETRY_EXC_ERR, 450, 1500);
	way_free(&w);
	close(fd);
	rd_pair_close(&p);
}

/* ---- another process ---- */

/* An end that lets others do what they want; ends when told. */
static void passive(int sock, void *arg)
{
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct end e;

	(void)arg;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_meet(&e, sock);
	rig_hear(sock, 'E');
	end_destroy(&e);
	rig_close(&rig);
}

static void meet(struct rig_proc *proc, struct end *e, struct way *w)
{
	struct rig_addr own = end_addr(e), peer;

	rig_put(proc->sock, &own, sizeof(own));
	rig_get(proc->sock, &peer, sizeof(peer));
	rig_say(proc->sock, 'U');
	rig_hear(proc->sock, 'U');
	way_make(w, e, &peer, 0);
}

static void test_killed(void **state)
{
	struct rig_proc proc;
	struct rd_pair p;
	struct way w;

	(void)state;
	for (int known = 0; known < 2; known++) {
		rig_spawn(&proc, passive, NULL);
		rd_pair_open(&p, NULL, NULL);
		meet(&proc, &p.a, &w);
		if (known) { /* the pair exists already */
			rd_post(&w, IBV_WR_RDMA_READ, 1, 0, 100000, 0);
			EXPECT_OK(p.a.scq, 1);
		}
		CHECK_0(kill(proc.pid, SIGSTOP));
		post_all(&w, 10, 100000);
		post_all(&w, 16, 8);
		rig_sleep_ms(20);
		rig_kill(&proc);
		all_fail(&p, 10, 12, IBV_WC_RETRY_EXC_ERR, 0, 4000);
		check_pair(&p);
		way_free(&w);
		rd_pair_close(&p);
	}
}

/* Killed while it works, not after it was stopped. */
static void test_killed_at_work(void **state)
{
	struct rig_proc proc;
	struct rd_pair p;
	struct way w;

	(void)state;
	rig_spawn(&proc, passive, NULL);
	rd_pair_open(&p, NULL, NULL);
	meet(&proc, &p.a, &w);
	rd_post(&w, IBV_WR_RDMA_READ, 1, 0, 1 << 20, 0);
	EXPECT_OK(p.a.scq, 1);
	rd_post(&w, IBV_WR_SEND, 10, 0, 100000, 0); /* waits for a receive */
	post_all(&w, 11, 100000);
	rig_sleep_ms(5);
	rig_kill(&proc);
	/* The writes may have been in time. */
	for (uint64_t start = rig_now_ms(), got = 0; got < 7; got++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK(rig_now_ms() - start < 4000);
		if (wc.status || (wc.opcode != IBV_WC_RDMA_WRITE))
			CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	}
	check_pair(&p);
	way_free(&w);
	rd_pair_close(&p);
}

enum { N_SLEEPY = 400 };

static void sleepy(int sock, void *arg)
{
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct end e;

	(void)arg;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_meet(&e, sock);
	for (uint32_t i = 0; i < 50; i++)
		end_recv(&e, i, (i % 50) * 8192, 8192);
	for (uint32_t i = 0; i < N_SLEEPY; i++) {
		uint32_t n;

		EXPECT_OK(e.rcq, i);
		memcpy(&n, e.buf + (i % 50) * 8192, 4);
		CHECK_EQ(n, i);
		end_recv(&e, i + 50, (i % 50) * 8192, 8192);
	}
	rig_hear(sock, 'E');
	end_destroy(&e);
	rig_close(&rig);
}

static void test_stopped(void **state)
{
	struct rig_opts o = rd_defaults();
	uint32_t posted = 0, done = 0, stop = 100;
	bool was[N_SLEEPY] = {false};
	struct rig_proc proc;
	struct rd_pair p;
	struct way w;

	(void)state;
	o.timeout = 16; /* two seconds */
	rig_spawn(&proc, sleepy, NULL);
	rd_pair_open(&p, &o, NULL);
	meet(&proc, &p.a, &w);
	while (done < N_SLEEPY) {
		struct ibv_wc wc;

		/* what has not completed keeps its buffer */
		for (; posted < N_SLEEPY && (posted < 50 || was[posted - 50]) && posted < done + 45;
		     posted++) {
			memcpy(p.a.buf + (posted % 50) * 8192, &posted, 4);
			rd_post(&w, IBV_WR_SEND, posted, (posted % 50) * 8192, 8000, 0);
		}
		if (done == stop) {
			CHECK_0(kill(proc.pid, SIGSTOP));
			rig_sleep_ms(400);
			CHECK_0(kill(proc.pid, SIGCONT));
			stop += 130;
		}
		if (!wait_wc(p.a.scq, &wc, RIG_WAIT))
			CHECK(!"a completion");
		CHECK_0(wc.status);
		CHECK(wc.wr_id < posted && !was[wc.wr_id]); /* in any order, but once */
		was[wc.wr_id] = true;
		done++;
	}
	CHECK_EQ(rd_stats(&p.a).deaths, 0);
	rig_say(proc.sock, 'E');
	rig_join(&proc);
	way_free(&w);
	rd_pair_close(&p);
}

/* Sends one long message, of which the end never comes. */
static void long_sender(int sock, void *arg)
{
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct rig_addr own, peer;
	struct end e;
	struct way w;

	(void)arg;
	o.buf_len = 64 << 20;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	own = end_addr(&e);
	rig_put(sock, &own, sizeof(own));
	rig_get(sock, &peer, sizeof(peer));
	rig_say(sock, 'U');
	rig_hear(sock, 'U');
	way_make(&w, &e, &peer, 0);
	e.buf[0] = 0x99;
	rd_post(&w, IBV_WR_SEND, 1, 0, 64 << 20, 0);
	rig_hear(sock, 'E');
}

static void test_sender_dies(void **state)
{
	struct rig_opts o = impatient();
	struct rig_proc proc;
	struct rd_pair p;
	struct way w;

	(void)state;
	rig_spawn(&proc, long_sender, NULL);
	o.buf_len = 64 << 20;
	rd_pair_open(&p, NULL, &o);
	end_recv(&p.b, 77, 0, 64 << 20);
	meet(&proc, &p.b, &w);
	rig_wait_byte(p.b.buf, 0x99);
	rig_kill(&proc);
	expect_none(p.b.rcq, 1);
	/* Others wait no longer than it takes to see that it is dead. */
	rd_post(&p.ab, IBV_WR_SEND, 1, 0, 10000, 0);
	CHECK_EQ(EXPECT_OK(p.b.rcq, 77).byte_len, 10000);
	EXPECT_OK(p.a.scq, 1);
	CHECK_EQ(rd_stats(&p.b).peers, 1);
	check_pair(&p);
	way_free(&w);
	rd_pair_close(&p);
}

/* Over UDP, and so slowly that there is time to kill it. */
static void slow_sender(int sock, void *arg)
{
	CHECK_0(setenv("WEFT_FAULT", "loss=50%,seed=1", 1));
	long_sender(sock, arg);
}

/* Somebody waits for the receive that a dying peer's message has taken. */
static void test_receive_comes_back(void **state)
{
	struct rig_opts o = impatient();
	struct rig_proc proc;
	struct rd_pair p;
	struct way w;

	(void)state;
	rig_spawn(&proc, slow_sender, NULL);
	o.buf_len = 64 << 20;
	rd_pair_open(&p, NULL, &o);
	check_pair(&p); /* from now on by shared memory, if there is any */
	end_recv(&p.b, 77, 0, 64 << 20);
	meet(&proc, &p.b, &w);
	rig_wait_byte(p.b.buf, 0x99);
	rd_post(&p.ab, IBV_WR_SEND, 1, 0, 1000, 0);
	while (!rd_stats(&p.b).rnr_sent)
		expect_none(p.b.rcq, 1);
	rig_kill(&proc);
	CHECK_EQ(EXPECT_OK(p.b.rcq, 77).byte_len, 1000);
	EXPECT_OK(p.a.scq, 1);
	CHECK_EQ(rd_stats(&p.b).deaths, 1);
	way_free(&w);
	rd_pair_close(&p);
}

/* ---- ends of this process ---- */

static void test_peer_ends(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (int i = 0; i < 10; i++) {
		check_pair(&p);
		rd_post(&p.ab, IBV_WR_SEND, 1, 0, 100000, 0);
		rd_post(&p.ab, IBV_WR_RDMA_READ, 2, 0, 100000, 0);
		rd_add(&p.ab, 3, 0, 0, 1);
		if (i % 2)
			rig_sleep_ms(5);
		CHECK_0(end_state(&p.b, i % 3 ? IBV_QPS_RESET : IBV_QPS_ERR));
		for (int j = 0; j < 3; j++) {
			struct ibv_wc wc;

			CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
			CHECK_EQ(wc.status, IBV_WC_REM_ABORT_ERR);
		}
		CHECK_0(end_state(&p.b, IBV_QPS_RESET));
		end_up(&p.b, NULL); /* the same address handle works */
	}
	check_pair(&p);
	rd_post(&p.ab, IBV_WR_SEND, 1, 0, 100000, 0);
	rd_post(&p.ab, IBV_WR_RDMA_READ, 2, 0, 100000, 0);
	rig_sleep_ms(5);
	end_destroy(&p.b);
	for (int j = 0; j < 2; j++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.status, IBV_WC_REM_ABORT_ERR);
	}
	end_make(&p.b, &p.rig, &o); /* another queue pair, for the end */
	rd_pair_close(&p);
}

/* Whoever has what was sent, and ends before its acknowledgement is due, has still got it. */
static void test_ends_with_thanks(void **state)
{
	struct rd_pair p;

	(void)state;
	for (int i = 0; i < 50; i++) {
		rd_pair_open(&p, NULL, NULL);
		if (i % 2)
			check_pair(&p);
		end_recv(&p.b, 5, 0, 1000);
		rd_post(&p.ab, IBV_WR_SEND, 1, 0, 100, 0);
		EXPECT_OK(p.b.rcq, 5);
		CHECK_0(end_state(&p.b, IBV_QPS_RESET));
		EXPECT_OK(p.a.scq, 1);
		rd_pair_close(&p);
	}
}

/* What was sent in an earlier life, and has arrived, may still take a receive. */
static void forgotten(const struct end *e)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;

	while (rd_stats(e).peers && rig_now_ms() < end)
		usleep(100);
	CHECK_EQ(rd_stats(e).peers, 0);
}

static void test_own_end(void **state)
{
	struct rd_pair p;
	struct rig_addr to;
	struct way nobody;
	int fd;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	to = end_addr(&p.b);
	fd = some_socket(&to.qpn);
	way_make(&nobody, &p.a, &to, 0);
	for (int i = 0; i < 10; i++) {
		int seen[24] = {0};

		check_pair(&p);
		for (uint64_t j = 0; j < 3; j++)
			end_recv(&p.a, j, 0, 100);
		post_all(&p.ab, 0, 100000); /* the first waits for a receive */
		post_all(&nobody, 6, 100000);
		post_all(&p.ab, 12, 8);
		post_all(&nobody, 18, 8);
		CHECK_0(end_state(&p.a, IBV_QPS_ERR));
		for (int j = 0; j < 24; j++) {
			struct ibv_wc wc;

			CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
			CHECK(wc.wr_id < 24 && !seen[wc.wr_id]++);
			if (wc.status || wc.opcode != IBV_WC_RDMA_WRITE)
				CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		expect_run(p.a.rcq, 0, 3, IBV_WC_WR_FLUSH_ERR);
		rd_post(&p.ab, IBV_WR_SEND, 30, 0, 10, 0);
		EXPECT(p.a.scq, 30, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(rd_stats(&p.a).peers + rd_stats(&p.a).paths, 0);
		forgotten(&p.b);
		CHECK_0(end_state(&p.a, IBV_QPS_RESET));
		end_up(&p.a, NULL);
	}
	check_pair(&p);
	post_all(&p.ab, 0, 100000);
	post_all(&nobody, 6, 100000);
	CHECK_0(end_state(&p.a, IBV_QPS_RESET)); /* everything is forgotten */
	forgotten(&p.b);
	end_up(&p.a, NULL);
	check_pair(&p);
	way_free(&nobody);
	close(fd);
	rd_pair_close(&p);
}

static void test_destroy_busy(void **state)
{
	struct rd_pair p;

	(void)state;
	for (int i = 0; i < 20; i++) {
		rd_pair_open(&p, NULL, NULL);
		for (uint64_t j = 0; j < 8; j++) {
			if (j < 4) {
				end_recv(&p.a, j, 0, 1 << 20);
				end_recv(&p.b, j, 0, 1 << 20);
			}
			rd_post(&p.ab, j % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ, j, 1 << 20, 300000,
				0);
			rd_post(&p.ba, j % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, j, 1 << 20, 300000,
				0);
		}
		if (i % 2)
			usleep((useconds_t)(i * 300));
		rd_pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_nobody),
		RIG_TEST(test_silent),
		RIG_TEST(test_killed),
		RIG_TEST(test_killed_at_work),
		RIG_TEST(test_stopped),
		RIG_TEST(test_sender_dies),
		RIG_TEST(test_receive_comes_back),
		RIG_TEST(test_peer_ends),
		RIG_TEST(test_ends_with_thanks),
		RIG_TEST(test_own_end),
		RIG_TEST(test_destroy_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
