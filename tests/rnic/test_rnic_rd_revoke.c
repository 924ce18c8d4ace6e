/* RD through shared memory: data goes straight from the memory of one process to that of another.
 * When a program has its memory back, because its request was flushed or because it has
 * deregistered it, it may put there what it likes: nobody overwrites it, and nobody gets to see it.
 *
 * Each test has a second process. The first one fills its buffers with OLD, and with NEW when
 * it has them back. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "rig_rd.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_SHM", "1", 1);
}

#define MB     (1u << 20)
#define OLD    0xbb
#define NEW    0x11
#define N_MORE 100 /* small requests: more than are looked at in one go */

static size_t count(const uint8_t *p, size_t len, uint8_t value)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += p[i] == value;
	return n;
}

static bool is_all(const uint8_t *p, size_t len, uint8_t value)
{
	return p[0] == value && !memcmp(p, p + 1, len - 1);
}

static struct rig_opts options(size_t len)
{
	struct rig_opts o = rd_defaults();

	o.buf_len = len;
	o.send_wr = 256;
	o.cqe = 512;
	return o;
}

static struct rig_addr swap_addr(struct end *e, int sock)
{
	struct rig_addr own = end_addr(e), peer;

	rig_put(sock, &own, sizeof(own));
	rig_get(sock, &peer, sizeof(peer));
	return peer;
}

/* Until everything goes through shared memory, and both know that they can copy. */
static void warm_up(struct way *w)
{
	struct end *e = w->from;

	for (uint64_t i = 0; i < 500; i++) {
		rd_post(w, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, i, 0, MB, 0);
		EXPECT_OK(e->scq, i);
		if (i >= 20 && rd_stats(e).local_messages > 10)
			return;
	}
	CHECK(!"shared memory");
}

/* ---- a peer that does nothing for a while ---- */

enum ending { TO_ERR, TO_RESET, DESTROY, DEREG, N_ENDINGS };

struct verdict {
	uint64_t received, leaked; /* messages, bytes */
};

static void sleeper(int sock, void *arg)
{
	struct rig_opts o = options(4 * MB);
	uint64_t until;
	struct verdict v = {0};
	struct rig rig;
	struct end e;
	struct ibv_wc wc;
	char c = 0;

	(void)arg;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	memset(e.buf, 0xcc, 4 * MB);
	swap_addr(&e, sock);
	end_recv(&e, 1, 2 * MB, MB);
	while (recv(sock, &c, 1, MSG_DONTWAIT) != 1)
		for (int i = 0; i < 100; i++)
			v.received += ibv_poll_cq(e.rcq, 1, &wc) == 1 && !wc.status;
	until = rig_now_ms() + 5000;
	/* Told to wait for the other's end. */
	while (c == 'W' && rd_stats(&e).peers && rig_now_ms() < until)
		v.received += ibv_poll_cq(e.rcq, 1, &wc) == 1 && !wc.status;
	v.received += ibv_poll_cq(e.rcq, 1, &wc) == 1 && !wc.status;
	v.leaked = count(e.buf, 4 * MB, NEW);
	rig_put(sock, &v, sizeof(v));
	rig_hear(sock, 'E');
	end_destroy(&e);
	rig_close(&rig);
}

static void stop(struct rig_proc *p)
{
	int status;

	CHECK_0(kill(p->pid, SIGSTOP));
	CHECK(waitpid(p->pid, &status, WUNTRACED) == p->pid);
	CHECK(WIFSTOPPED(status));
}

