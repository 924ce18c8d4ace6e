/* Regions that are moved: what peers write and read by their keys goes to other memory, and nothing
 * touches the old one any more; or something was written before, and they are not moved. */
#include <sys/mman.h>
#include "rig_rd.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_SHM", "0", 0);
}

#define MB     (1u << 20)
#define BIG    (8 * MB)
#define OLD    0xbb
#define NEW    0x11
#define ROUNDS 40

static bool is_all(const uint8_t *p, size_t len, uint8_t value)
{
	return p[0] == value && !memcmp(p, p + 1, len - 1);
}

static uint8_t *pages(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct ibv_mr *reg(struct rig *rig, uint8_t *at, size_t len)
{
	struct ibv_mr *mr = rnic_reg_mr(rig->pd, at, len, (uintptr_t)at,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	CHECK(mr);
	return mr;
}

/* ---- the call ---- */

static void test_refused(void **state)
{
	uint8_t *old = pages(2 * MB);
	struct ibv_mr *mr;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	mr = reg(&rig, old, MB);
	CHECK_0(munmap(old + MB, MB));
	CHECK_EQ(rnic_move_mr(mr, old + MB), EFAULT);
	CHECK_EQ(rnic_move_mr(mr, old + 1), EFAULT);
	CHECK_EQ(rnic_move_mr(mr, (void *)UINTPTR_MAX), EINVAL);
	CHECK(mr->addr == old);
	CHECK_0(rnic_dereg_mr(mr));
	CHECK_0(munmap(old, MB));
	rig_close(&rig);
}

/* Moves are followed by writes, reads and atomics of any length; what only reads does not hinder
 * them, what writes does. */
static void test_followed(void **state)
{
	static const uint32_t sizes[] = {8, 3000, MB};
	uint8_t *old = pages(MB), *fresh = pages(MB), *third = pages(MB);
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_mr *mr = reg(&p.rig, old, MB);
		struct way w = p.ab;

		w.to.rkey = mr->rkey;
		w.to.addr = (uintptr_t)old;
		memset(old, OLD, MB);
		memset(fresh, 0, MB);
		rd_post(&w, IBV_WR_RDMA_READ, 1, 0, sizes[i], 0);
		EXPECT_OK(p.a.scq, 1);
		CHECK(is_all(p.a.buf, sizes[i], OLD));
		CHECK_0(rnic_move_mr(mr, third));
		CHECK_0(rnic_move_mr(mr, fresh));
		rd_post(&w, IBV_WR_RDMA_READ, 2, 0, sizes[i], 0);
		EXPECT_OK(p.a.scq, 2);
		CHECK(is_all(p.a.buf, sizes[i], 0));
		memset(p.a.buf, NEW, sizes[i]);
		rd_post(&w, IBV_WR_RDMA_WRITE, 3, 0, sizes[i], MB - sizes[i]);
		EXPECT_OK(p.a.scq, 3);
		rd_add(&w, 4, 0, 0, 1);
		EXPECT_OK(p.a.scq, 4);
		CHECK(is_all(old, MB, OLD) && is_all(third, MB, 0));
		CHECK(is_all(fresh + MB - sizes[i] + 8, sizes[i] - 8, NEW) || sizes[i] == 8);
		CHECK_EQ(fresh[0], sizes[i] == MB ? NEW + 1 : 1);
		CHECK_EQ(rnic_move_mr(mr, third), EBUSY);
		/* All that one knew of it is forgotten with the memory. */
		CHECK_0(rnic_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, old, MB, 0));
		CHECK_0(rnic_move_mr(mr, fresh));
		CHECK_0(rnic_dereg_mr(mr));
	}
	rd_pair_close(&p);
	CHECK_0(munmap(old, MB));
	CHECK_0(munmap(fresh, MB));
	CHECK_0(munmap(third, MB));
}

/* ---- in the middle of a write ---- */

static void meet(struct end *e, int sock, struct rig_addr *to)
{
	struct rig_addr own;

	if (e->o.type == IBV_QPT_RC) {
		end_meet(e, sock);
		*to = e->peer;
		return;
	}
	end_up(e, NULL);
	own = end_addr(e);
	rig_put(sock, &own, sizeof(own));
	rig_get(sock, to, sizeof(*to));
}

/* Another process: writes where it is told, until that is nowhere. */
static void writer(int sock, void *arg)
{
	const struct rig_opts *o = arg;
	struct rig_addr to;
	struct rig rig;
	struct end e;
	struct way w;

	rig_open(&rig);
	end_make(&e, &rig, o);
	meet(&e, sock, &to);
	way_make(&w, &e, &to, 0);
	memset(e.buf, NEW, BIG);
	while (rig_get(sock, &to, sizeof(to)), to.rkey) {
		w.to.rkey = e.peer.rkey = to.rkey;
		w.to.addr = e.peer.addr = to.addr;
		if (o->type == IBV_QPT_RC)
			end_write(&e, 1, 0, BIG, 0);
		else
			rd_post(&w, IBV_WR_RDMA_WRITE, 1, 0, BIG, 0);
		EXPECT_OK(e.scq, 1);
		rig_say(sock, 'D');
	}
	way_free(&w);
	end_destroy(&e);
	rig_close(&rig);
}

/* Whether it was moved in time. */
static bool one_round(struct rig *rig, int sock, struct util_rand *r, uint8_t *old, uint8_t *fresh)
{
	struct ibv_mr *mr = reg(rig, old, BIG);
	struct rig_addr at = {.rkey = mr->rkey, .addr = (uintptr_t)old};
	int err;

	memset(old, OLD, BIG);
	memset(fresh, 0, BIG);
	rig_put(sock, &at, sizeof(at));
	usleep((useconds_t)util_rand_below(r, 500));
	err = rnic_move_mr(mr, fresh);
	if (err)
		CHECK_EQ(err, EBUSY);
	else
		memset(old, OLD + 1, BIG);
	rig_hear(sock, 'D');
	CHECK(err ? is_all(old, BIG, NEW) : is_all(old, BIG, OLD + 1));
	CHECK(is_all(fresh, BIG, err ? 0 : NEW));
	CHECK_0(rnic_dereg_mr(mr));
	return !err;
}

static void in_the_middle(struct rig_opts *o)
{
	uint8_t *old = pages(BIG), *fresh = pages(BIG);
	struct rig_addr end = {.rkey = 0}, to;
	struct rig_proc proc;
	struct util_rand r = *rig_rand();
	struct rig rig;
	struct end e;
	int moved = 0;

	o->buf_len = BIG;
	rig_spawn(&proc, writer, o);
	rig_open(&rig);
	end_make(&e, &rig, o);
	meet(&e, proc.sock, &to);
	for (int i = 0; i < ROUNDS; i++)
		moved += one_round(&rig, proc.sock, &r, old, fresh);
	print_message("moved in time: %d of %d\n", moved, ROUNDS);
	rig_put(proc.sock, &end, sizeof(end));
	rig_join(&proc);
	end_destroy(&e);
	rig_close(&rig);
	CHECK_0(munmap(old, BIG));
	CHECK_0(munmap(fresh, BIG));
}

static void test_middle_rd(void **state)
{
	struct rig_opts o = rd_defaults();

	(void)state;
	in_the_middle(&o);
}

static void test_middle_rc(void **state)
{
	struct rig_opts o = rig_defaults();

	(void)state;
	in_the_middle(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_refused),
		RIG_TEST(test_followed),
		RIG_TEST(test_middle_rd),
		RIG_TEST(test_middle_rc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
