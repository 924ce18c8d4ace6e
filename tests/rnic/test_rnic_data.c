/* Every byte arrives: random sizes, random scatter/gather lists, every way to frame.
 *
 * Both processes draw the same plan from the same seed. The first sends and writes and
 * reads; the second checks what it received. What was written is read back. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include "rig.h"
#include "rnic_conn.h"

#define WINDOW  16
#define SLOT    (512 * 1024)
#define STEPS   500
#define BUF_LEN ((2 * WINDOW + 1) * (size_t)SLOT) /* slots to send, to read to, pattern */
#define PATTERN (2 * WINDOW * (size_t)SLOT)

struct config {
	const char *name;
	enum ibv_qp_type type;            /* RC unless set */
	const char *first[4], *second[4]; /* "NAME=value" */
	uint32_t largest;
	bool tiny; /* socket buffers: hardly anything goes out in one piece */
};

static const struct config configs[] = {
	{.name = "plain", .largest = 400000},
	{.name = "tiny buffers", .largest = 100000, .tiny = true},
	{.name = "uc", .type = IBV_QPT_UC, .largest = 100000},
	{.name = "small frames",
	 .first = {"WEFT_FPDU=128"},
	 .second = {"WEFT_FPDU=128"},
	 .largest = 20000},
	{.name = "odd frames",
	 .first = {"WEFT_FPDU=1001"},
	 .second = {"WEFT_FPDU=333"},
	 .largest = 60000},
	{.name = "large frames",
	 .first = {"WEFT_FPDU=64000"},
	 .second = {"WEFT_FPDU=64000"},
	 .largest = 400000},
	{.name = "markers",
	 .first = {"WEFT_MARKERS=1"},
	 .second = {"WEFT_MARKERS=1"},
	 .largest = 200000},
	{.name = "markers, large frames",
	 .first = {"WEFT_MARKERS=1", "WEFT_FPDU=64000"},
	 .second = {"WEFT_MARKERS=1", "WEFT_FPDU=64000"},
	 .largest = 200000},
	{.name = "markers one way", .second = {"WEFT_MARKERS=1"}, .largest = 200000},
	{.name = "markers the other way", .first = {"WEFT_MARKERS=1"}, .largest = 200000},
	{.name = "no crc", .first = {"WEFT_CRC=0"}, .second = {"WEFT_CRC=0"}, .largest = 400000},
	{.name = "crc wanted by one", .first = {"WEFT_CRC=0"}, .largest = 100000},
	{.name = "crc wanted by the other", .second = {"WEFT_CRC=0"}, .largest = 100000},
	{.name = "markers without crc",
	 .first = {"WEFT_CRC=0", "WEFT_MARKERS=1"},
	 .second = {"WEFT_CRC=0", "WEFT_MARKERS=1", "WEFT_FPDU=500"},
	 .largest = 100000},
	{.name = "no threads",
	 .first = {"WEFT_PROGRESS=0"},
	 .second = {"WEFT_PROGRESS=0"},
	 .largest = 400000},
};

struct step {
	enum ibv_wr_opcode op;
	uint32_t len;
	uint64_t seed; /* of the contents */
	uint32_t from; /* read: where in the pattern */
	int n_sge;
	uint32_t cut[4]; /* lengths of the elements */
};

static void set(const char *const *vars, bool on)
{
	for (; *vars; vars++) {
		char name[64], *eq;

		snprintf(name, sizeof(name), "%s", *vars);
		eq = strchr(name, '=');
		*eq = 0;
		if (on)
			setenv(name, eq + 1, 1);
		else
			unsetenv(name);
	}
}

static void cut(struct util_rand *r, struct step *s)
{
	uint32_t left = s->len;

	s->n_sge = 1 + (int)util_rand_below(r, 4);
	for (int i = 0; i < s->n_sge; i++) {
		s->cut[i] = i == s->n_sge - 1 ? left : (uint32_t)util_rand_below(r, left + 1);
		left -= s->cut[i];
	}
}