/* Ends what is outstanding; the memory is ours again. */
static void take_back(struct end *e, enum ending how)
{
	struct ibv_wc wc;

	if (how == TO_ERR) {
		CHECK_0(end_state(e, IBV_QPS_ERR));
		for (int i = 0; i < 1 + N_MORE; i++) {
			CHECK(wait_wc(e->scq, &wc, RIG_WAIT));
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
	} else if (how == TO_RESET) {
		CHECK_0(end_state(e, IBV_QPS_RESET));
	} else if (how == DESTROY) {
		CHECK_0(rnic_destroy_qp(e->qp));
	}
	CHECK_0(rnic_dereg_mr(e->mr));
	e->mr = NULL;
	memset(e->buf, NEW, e->o.buf_len);
}

static void one_flush(enum ibv_wr_opcode op, enum ending how)
{
	struct rig_opts o = options(4 * MB);
	struct rig_proc proc;
	struct verdict v;
	struct rig_addr to;
	struct ibv_wc wc;
	struct rig rig;
	struct end e;
	struct way w;

	rig_spawn(&proc, sleeper, NULL);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	memset(e.buf, OLD, 4 * MB);
	to = swap_addr(&e, proc.sock);
	way_make(&w, &e, &to, 0);
	warm_up(&w);
	stop(&proc);
	rd_post(&w, op, 0, 0, MB, 0);
	for (uint64_t i = 1; i <= N_MORE; i++)
		rd_post(&w, IBV_WR_RDMA_WRITE, i, 2 * MB, 8, 3 * MB);
	take_back(&e, how);
	CHECK_0(kill(proc.pid, SIGCONT));
	for (int i = 0; how == DEREG && i < 1 + N_MORE; i++) {
		CHECK(wait_wc(e.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.status, wc.wr_id ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	}
	rig_say(proc.sock, how == DEREG ? 'N' : 'W');
	rig_get(proc.sock, &v, sizeof(v));
	if (v.received || v.leaked || !is_all(e.buf, 4 * MB, NEW))
		print_error("opcode %d, ended by %d: received %u, leaked %u bytes, changed %u\n",
			    op, how, (unsigned int)v.received, (unsigned int)v.leaked,
			    (unsigned int)(4 * MB - count(e.buf, 4 * MB, NEW)));
	CHECK(is_all(e.buf, 4 * MB, NEW));
	CHECK_EQ(v.received, 0);
	CHECK_EQ(v.leaked, 0);
	rig_say(proc.sock, 'E');
	rig_join(&proc);
	way_free(&w);
	if (how != DESTROY)
		CHECK_0(rnic_destroy_qp(e.qp));
	free(e.buf);
	CHECK_0(rnic_destroy_cq(e.rcq));
	CHECK_0(rnic_destroy_cq(e.scq));
	rig_close(&rig);
}

static void test_read_flushed(void **state)
{
	(void)state;
	for (int how = 0; how < N_ENDINGS; how++)
		one_flush(IBV_WR_RDMA_READ, how);
}

static void test_send_flushed(void **state)
{
	(void)state;
	for (int how = 0; how < N_ENDINGS; how++)
		one_flush(IBV_WR_SEND, how);
}

static void test_write_flushed(void **state)
{
	(void)state;
	for (int how = 0; how < N_ENDINGS; how++) {
		one_flush(IBV_WR_RDMA_WRITE, how);
		one_flush(IBV_WR_RDMA_WRITE_WITH_IMM, how);
	}
}

/* ---- in the middle of a copy ---- */

#define BIG    (16 * MB)
#define ROUNDS 30

/* One round: this side's memory is what is copied from. */
struct offer {
	struct ibv_mr *mr;
	uint8_t *buf;
};

static void offer_make(struct offer *f, struct end *e)
{
	f->buf = e->buf + BIG;
	memset(f->buf, OLD, BIG);
	f->mr = rnic_reg_mr(e->rig->pd, f->buf, BIG, (uintptr_t)f->buf, e->o.mr_access);
	CHECK(f->mr);
}

static void offer_end(struct offer *f, struct util_rand *r)
{
	usleep((useconds_t)util_rand_below(r, 6000));
	CHECK_0(rnic_dereg_mr(f->mr));
	memset(f->buf, NEW, BIG);
}

/* 'R': offers memory to be read. 'S', 'F': a Send was, or was not, received. 'W': was written to.
 * 'E': end. */
static void middle(int sock, void *arg)
{
	struct rig_opts o = options(2 * BIG);
	struct rig_addr at;
	struct util_rand r;
	struct offer f;
	struct rig rig;
	struct end e;
	char c;

	(void)arg;
	util_rand_seed(&r, 1);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	swap_addr(&e, sock);
	end_recv(&e, 1, 0, BIG);
	while (rig_get(sock, &c, 1), c != 'E') {
		if (c == 'R') {
			offer_make(&f, &e);
			at = end_addr(&e);
			at.rkey = f.mr->rkey;
			at.addr = (uintptr_t)f.buf;
			rig_put(sock, &at, sizeof(at));
			offer_end(&f, &r);
			continue;
		}
		if (c == 'S')
			EXPECT_OK(e.rcq, 1);
		else
			expect_none(e.rcq, 0);
		if (c != 'F')
			CHECK(is_all(e.buf, BIG, OLD));
		if (c == 'S')
			end_recv(&e, 1, 0, BIG);
		rig_say(sock, 'D');
	}
	end_destroy(&e);
	rig_close(&rig);
}

/* Reads what the other deregisters meanwhile. True: it was in time. */
static bool middle_read(struct way *w, int sock)
{
	struct end *e = w->from;
	struct rig_addr was = w->to;
	struct ibv_wc wc;

	rig_say(sock, 'R');
	rig_get(sock, &w->to, sizeof(w->to));
	memset(e->buf, 0, BIG);
	rd_post(w, IBV_WR_RDMA_READ, 7, 0, BIG, 0);
	CHECK(wait_wc(e->scq, &wc, RIG_WAIT));
	w->to = was;
	if (!wc.status)
		CHECK(is_all(e->buf, BIG, OLD));
	else
		CHECK(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_OP_ERR);
	return !wc.status;
}

/* Sends what we deregister ourselves. */
static bool middle_send(struct way *w, int sock, struct util_rand *r, enum ibv_wr_opcode op)
{
	struct end *e = w->from;
	struct ibv_mr *mr = e->mr;
	struct ibv_wc wc;
	struct offer f;

	offer_make(&f, e);
	e->mr = f.mr; /* for the request */
	rd_post(w, op, 8, BIG, BIG, 0);
	e->mr = mr;
	offer_end(&f, r);
	CHECK(wait_wc(e->scq, &wc, RIG_WAIT));
	if (wc.status)
		CHECK_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	rig_say(sock, (char)(wc.status ? 'F' : op == IBV_WR_SEND ? 'S' : 'W'));
	rig_hear(sock, 'D');
	return !wc.status;
}

static void test_middle(void **state)
{
	struct rig_opts o = options(2 * BIG);
	int n[3] = {0, 0, 0};
	struct rig_proc proc;
	struct rig_addr to;
	struct util_rand r;
	struct rig rig;
	struct end e;
	struct way w;

	(void)state;
	util_rand_seed(&r, 2);
	rig_spawn(&proc, middle, NULL);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	to = swap_addr(&e, proc.sock);
	way_make(&w, &e, &to, 0);
	warm_up(&w);
	for (int i = 0; i < ROUNDS; i++) {
		n[0] += middle_read(&w, proc.sock);
		n[1] += middle_send(&w, proc.sock, &r, IBV_WR_SEND);
		n[2] += middle_send(&w, proc.sock, &r, IBV_WR_RDMA_WRITE);
	}
	print_message("of %d each in time: %d reads, %d sends, %d writes\n", ROUNDS, n[0], n[1],
		      n[2]);
	CHECK_EQ(rd_stats(&e).deaths, 0);
	rig_say(proc.sock, 'E');
	rig_join(&proc);
	way_free(&w);
	end_destroy(&e);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_read_flushed),
		RIG_TEST(test_send_flushed),
		RIG_TEST(test_write_flushed),
		RIG_TEST(test_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
