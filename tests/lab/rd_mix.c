/* rd_mix: every RD operation mixed, in both directions between two processes, over whatever the
 * network does meanwhile. Every byte must be right, every message come once and in order, every
 * atomic be executed once.
 *
 *	rd_mix serve [-p PORT] [-t SECONDS] [-T LIMIT] [-S SEED]
 *	rd_mix join HOST [the same]
 *
 * Each side knows what the other will do, as it follows from the seed. What was written is read
 * back and compared, since only the writer knows when it may change.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "rd_peer.h"

#define SLOTS    32
#define SLOT_LEN 32768
#define AREA     ((size_t)SLOTS * SLOT_LEN)
#define WAYS     3
/* The buffer: what is sent from, received into, read back into; what the peer writes, what it
 * reads, what it counts in. */
enum { TX, RX, BACK, WRITTEN, READABLE, COUNTER };
#define BUF_LEN (COUNTER * AREA + 4096)

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			die("rd_mix.c:%d: failed: %s", __LINE__, #x);                              \
	} while (0)

enum op { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, ADD, N_OPS };

struct request {
	enum op op;
	uint32_t len;
	uint64_t seed;
};

struct mix {
	struct rd_node n;
	struct rd_where to;
	struct ibv_ah *way[WAYS];
	int ctl;
	uint64_t end, limit;
	/* Ours. */
	struct util_rand rand, ways;
	struct request req[SLOTS];
	bool busy[SLOTS], back[SLOTS]; /* back: it is being read back */
	uint32_t posted, done, adds;
	uint64_t add_seen; /* sum of the old values */
	/* The peer's. */
	struct util_rand peer_rand;
	uint32_t received, peer_ops;
	bool peer_done;
	uint8_t readable[SLOTS * SLOT_LEN]; /* what the peer lets us read */
};

static struct mix m;
static uint8_t scratch[SLOT_LEN];

static size_t at(int area, uint64_t slot)
{
	return (size_t)area * AREA + slot * SLOT_LEN;
}

/* ---- what is done ---- */

static uint32_t some_length(struct util_rand *r)
{
	switch (util_rand_below(r, 8)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)util_rand_below(r, SLOT_LEN);
	case 2:
		return (uint32_t)util_rand_below(r, 4000);
	default:
		return (uint32_t)util_rand_below(r, 200);
	}
}

static struct request draw(struct util_rand *r)
{
	struct request q;

	q.op = (enum op)util_rand_below(r, N_OPS);
	q.len = some_length(r);
	q.seed = util_rand_next(r);
	return q;
}

static bool takes_receive(const struct request *q)
{
	return q->op == SEND || q->op == SEND_IMM || q->op == WRITE_IMM;
}

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	struct util_rand r;

	util_rand_seed(&r, seed);
	util_rand_bytes(&r, buf, len);
}

static bool is_filled(const uint8_t *buf, size_t len, uint64_t seed)
{
	fill(scratch, len, seed);
	return !memcmp(buf, scratch, len);
}

/* ---- requests ---- */

static void post(enum ibv_wr_opcode op, uint64_t slot, size_t off, uint32_t len, size_t there)
{
	struct ibv_ah *ah = m.way[util_rand_below(&m.ways, WAYS)];

	rd_post(&m.n, &m.to, ah, op, slot, (uint32_t)m.req[slot].seed, off, len, there);
}