static struct step draw(struct util_rand *r, const struct config *cfg)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_READ};
	struct step s = {.op = ops[util_rand_below(r, cfg->type == IBV_QPT_UC ? 3 : 5)]};

	/* all magnitudes equally often */
	s.len = (uint32_t)util_rand_below(r, (cfg->largest >> util_rand_below(r, 16)) + 1) +
		(uint32_t)util_rand_below(r, 3);
	s.seed = util_rand_next(r);
	s.from = (uint32_t)util_rand_below(r, SLOT - cfg->largest);
	cut(r, &s);
	return s;
}

static void contents(uint8_t *p, const struct step *s)
{
	struct util_rand r;

	util_rand_seed(&r, s->seed);
	util_rand_bytes(&r, p, s->len);
}

static int sges(const struct end *e, const struct step *s, size_t at, struct ibv_sge *list)
{
	for (int i = 0; i < s->n_sge; i++) {
		list[i] = end_sge(e, at, s->cut[i]);
		at += s->cut[i];
	}
	return s->n_sge;
}

static bool takes_receive(const struct step *s)
{
	return s->op != IBV_WR_RDMA_WRITE && s->op != IBV_WR_RDMA_READ;
}

static struct rig_opts options(const struct config *cfg)
{
	struct rig_opts o = rig_defaults();

	if (cfg->type)
		o.type = cfg->type;
	o.buf_len = BUF_LEN;
	return o;
}

static void shrink_buffers(struct end *e)
{
	struct rnic_engine *engine = rig_engine(e->rig);
	struct rnic_qp *qp = rnic_qp(e->qp);
	uint64_t end = rig_now_ms() + RIG_WAIT;
	bool up = false;
	int size = 1;

	while (!up && rig_now_ms() < end) {
		expect_none(e->rcq, 0);
		rnic_lock(engine);
		up = qp->conn && qp->conn->state == RNIC_CONN_UP;
		if (up)
			CHECK_0(setsockopt(qp->conn->io.fd, SOL_SOCKET, SO_SNDBUF, &size,
					   sizeof(size)));
		rnic_unlock(engine);
	}
	CHECK(up);
}

struct job {
	const struct config *cfg;
	uint64_t seed;
};

/* ---- the second process ---- */

static void check_received(struct end *e, const struct step *s, size_t slot, uint8_t *want,
			   uint32_t step)
{
	struct ibv_wc wc = EXPECT_OK(e->rcq, step);

	CHECK_EQ(wc.byte_len, s->len);
	if (s->op != IBV_WR_SEND) {
		CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
		CHECK_EQ(ntohl(wc.imm_data), step);
	}
	contents(want, s);
	CHECK_0(memcmp(e->buf + slot * SLOT, want, s->len));
}

static void post_receive(struct end *e, const struct step *s, size_t slot, uint32_t step)
{
	struct ibv_sge list[4];
	struct ibv_recv_wr wr = {.wr_id = step, .sg_list = list}, *bad;

	wr.num_sge = sges(e, s, slot * SLOT, list);
	CHECK_0(ibv_post_recv(e->qp, &wr, &bad));
}

static void second(int sock, void *arg)
{
	const struct job *job = arg;
	struct rig_opts o = options(job->cfg);
	struct util_rand ahead, behind;
	uint8_t *want = malloc(SLOT);
	struct rig r;
	struct end e;
	uint32_t posted = 0;
	char c;

	set(job->cfg->second, true);
	rig_open(&r);
	end_make(&e, &r, &o);
	util_rand_seed(&ahead, job->seed ^ 0x5555);
	util_rand_bytes(&ahead, e.buf + PATTERN, SLOT);
	util_rand_seed(&ahead, job->seed);
	util_rand_seed(&behind, job->seed);
	end_meet(&e, sock);
	if (job->cfg->tiny)
		shrink_buffers(&e);
	for (uint32_t i = 0; i < STEPS; i++) {
		struct step s;

		/* as many receives ahead as the sender may have under way */
		for (; posted < STEPS && posted < i + WINDOW; posted++) {
			s = draw(&ahead, job->cfg);
			if (takes_receive(&s))
				post_receive(&e, &s, posted % WINDOW, posted);
		}
		rig_say(sock, 'P'); /* posted */
		s = draw(&behind, job->cfg);
		if (takes_receive(&s))
			check_received(&e, &s, i % WINDOW, want, i);
	}
	rig_say(sock, 'E');
	/* The peer still reads; without a thread that is work for polling. */
	while (recv(sock, &c, 1, MSG_DONTWAIT) < 0)
		expect_none(e.rcq, 1);
	end_destroy(&e);
	rig_close(&r);
	free(want);
}

