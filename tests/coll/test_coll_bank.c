/* Words and banks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coll_bank.h"

/* Every word is of one kind, call, communicator and rank, and the other way round. */
static void test_words(void **state)
{
	static const uint32_t srcs[] = {0, 1, 47, 255, 256, 65534, 65535};

	(void)state;
	for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
		for (uint32_t call = 0; call < 4; call++)
			for (uint32_t comm = 0; comm < COLL_MAX_COMMS; comm++)
				for (size_t s = 0; s < sizeof(srcs) / sizeof(srcs[0]); s++) {
					struct coll_word w = {kind, call, comm, srcs[s]};
					struct coll_word u = coll_word_unpack(coll_word_pack(&w));

					assert_true(u.kind == kind && u.call == call);
					assert_true(u.comm == comm && u.src == srcs[s]);
				}
	for (uint64_t i = 0; i <= UINT32_MAX; i += 65521) {
		struct coll_word w = coll_word_unpack((uint32_t)i);

		assert_int_equal(coll_word_pack(&w), (uint32_t)i);
		assert_true(w.kind < COLL_KINDS && w.comm < COLL_MAX_COMMS);
		assert_true(w.src < COLL_MAX_RANKS);
	}
}

/* A call number is cut, a communicator's or a rank's never gets into another's place. */
static void test_cut(void **state)
{
	struct coll_word w = {COLL_ADVERT, 0xfffffffe, 3, 5};
	struct coll_word u = coll_word_unpack(coll_word_pack(&w));

	(void)state;
	assert_int_equal(u.call, 2);
	assert_int_equal(u.comm, 3);
	assert_int_equal(u.src, 5);
}

static void test_banks(void **state)
{
	(void)state;
	for (uint32_t call = UINT32_MAX - 8; call != 8; call++) {
		assert_true(coll_bank(call) != coll_bank(call + 1));
		assert_true(coll_bank(call) == coll_bank(call + 2));
		/* The bank can be had from what a word has of the number. */
		assert_int_equal(coll_bank(call & 3), coll_bank(call));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_banks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
