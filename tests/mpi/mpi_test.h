/* What the MPI programs of this directory share.
 *
 * A program is a sequence of parts. All ranks begin and end each part together, also those
 * that have nothing to do in it. At its end rank 0 prints "ok NAME" or "FAIL NAME: why", with
 * the words of the lowest rank that has found something; every rank says on standard error
 * what it has found. A part in which no rank has checked anything fails.
 *
 * Every byte that is sent follows from a key, and the key from who sends what to whom, so that
 * a byte in a wrong place is noticed wherever it came from. Buffers have guards on both sides.
 *
 * Programs use nothing but MPI 3.1 and POSIX: the same source is built for each MPI.
 *
 *	-s SEED    of what is random; 0: take the time (1)
 *	-t SECONDS how long a program goes on that may go on for ever
 *	-n COUNT   how many messages, where that can be chosen (mt.count before mt_init)
 *	-T SECONDS after which a rank that has not come to its end says where it is and ends (100)
 *	-p PART    only parts whose names contain this
 */
#ifndef WEFT_TESTS_MPI_TEST_H
#define WEFT_TESTS_MPI_TEST_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "util_rand.h"

struct mt {
	int rank, size;
	uint64_t seed;
	double seconds;
	int count;
};
extern struct mt mt;

/* Begins the program; seconds is what -t is without the option. threads is the level that
 * is needed, MPI_THREAD_SINGLE and so on; mt_threads says what was given. */
void mt_init(int argc, char **argv, double seconds, int threads);
extern int mt_threads;

/* Whether the MPI library begins its version with this: for what is known to be wrong in one of
 * them, whatever is below it. */
int mt_library(const char *name);

/* Ends it; returns the exit code. */
int mt_done(void);

/* if (mt_begin("name %d", i)) { ...; mt_end(); } */
int mt_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void mt_end(void);
void mt_part(const char *name, void (*fn)(void));

/* Callable from any thread. */
void mt_good(void);
void mt_bad(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (cond)                                                                          \
			mt_good();                                                                 \
		else                                                                               \
			mt_bad(__FILE__, __LINE__, __VA_ARGS__);                                   \
	} while (0)

/* ---- what is sent ---- */

/* Memory with guards; mt_free checks them. Never NULL. */
void *mt_alloc(size_t len);
void mt_free(void *p);

uint64_t mt_key(int from, int to, int step);
void mt_fill(void *buf, size_t len, uint64_t key);
/* What no pattern contains by design, to be written over. */
void mt_poison(void *buf, size_t len);
size_t mt_poisoned(const void *buf, size_t len); /* how many bytes at its beginning */

/* One check: buf has the bytes of key; if not, says what and where it differs. */
void mt_expect(const void *buf, size_t len, uint64_t key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* One check: the status of a received message of so many bytes. */
void mt_expect_status(const MPI_Status *st, int source, int tag, size_t bytes, const char *what);

/* Around all powers of two and some odd ones, ascending, from 0 up to and including max. */
int mt_sizes(size_t *sizes, int room, size_t max);
enum { MT_SIZES = 128 };

/* ---- time ---- */

/* A while without MPI calls; gives the core to other ranks. */
void mt_nap(int microseconds);
/* Between two looks at something that needs other ranks: they may need this core. */
void mt_relax(void);
/* The same answer on all ranks: whether seconds have not passed since start (MPI_Wtime) on
 * rank 0. */
int mt_go_on(double start, double seconds);

/* Numbers that are the same on all ranks, or (own) different on each, for one part. */
struct util_rand mt_rand_shared(int part);
struct util_rand mt_rand_own(int part);

#endif