/* ---- the first ---- */

static void start(struct end *e, const struct step *s, uint32_t step)
{
	size_t slot = step % WINDOW;
	struct ibv_sge list[4];
	struct work w;

	work_init(&w, e, s->op, step, 0, 0, slot * SLOT);
	w.wr.sg_list = list;
	w.wr.imm_data = htonl(step);
	if (s->op == IBV_WR_RDMA_READ) {
		w.wr.wr.rdma.remote_addr = e->peer.addr + PATTERN + s->from;
		w.wr.num_sge = sges(e, s, (WINDOW + slot) * SLOT, list);
		memset(e->buf + (WINDOW + slot) * SLOT, 0, s->len);
	} else {
		contents(e->buf + slot * SLOT, s);
		w.wr.num_sge = sges(e, s, slot * SLOT, list);
	}
	CHECK_0(post(e, &w));
	if (s->op != IBV_WR_RDMA_WRITE)
		return;
	/* back again, behind it */
	w.wr.opcode = IBV_WR_RDMA_READ;
	w.wr.wr_id = STEPS + step;
	w.wr.num_sge = sges(e, s, (WINDOW + slot) * SLOT, list);
	CHECK_0(post(e, &w));
}

static void finish(struct end *e, const struct step *s, uint32_t step, const uint8_t *pattern)
{
	size_t slot = step % WINDOW;
	uint8_t *back = e->buf + (WINDOW + slot) * SLOT;

	EXPECT_OK(e->scq, step);
	if (s->op == IBV_WR_RDMA_WRITE) {
		EXPECT_OK(e->scq, STEPS + step);
		CHECK_0(memcmp(back, e->buf + slot * SLOT, s->len));
	} else if (s->op == IBV_WR_RDMA_READ) {
		CHECK_0(memcmp(back, pattern + s->from, s->len));
	}
}

static void run(const struct config *cfg)
{
	struct job job = {cfg, util_rand_next(rig_rand())};
	struct rig_opts o = options(cfg);
	struct util_rand ahead, behind;
	uint8_t *pattern = malloc(SLOT);
	struct rig_proc proc;
	uint32_t started = 0;
	struct rig r;
	struct end e;

	rig_spawn(&proc, second, &job);
	set(cfg->first, true);
	rig_open(&r);
	end_make(&e, &r, &o);
	util_rand_seed(&ahead, job.seed ^ 0x5555);
	util_rand_bytes(&ahead, pattern, SLOT);
	util_rand_seed(&ahead, job.seed);
	util_rand_seed(&behind, job.seed);
	end_meet(&e, proc.sock);
	if (cfg->tiny)
		shrink_buffers(&e);
	for (uint32_t i = 0; i < STEPS; i++) {
		struct step s;

		rig_hear(proc.sock, 'P'); /* everything before i was checked there */
		for (; started < STEPS && started < i + WINDOW; started++) {
			s = draw(&ahead, cfg);
			start(&e, &s, started);
		}
		s = draw(&behind, cfg);
		finish(&e, &s, i, pattern);
	}
	rig_hear(proc.sock, 'E');
	rig_say(proc.sock, 'E');
	end_destroy(&e);
	rig_close(&r);
	set(cfg->first, false);
	rig_join(&proc);
	free(pattern);
}

static void test_configs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		uint64_t since = rig_now_ms();

		alarm(60);
		run(&configs[i]);
		printf("  %-24s %4u ms\n", configs[i].name, (unsigned int)(rig_now_ms() - since));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_TEST(test_configs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