static void post_one(uint64_t slot)
{
	static const enum ibv_wr_opcode code[] = {
		[SEND] = IBV_WR_SEND,
		[SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WRITE] = IBV_WR_RDMA_WRITE,
		[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct request *q = &m.req[slot];

	*q = draw(&m.rand);
	m.busy[slot] = true;
	m.posted++;
	if (q->op == ADD) {
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, slot, at(BACK, slot), 8, at(COUNTER, 0));
	} else if (q->op == READ) {
		memset(m.n.buf + at(BACK, slot), 0, q->len);
		post(IBV_WR_RDMA_READ, slot, at(BACK, slot), q->len, at(READABLE, slot));
	} else {
		fill(m.n.buf + at(TX, slot), q->len, q->seed);
		post(code[q->op], slot, at(TX, slot), q->len, at(WRITTEN, slot));
	}
}

static void read_back(uint64_t slot)
{
	m.back[slot] = true;
	memset(m.n.buf + at(BACK, slot), 0, m.req[slot].len);
	post(IBV_WR_RDMA_READ, slot, at(BACK, slot), m.req[slot].len, at(WRITTEN, slot));
}

static void completed(uint64_t slot)
{
	const struct request *q = &m.req[slot];
	const uint8_t *back = m.n.buf + at(BACK, slot);
	uint64_t old;

	CHECK(m.busy[slot]);
	if (m.back[slot]) {
		CHECK(is_filled(back, q->len, q->seed));
	} else if (q->op == WRITE || q->op == WRITE_IMM) {
		read_back(slot);
		return;
	} else if (q->op == READ) {
		CHECK(!memcmp(back, m.readable + slot * SLOT_LEN, q->len));
	} else if (q->op == ADD) {
		memcpy(&old, back, sizeof(old));
		m.add_seen += old;
		m.adds++;
	}
	m.busy[slot] = m.back[slot] = false;
	m.done++;
}

/* ---- receives ---- */

static struct request next_of_peer(void)
{
	struct request q;

	do {
		q = draw(&m.peer_rand);
		m.peer_ops++;
	} while (!takes_receive(&q));
	return q;
}

static void got(const struct ibv_wc *wc)
{
	struct request q = next_of_peer();
	uint64_t slot = wc->wr_id % SLOTS;

	CHECK(wc->wr_id == m.received);
	CHECK(wc->byte_len == q.len);
	CHECK(wc->opcode == (q.op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	CHECK(!!(wc->wc_flags & IBV_WC_WITH_IMM) == (q.op != SEND));
	CHECK(q.op == SEND || ntohl(wc->imm_data) == (uint32_t)q.seed);
	CHECK(wc->src_qp == m.to.qpn);
	CHECK(q.op == WRITE_IMM || is_filled(m.n.buf + at(RX, slot), q.len, q.seed));
	m.received++;
	rd_recv(&m.n, wc->wr_id + SLOTS, at(RX, slot), SLOT_LEN);
}

/* ---- the run ---- */

static void take_completions(void)
{
	struct ibv_wc wc;

	while (rd_poll(&m.n, &wc)) {
		if (wc.opcode & IBV_WC_RECV)
			got(&wc);
		else
			completed(wc.wr_id);
	}
}

/* Sleeps until something happens. */
static void rest(bool said)
{
	struct pollfd p[2] = {{.fd = m.n.chan->fd, .events = POLLIN},
			      {.fd = m.peer_done ? -1 : m.ctl, .events = POLLIN}};
	char line[64];

	poll(p, 2, 200);
	if (p[0].revents)
		rd_event(&m.n);
	if (p[1].revents) {
		CHECK(line_get(m.ctl, line, sizeof(line), 5000));
		CHECK(!strncmp(line, "done ", 5));
		m.peer_done = true;
		take_completions(); /* everything that it says is done has arrived */
		for (uint32_t n = (uint32_t)atol(line + 5); m.peer_ops < n; m.peer_ops++) {
			struct request q = draw(&m.peer_rand);

			CHECK(!takes_receive(&q));
		}
	}
	if (util_now_ns() > m.limit)
		die("hangs: %u posted, %u done, %u received, the other side %s, this one %s",
		    m.posted, m.done, m.received, m.peer_done ? "has ended" : "has not ended",
		    said ? "has" : "has not");
}

static void run(void)
{
	bool said = false;

	while (!said || !m.peer_done) {
		bool more = util_now_ns() < m.end;

		take_completions();
		for (uint64_t s = 0; s < SLOTS && more; s++)
			if (!m.busy[s])
				post_one(s);
		if (!more && !said && m.done == m.posted) {
			line_put(m.ctl, "done %u", m.posted);
			said = true;
		}
		rest(said);
	}
}

/* Every old value was seen once, and the peer's are all in our counter. */
static void check_atomics(struct util_rand peer)
{
	uint64_t count, adds = 0;

	CHECK(m.add_seen == (uint64_t)m.adds * (m.adds - 1) / 2);
	for (uint32_t i = 0; i < m.peer_ops; i++)
		adds += draw(&peer).op == ADD;
	memcpy(&count, m.n.buf + at(COUNTER, 0), sizeof(count));
	CHECK(count == adds);
}

static void report(void)
{
	struct weftdv_rd_stats s;

	CHECK(!weftdv_query_rd(m.n.qp, &s));
	CHECK(s.deaths == 0);
	CHECK(s.local_messages == 0);
	printf("%u operations, %u messages received, %u atomics; packets: sent %llu, again %llu, "
	       "duplicates %llu, out of order %llu, damaged %llu; RNR %llu\n",
	       m.done, m.received, m.adds, (unsigned long long)s.sent, (unsigned long long)s.resent,
	       (unsigned long long)s.duplicates, (unsigned long long)s.out_of_order,
	       (unsigned long long)s.damaged, (unsigned long long)s.rnr_received);
}

/* ---- both sides find each other ---- */

static void meet(const char *host, uint16_t port)
{
	char mine[RD_WHERE_LEN], line[RD_WHERE_LEN];
	int fd;

	if (host) {
		m.ctl = tcp_connect(host, port);
	} else {
		struct pollfd p = {.fd = tcp_listen(port), .events = POLLIN};

		fd = p.fd;
		if (poll(&p, 1, 20000) != 1)
			die("nobody joins");
		m.ctl = accept(fd, NULL, NULL);
		close(fd);
	}
	rd_where_print(&m.n, mine);
	line_put(m.ctl, "%s", mine);
	if (!line_get(m.ctl, line, sizeof(line), 20000) || !rd_where_parse(&m.to, line))
		die("the other side does not say where it is");
}

static void prepare(const char *host, uint16_t port, uint64_t seed)
{
	uint64_t me = 2 * seed + !host, peer = 2 * seed + !!host;

	rd_open(&m.n, BUF_LEN, SLOTS, SLOTS);
	util_rand_seed(&m.rand, me * 1000);
	util_rand_seed(&m.ways, me);
	util_rand_seed(&m.peer_rand, peer * 1000);
	fill(m.n.buf + at(READABLE, 0), AREA, me + 7);
	fill(m.readable, AREA, peer + 7);
	for (uint64_t i = 0; i < SLOTS; i++)
		rd_recv(&m.n, i, at(RX, i), SLOT_LEN);
	meet(host, port);
	for (uint32_t i = 0; i < WAYS; i++)
		m.way[i] = rd_ah(&m.n, &m.to, i);
}

static void finish(void)
{
	char line[64];

	line_put(m.ctl, "bye");
	if (!line_get(m.ctl, line, sizeof(line), 20000) || strcmp(line, "bye") != 0)
		die("the other side does not say good-bye");
	for (int i = 0; i < WAYS; i++)
		ibv_destroy_ah(m.way[i]);
	rd_close(&m.n);
	close(m.ctl);
}

int main(int argc, char **argv)
{
	double seconds = 4, limit = 60;
	uint64_t seed = 1;
	uint16_t port = 7472;
	struct util_rand peer;
	int c;

	while ((c = getopt(argc, argv, "p:t:T:S:")) >= 0) {
		switch (c) {
		case 'p':
			port = (uint16_t)atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 'T':
			limit = atof(optarg);
			break;
		case 'S':
			seed = strtoull(optarg, NULL, 0);
			break;
		default:
			die("rd_mix serve | join HOST [-p PORT] [-t SECONDS] [-T LIMIT] [-S SEED]");
		}
	}
	argv += optind;
	argc -= optind;
	if (!(argc == 1 && !strcmp(argv[0], "serve")) && !(argc == 2 && !strcmp(argv[0], "join")))
		die("rd_mix serve | join HOST [-p PORT] [-t SECONDS] [-T LIMIT] [-S SEED]");
	prepare(argc == 2 ? argv[1] : NULL, port, seed);
	peer = m.peer_rand;
	m.end = util_now_ns() + (uint64_t)(seconds * 1e9);
	m.limit = util_now_ns() + (uint64_t)(limit * 1e9);
	run();
	check_atomics(peer);
	report();
	finish();
	return 0;
}
