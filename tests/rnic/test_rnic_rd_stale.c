/* RD queue pairs: packets of earlier lives, and handshakes that go wrong.
 *
 * A relay stands between a and b: a's address handle names 127.0.0.2, where the relay has b's
 * port. It hands on what it gets, drops, doubles or holds back what the test tells it to, and
 * keeps everything for later. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "rig_rd.h"
#include "wire_rd.h"

#define KEEP 20000

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 1);
}

enum { TO_B, TO_A };

struct kept {
	uint8_t dir, type;
	uint16_t len;
	uint8_t data[1500];
};

/* How many copies of a packet go on; -1: it waits for the next one. */
typedef int verdict_fn(int dir, uint8_t type, uint32_t nth);

struct relay {
	int fd[2]; /* towards b, towards a: what comes on one leaves by the other */
	struct sockaddr_in to[2];
	_Atomic(verdict_fn *) verdict;
	atomic_bool stop;
	pthread_t thread;
	atomic_uint n;
	uint32_t count[2][16];
	struct kept *kept, held[2];
};

static void relay_out(struct relay *r, const struct kept *k)
{
	sendto(r->fd[k->dir], k->data, k->len, 0, (struct sockaddr *)&r->to[k->dir],
	       sizeof(r->to[0]));
}

static void relay_one(struct relay *r, struct kept *k)
{
	verdict_fn *f = atomic_load(&r->verdict);
	int copies = f ? f(k->dir, k->type, r->count[k->dir][k->type]++) : 1;
	unsigned int n = atomic_load(&r->n);

	if (n < KEEP) {
		r->kept[n] = *k;
		atomic_store(&r->n, n + 1);
	}
	if (copies < 0 && !r->held[k->dir].len) {
		r->held[k->dir] = *k;
		return;
	}
	for (int i = 0; i < copies; i++)
		relay_out(r, k);
	if (r->held[k->dir].len)
		relay_out(r, &r->held[k->dir]);
	r->held[k->dir].len = 0;
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;

	while (!atomic_load(&r->stop)) {
		struct pollfd p[2] = {{.fd = r->fd[0], .events = POLLIN},
				      {.fd = r->fd[1], .events = POLLIN}};

		poll(p, 2, 5);
		for (int from = 0; from < 2; from++) {
			struct kept k;
			ssize_t n = recv(r->fd[from], k.data, sizeof(k.data), MSG_DONTWAIT);

			if (n < WIRE_RD_HDR)
				continue;
			k.dir = (uint8_t)!from;
			k.type = k.data[5] & 15;
			k.len = (uint16_t)n;
			relay_one(r, &k);
		}
	}
	return NULL;
}

static void relay_start(struct relay *r, const struct end *a, const struct end *b)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	memset(r, 0, sizeof(*r));
	r->kept = calloc(KEEP, sizeof(*r->kept));
	CHECK(r->kept);
	for (int i = 0; i < 2; i++) {
		r->fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		CHECK(r->fd[i] >= 0);
		if (i == TO_A) {
			at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
			at.sin_port = htons((uint16_t)(b->qp->qp_num >> 8));
		}
		CHECK_0(bind(r->fd[i], (struct sockaddr *)&at, sizeof(at)));
	}
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->to[TO_A] = r->to[TO_B] = at;
	r->to[TO_A].sin_port = htons((uint16_t)(a->qp->qp_num >> 8));
	CHECK_0(pthread_create(&r->thread, NULL, relay_main, r));
}

static void relay_stop(struct relay *r)
{
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	close(r->fd[0]);
	close(r->fd[1]);
	free(r->kept);
}

/* Sends again what was kept from `from` to `to`; `inits`: also introductions. */
static void replay(struct relay *r, unsigned int from, unsigned int to, bool inits)
{
	for (unsigned int i = from; i < to; i++)
		if (inits || r->kept[i].type != WIRE_RD_INIT) {
			relay_out(r, &r->kept[i]);
			if (i % 32 == 0)
				usleep(200); /* so that it is not the kernel that drops them */
		}
	rig_sleep_ms(10);
}

/* ---- a stage ---- */

struct stage {
	struct rd_pair p;
	struct relay r;
	struct way ab; /* through the relay */
	uint64_t n;
};

static void stage_open(struct stage *s)
{
	struct rig_addr to;

	memset(s, 0, sizeof(*s));
	rd_pair_open(&s->p, NULL, NULL);
	relay_start(&s->r, &s->p.a, &s->p.b);
	to = end_addr(&s->p.b);
	to.gid.raw[15] = 2;
	way_make(&s->ab, &s->p.a, &to, 0);
}

