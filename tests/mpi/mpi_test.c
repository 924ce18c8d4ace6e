#include "mpi_test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN = 5 };

struct mt mt;
int mt_threads;

/* Of this file, so that nothing here meets what is tested; it is used by PMPI_ names only, which
 * no interposer that is tested has a part in. */
static MPI_Comm own_comm;
static const char *program = "?", *only;
static char part[96] = "start";
static char why[256]; /* the first that went wrong in this part */
static atomic_long checks, failures;
static long checks_before, failures_before, all_checks, all_failures;
static atomic_flag why_lock = ATOMIC_FLAG_INIT;

/* ---- life ---- */

/* A rank that hangs takes all others with it; whoever started us sees which part it was. */
static void too_late(int sig)
{
	char text[160];
	int len;

	(void)sig;
	len = snprintf(text, sizeof(text), "FAIL %s: rank %d is still in it, time is over\n", part,
		       mt.rank);
	if (write(STDERR_FILENO, text, (size_t)len) < 0)
		_exit(4);
	_exit(3);
}

static void usage(const char *wrong)
{
	if (mt.rank == 0)
		fprintf(stderr,
			"%s: %s\nUsage: %s [-s SEED] [-t SECONDS] [-n COUNT] [-T SECONDS] [-p "
			"PART]\n",
			program, wrong, program);
	MPI_Finalize();
	exit(2);
}

static double number(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0))
		usage("not a number");
	return v;
}

static void options(int argc, char **argv)
{
	double limit = 100;
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, "s:t:n:T:p:")) != -1) {
		switch (c) {
		case 's':
			mt.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			mt.seconds = number(optarg);
			break;
		case 'n':
			mt.count = (int)number(optarg);
			break;
		case 'T':
			limit = number(optarg);
			break;
		case 'p':
			only = optarg;
			break;
		default:
			usage("unknown option");
		}
	}
	if (optind < argc)
		usage("no arguments expected");
	if (limit > 0) {
		signal(SIGALRM, too_late);
		alarm((unsigned int)(limit + mt.seconds));
	}
}

void mt_init(int argc, char **argv, double seconds, int threads)
{
	program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	mt.seconds = seconds;
	mt.seed = 1;
	MPI_Init_thread(&argc, &argv, threads, &mt_threads);
	MPI_Comm_rank(MPI_COMM_WORLD, &mt.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mt.size);
	options(argc, argv);
	if (mt.size < 2)
		usage("needs two ranks or more");
	if (mt.seed == 0)
		mt.seed = (uint64_t)time(NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &own_comm);
	PMPI_Bcast(&mt.seed, 1, MPI_UINT64_T, 0, own_comm);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mt.rank == 0)
		printf("%s: %d ranks, seed %llu\n", program, mt.size, (unsigned long long)mt.seed);
}

int mt_library(const char *name)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	MPI_Get_library_version(version, &len);
	return strncmp(version, name, strlen(name)) == 0;
}

int mt_done(void)
{
	strcpy(part, "end");
	if (mt.rank == 0) {
		if (all_checks == 0)
			printf("FAIL %s: no part is named so\n", only);
		printf("%ld checks, %ld failures\n", all_checks, all_failures);
	}
	MPI_Comm_free(&own_comm);
	MPI_Finalize();
	/* Not only what was heard from others: the sum came over what is tested. */
	return all_checks == 0 || all_failures > 0 || atomic_load(&failures) > 0;
}

/* ---- parts ---- */

int mt_begin(const char *fmt, ...)
{
	char name[sizeof(part)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	if (only && !strstr(name, only))
		return 0;
	memcpy(part, name, sizeof(part));
	why[0] = 0;
	checks_before = atomic_load(&checks);
	failures_before = atomic_load(&failures);
	return 1;
}

void mt_end(void)
{
	long mine[2] = {atomic_load(&checks) - checks_before,
			atomic_load(&failures) - failures_before};
	long sum[2] = {0, 0};
	int first = mine[1] > 0 ? mt.rank : mt.size, lowest = 0;

	PMPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, own_comm);
	PMPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, own_comm);
	if (sum[0] == 0) {
		sum[1]++;
		snprintf(why, sizeof(why), "nothing was checked");
	} else if (sum[1] > 0 && lowest < mt.size) {
		PMPI_Bcast(why, sizeof(why), MPI_CHAR, lowest, own_comm);
	}
	all_checks += sum[0];
	all_failures += sum[1];
	if (mt.rank != 0)
		return;
	if (sum[1] > 0)
		printf("FAIL %s: rank %d: %s (%ld of %ld checks)\n", part,
		       lowest < mt.size ? lowest : 0, why, sum[1], sum[0]);
	else
		printf("ok %s\n", part);
}

void mt_part(const char *name, void (*fn)(void))
{
	if (!mt_begin("%s", name))
		return;
	fn();
	mt_end();
}

void mt_good(void)
{
	atomic_fetch_add_explicit(&checks, 1, memory_order_relaxed);
}

static void bad(const char *text)
{
	long n = atomic_fetch_add(&failures, 1) - failures_before;

	mt_good();
	if (n < SHOWN)
		fprintf(stderr, "%s: rank %d: %s: %s\n", program, mt.rank, part, text);
	while (atomic_flag_test_and_set(&why_lock))
		sched_yield();
	if (!why[0])
		snprintf(why, sizeof(why), "%s", text);
	atomic_flag_clear(&why_lock);
}

void mt_bad(const char *file, int line, const char *fmt, ...)
{
	char text[200], all[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	snprintf(all, sizeof(all), "%.30s:%d: %s", file, line, text);
	bad(all);
}

/* ---- time and chance ---- */

void mt_nap(int microseconds)
{
	struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000L};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

void mt_relax(void)
{
	sched_yield();
}

int mt_go_on(double start, double seconds)
{
	int on = mt.rank || MPI_Wtime() - start < seconds, all;

	/* Nobody goes on before all are here: messages of the next round would be taken for
	 * those of this one. */
	PMPI_Allreduce(&on, &all, 1, MPI_INT, MPI_MIN, own_comm);
	return all;
}

struct util_rand mt_rand_shared(int which)
{
	struct util_rand r;

	util_rand_seed(&r, mt_key(-1, which, (int)mt.seed) + mt.seed);
	return r;
}

struct util_rand mt_rand_own(int which)
{
	struct util_rand r;

	util_rand_seed(&r, mt_key(mt.rank, which, (int)mt.seed) + mt.seed);
	return r;
}
