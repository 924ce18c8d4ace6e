/* Blocks between ranks of a host: every length and every way, also in boxes that are hardly large
 * enough; and what is found wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll_mail.h"
#include "util_rand.h"

enum { RANKS = 3, LONGEST = 70000 };

static const size_t lengths[] = {0,  1,   16,   31,   32,   33,   48,     63,
				 64, 100, 4096, 8175, 8176, 8177, LONGEST};
enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };

static const struct coll_mail mails[] = {
	{RANKS, 64, 4096, true},    {RANKS, 64, 4096, false},     {RANKS, 72, 0, false},
	{RANKS, 8192, 0, true},     {RANKS, 8192, 0, false},      {RANKS, 8192, 4096, true},
	{RANKS, 8192, 4096, false}, {RANKS, 8192, 1 << 20, true},
};
enum { MAILS = sizeof(mails) / sizeof(*mails) };

struct pair {
	struct coll_mail_out out[RANKS];
	struct coll_mail_in in[RANKS];
	uint8_t *from, *box;
	size_t room;
};

/* Rank 0 sends to all, itself included: this process is every rank. The end of the box is the end
 * of the page. */
static void open_pair(struct pair *p, const struct coll_mail *m)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct util_rand r;
	uint8_t *at;

	p->room = m->ranks * m->slot;
	at = mmap(NULL, 8 * page + page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED && p->room <= 8 * page);
	assert_int_equal(mprotect(at + 8 * page, page, PROT_NONE), 0);
	p->box = at + 8 * page - p->room;
	p->from = malloc((size_t)RANKS * LONGEST);
	assert_non_null(p->from);
	util_rand_seed(&r, 5);
	for (size_t i = 0; i < (size_t)RANKS * LONGEST; i++)
		p->from[i] = (uint8_t)util_rand_next(&r);
	memset(p->box, 0xff, p->room); /* other calls leave anything there */
}

static void close_pair(struct pair *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(p->box + p->room - 8 * page, 9 * page);
	free(p->from);
}

static void put_all(struct pair *p, const struct coll_mail *m, const size_t len[RANKS])
{
	size_t used = 0;

	for (uint32_t i = 0; i < RANKS; i++) {
		p->out[i] = (struct coll_mail_out){.box = p->box,
						   .to = i,
						   .bytes = p->from + (size_t)i * LONGEST,
						   .len = len[i]};
		coll_mail_put(m, &p->out[i], &used);
		assert_true(used <= p->room);
		p->in[i] = (struct coll_mail_in){
			.box = p->box, .pid = getpid(), .me = i, .len = len[i]};
		p->in[i].to = malloc(len[i] + 1);
		assert_non_null(p->in[i].to);
		p->in[i].to[len[i]] = 0x5a;
	}
}

/* Turns until all is there; a sender's and a receiver's, in any order. */
static void move_all(struct pair *p, const struct coll_mail *m, struct util_rand *r)
{
	uint32_t have = 0;

	for (int turn = 0; have != (1u << RANKS) - 1; turn++) {
		uint32_t i = (uint32_t)util_rand_below(r, RANKS);
		int ret;

		assert_true(turn < 1000000);
		if (coll_mail_way(m, p->out[i].len) == COLL_MAIL_PARTS && util_rand_below(r, 2)) {
			size_t before = p->out[i].sent;
			bool moved = coll_mail_more(m, &p->out[i]);

			assert_int_equal(moved, p->out[i].sent != before);
			continue;
		}
		if (have >> i & 1)
			continue;
		ret = coll_mail_take(m, &p->in[i]);
		assert_true(ret == 0 || ret == 1);
		have |= (uint32_t)ret << i;
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_true(coll_mail_way(m, p->out[i].len) == COLL_MAIL_FETCHED ||
			    p->out[i].sent == p->out[i].len);
		assert_memory_equal(p->in[i].to, p->out[i].bytes, p->in[i].len);
		assert_int_equal(p->in[i].to[p->in[i].len], 0x5a);
		free(p->in[i].to);
	}
}

static void test_every_length(void **state)
{
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 1);
	for (int k = 0; k < MAILS; k++) {
		struct pair p;

		open_pair(&p, &mails[k]);
		for (int a = 0; a < LENGTHS; a++)
			for (int b = 0; b < LENGTHS; b++) {
				size_t len[RANKS] = {lengths[a], lengths[b],
						     lengths[(a + b) % LENGTHS]};

				put_all(&p, &mails[k], len);
				move_all(&p, &mails[k], &r);
			}
		close_pair(&p);
	}
}

/* What copies cost decides: short blocks are copied, long ones are not if that can be had, and
 * those that fit are not taken to pieces. */
static void test_ways(void **state)
{
	struct coll_mail m = {RANKS, 8192, 4096, true};

	(void)state;
	assert_int_equal(coll_mail_way(&m, 0), COLL_MAIL_COPIED);
	assert_int_equal(coll_mail_way(&m, 4096), COLL_MAIL_COPIED);
	assert_int_equal(coll_mail_way(&m, 4097), COLL_MAIL_FETCHED);
	m.fetch = false;
	assert_int_equal(coll_mail_way(&m, 4097), COLL_MAIL_COPIED);
	assert_int_equal(coll_mail_way(&m, 8192 - 16), COLL_MAIL_COPIED);
	assert_int_equal(coll_mail_way(&m, 8192), COLL_MAIL_PARTS);
}

static void test_lengths_that_differ(void **state)
{
	(void)state;
	for (int k = 0; k < MAILS; k++) {
		size_t len[RANKS] = {100, 20000, 0};
		struct pair p;

		open_pair(&p, &mails[k]);
		put_all(&p, &mails[k], len);
		for (uint32_t i = 0; i < RANKS; i++) {
			p.in[i].len++;
			assert_int_equal(coll_mail_take(&mails[k], &p.in[i]), -EMSGSIZE);
			free(p.in[i].to);
		}
		close_pair(&p);
	}
}

/* The owner of what is to be fetched has died. */
static void test_nobody_there(void **state)
{
	const struct coll_mail *m = &mails[3];
	size_t len[RANKS] = {100, 20000, 0};
	pid_t pid = fork();
	struct pair p;

	(void)state;
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	open_pair(&p, m);
	put_all(&p, m, len);
	for (uint32_t i = 0; i < RANKS; i++) {
		p.in[i].pid = pid;
		assert_int_equal(coll_mail_take(m, &p.in[i]), len[i] ? -ESRCH : 1);
		free(p.in[i].to);
	}
	close_pair(&p);
}

/* Two processes at the same time, through parts. */
static void test_two_processes(void **state)
{
	const struct coll_mail *m = &mails[4];
	size_t len[RANKS] = {LONGEST, LONGEST, LONGEST};
	struct pair p;
	pid_t pid;
	int status;

	(void)state;
	open_pair(&p, m);
	put_all(&p, m, len);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		while (coll_mail_take(m, &p.in[1]) == 0)
			;
		_exit(p.in[1].taken != LONGEST ||
		      memcmp(p.in[1].to, p.from + LONGEST, LONGEST) != 0);
	}
	alarm(60);
	while (p.out[1].sent < LONGEST)
		coll_mail_more(m, &p.out[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	alarm(0);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		free(p.in[i].to);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),        cmocka_unit_test(test_ways),
		cmocka_unit_test(test_lengths_that_differ), cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_two_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