static void stage_close(struct stage *s)
{
	relay_stop(&s->r);
	way_free(&s->ab);
	rd_pair_close(&s->p);
}

static void again(struct end *e)
{
	CHECK_0(end_state(e, IBV_QPS_RESET));
	end_up(e, NULL);
}

static void good(struct stage *s)
{
	struct rd_pair *p = &s->p;
	uint64_t *word = (uint64_t *)(p->b.buf + (3 << 20)), before = *word;
	uint64_t id = s->n++;

	memset(p->a.buf, (int)id, 20000);
	end_recv(&p->b, id, 0, 20000);
	rd_post(&s->ab, IBV_WR_SEND, id, 0, 20000, 0);
	EXPECT_OK(p->b.rcq, id);
	EXPECT_OK(p->a.scq, id);
	CHECK(!memcmp(p->a.buf, p->b.buf, 20000));
	rd_post(&s->ab, IBV_WR_RDMA_WRITE, id, 0, 20000, 1 << 20);
	EXPECT_OK(p->a.scq, id);
	rd_post(&s->ab, IBV_WR_RDMA_READ, id, 2 << 20, 20000, 1 << 20);
	EXPECT_OK(p->a.scq, id);
	CHECK(!memcmp(p->a.buf, p->a.buf + (2 << 20), 20000));
	rd_add(&s->ab, id, 1 << 20, 3 << 20, 1);
	EXPECT_OK(p->a.scq, id);
	CHECK_EQ(*word, before + 1);
}

/* The word of a queue pair's end may be lost, or late: then a request learns of it. */
static void reach(struct stage *s)
{
	struct ibv_wc wc;

	for (int i = 0; i < 5; i++) {
		rd_post(&s->ab, IBV_WR_RDMA_WRITE, 1, 0, 0, 0);
		CHECK(wait_wc(s->p.a.scq, &wc, RIG_WAIT));
		if (!wc.status)
			return;
		CHECK_EQ(wc.status, IBV_WC_REM_ABORT_ERR);
	}
	CHECK(!"reached in five attempts");
}

static void nothing_happened(struct stage *s, const uint8_t *copy)
{
	expect_none(s->p.b.rcq, 5);
	expect_none(s->p.a.scq, 5);
	CHECK(!memcmp(copy, s->p.b.buf, s->p.b.o.buf_len));
}

/* ---- earlier lives ---- */

/* Everything that an earlier pair said, before the new one exists and after. */
static void old_packets(bool inits)
{
	struct stage s;
	uint8_t *copy;
	unsigned int first;
	uint64_t stale, deaths;

	stage_open(&s);
	for (int i = 0; i < 5; i++)
		good(&s);
	first = atomic_load(&s.r.n);
	CHECK(first > 100 && first < KEEP);
	again(&s.p.b);
	copy = malloc(s.p.b.o.buf_len);
	CHECK(copy);
	memset(s.p.b.buf, 0x77, s.p.b.o.buf_len);
	memcpy(copy, s.p.b.buf, s.p.b.o.buf_len);
	for (int i = 0; i < 4; i++)
		end_recv(&s.p.b, 999, 0, 20000);
	stale = rd_stats(&s.p.b).stale;
	replay(&s.r, 0, first, inits);
	nothing_happened(&s, copy);
	CHECK(rd_stats(&s.p.b).stale > stale + 50);
	again(&s.p.b); /* the receives go */
	for (int i = 0; i < 5; i++)
		good(&s);
	memcpy(copy, s.p.b.buf, s.p.b.o.buf_len);
	deaths = rd_stats(&s.p.a).deaths + rd_stats(&s.p.b).deaths;
	replay(&s.r, 0, first, inits);
	nothing_happened(&s, copy);
	good(&s);
	CHECK_EQ(rd_stats(&s.p.a).deaths + rd_stats(&s.p.b).deaths, deaths);
	/* Now a has a new life, too. */
	again(&s.p.a);
	good(&s);
	memcpy(copy, s.p.b.buf, s.p.b.o.buf_len);
	deaths = rd_stats(&s.p.a).deaths + rd_stats(&s.p.b).deaths;
	replay(&s.r, 0, first, inits);
	nothing_happened(&s, copy);
	good(&s);
	CHECK_EQ(rd_stats(&s.p.a).deaths + rd_stats(&s.p.b).deaths, deaths);
	free(copy);
	stage_close(&s);
}

static void test_old_packets(void **state)
{
	(void)state;
	old_packets(false);
}

/* Also those that ask for a pair, whose cookies were valid once. */
static void test_old_inits(void **state)
{
	(void)state;
	old_packets(true);
}

/* Packets of the pair that exists: again, in the same order and in another. */
static void test_same_life(void **state)
{
	struct stage s;
	unsigned int n;
	uint8_t *copy;

	(void)state;
	stage_open(&s);
	for (int i = 0; i < 5; i++)
		good(&s);
	copy = malloc(s.p.b.o.buf_len);
	CHECK(copy);
	memset(s.p.b.buf, 0x77, s.p.b.o.buf_len);
	memcpy(copy, s.p.b.buf, s.p.b.o.buf_len);
	n = atomic_load(&s.r.n);
	replay(&s.r, 0, n, true);
	for (unsigned int i = n; i--;)
		relay_out(&s.r, &s.r.kept[i]);
	rig_sleep_ms(10);
	nothing_happened(&s, copy);
	CHECK(rd_stats(&s.p.b).duplicates > 50);
	good(&s);
	CHECK_EQ(rd_stats(&s.p.b).deaths, 0);
	free(copy);
	stage_close(&s);
}

/* ---- handshakes ---- */

static int inits_twice(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	(void)nth;
	return type == WIRE_RD_INIT ? 2 : 1;
}

static int accept_lost(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	return type == WIRE_RD_ACCEPT && nth % 2 == 0 ? 0 : 1;
}

static int challenge_lost(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	return type == WIRE_RD_CHALLENGE && nth % 3 ? 0 : 1;
}

static int challenge_thrice(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	(void)nth;
	return type == WIRE_RD_CHALLENGE ? 3 : 1;
}

static int all_twice(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	(void)type;
	(void)nth;
	return 2;
}

static int swapped(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	(void)type;
	return nth % 2 ? 1 : -1;
}

static int hellos_swapped(int dir, uint8_t type, uint32_t nth)
{
	(void)dir;
	return type <= WIRE_RD_REFUSE && nth % 2 == 0 ? -1 : 1;
}

static int anything(int dir, uint8_t type, uint32_t nth)
{
	static _Thread_local struct util_rand r;
	static _Thread_local bool seeded;

	(void)dir;
	(void)nth;
	if (!seeded)
		util_rand_seed(&r, 42);
	seeded = true;
	return type <= WIRE_RD_REFUSE ? (int)util_rand_below(&r, 4) - 1 : 1;
}

static void test_handshakes(void **state)
{
	static verdict_fn *const verdicts[] = {inits_twice,      accept_lost, challenge_lost,
					       challenge_thrice, all_twice,   swapped,
					       hellos_swapped,   anything};
	struct stage s;

	(void)state;
	stage_open(&s);
	for (size_t v = 0; v < ARRAY_SIZE(verdicts); v++) {
		atomic_store(&s.r.verdict, verdicts[v]);
		for (int i = 0; i < 10; i++) {
			reach(&s);
			good(&s);
			CHECK_EQ(rd_stats(&s.p.a).peers, 1);
			again(i % 2 ? &s.p.a : &s.p.b);
			if (i % 3 == 0)
				again(i % 2 ? &s.p.b : &s.p.a);
			rig_sleep_ms(2);
		}
	}
	stage_close(&s);
}

/* Both begin at once, over ways of different length. */
static void test_simultaneous(void **state)
{
	static verdict_fn *const verdicts[] = {NULL, inits_twice, accept_lost, hellos_swapped};
	struct stage s;

	(void)state;
	stage_open(&s);
	for (int i = 0; i < 200; i++) {
		atomic_store(&s.r.verdict, verdicts[i % ARRAY_SIZE(verdicts)]);
		end_recv(&s.p.a, 1, 0, 5000);
		end_recv(&s.p.b, 2, 0, 5000);
		if (i % 2) {
			rd_post(&s.ab, IBV_WR_SEND, 3, 0, 5000, 0);
			rd_post(&s.p.ba, IBV_WR_SEND, 4, 0, 5000, 0);
		} else {
			rd_post(&s.p.ba, IBV_WR_SEND, 4, 0, 5000, 0);
			rd_post(i % 4 ? &s.ab : &s.p.ab, IBV_WR_SEND, 3, 0, 5000, 0);
		}
		EXPECT_OK(s.p.a.rcq, 1);
		EXPECT_OK(s.p.b.rcq, 2);
		EXPECT_OK(s.p.a.scq, 3);
		EXPECT_OK(s.p.b.scq, 4);
		CHECK_EQ(rd_stats(&s.p.a).peers, 1);
		CHECK_EQ(rd_stats(&s.p.b).peers, 1);
		again(&s.p.a);
		again(&s.p.b);
		rig_sleep_ms(1);
	}
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_old_packets), RIG_TEST(test_old_inits),    RIG_TEST(test_same_life),
		RIG_TEST(test_handshakes),  RIG_TEST(test_simultaneous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
