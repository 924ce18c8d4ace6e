/* weft-mpi-perf: measurements of any MPI, with MPI's own calls and nothing else.
 *
 * Every rank runs the same kind. Rank 0 keeps the clock, decides for all how many iterations
 * there is time for, and prints. What is compared is measured in turn, iteration by iteration,
 * so that a disturbance of the machine hits both; medians are taken last.
 */
#ifndef WEFT_MPI_PERF_H
#define WEFT_MPI_PERF_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench_sample.h"

enum { MP_TAG = 1, MP_ACK = 2, MP_SIZES = 32, MP_LIST = 17, MP_MIFS = 8, MP_WINDOW_MOST = 1024 };

struct mp_opts {
	const char *kind;
	int iterations, warmup;    /* below 0: the kind's own */
	size_t min, max, factor;   /* sizes; max 0: the kind's own */
	size_t list[MP_LIST];      /* sizes one by one, instead; ended by 0 */
	double bound;              /* seconds for everything */
	double delay;              /* seconds; below 0: the kind's own */
	double test;               /* seconds between calls of MPI_Test; 0: none */
	int window;                /* messages on the way; 0: the kind's own */
	int first_step, last_step; /* of drc; 0: all */
	int model;                 /* of exchange; 0: both */
	int buffers;               /* of spectrum and regcache; 0: their own */
	int percent;               /* of reuse and usage; below 0: all */
	const char *by, *layout;   /* of spectrum; NULL: send, and both */
	const char *op;            /* of arrival; NULL: alltoall */
	int mif[MP_MIFS];          /* of arrival, ended by 0; none: the paper's */
	int late;                  /* of arrival: percent; below 0: all, by chance */
	const char *wait;          /* of arrival: sleep or spin; NULL: as there are cores */
	bool own;                  /* arrival: beside the MPI's own, by its PMPI_ name */
	bool sync;                 /* arrival: clocks are compared even on one machine */
	bool copy;                 /* what a copy costs, too */
	bool json, help;
};

struct mp_kind;

struct mp {
	struct mp_opts o;
	const struct mp_kind *kind;
	int rank, ranks;
	double start;      /* when the bound began */
	double unit;       /* seconds that a unit of computation takes */
	double rss_before; /* MiB, before MPI_Init */
	unsigned char *out, *in;
	MPI_Win win;        /* of one-sided operations */
	double *samples[7]; /* room for o.iterations each */
	int rows;           /* printed so far */
	long wrong;         /* messages that were not what was sent */
};

/* What a kind measures when nothing is said. */
struct mp_kind {
	const char *name;
	int (*run)(struct mp *mp); /* 0, or the exit code */
	int ranks;                 /* exactly; 0: any number from 2 on */
	size_t min, max, factor;
	int iterations, warmup;
	double delay;
	int window; /* messages; 0: it has none */
};

extern const struct mp_kind mp_kinds[]; /* ends with a name of NULL */

/* 0, or 2 after rank 0 has said what is wrong. */
int mp_opts_parse(struct mp_opts *o, int argc, char **argv, bool speaks);
extern const char mp_usage[];

/* ---- kinds ---- */
int mp_latency(struct mp *mp);
int mp_put(struct mp *mp);
int mp_get(struct mp *mp);
int mp_spectrum(struct mp *mp);
int mp_reuse(struct mp *mp);
int mp_bw(struct mp *mp);
int mp_bibw(struct mp *mp);
int mp_bidir(struct mp *mp);
int mp_multi_lat(struct mp *mp);
int mp_multi_bw(struct mp *mp);
int mp_regcache(struct mp *mp);
int mp_usage_of_rtr(struct mp *mp);
int mp_pingpong_late(struct mp *mp);
int mp_overlap(struct mp *mp);
int mp_progress(struct mp *mp);
int mp_exchange(struct mp *mp);
int mp_coll_loop(struct mp *mp); /* of the collective of the kind's name */
int mp_arrival(struct mp *mp);
int mp_drc(struct mp *mp);
int mp_trace(struct mp *mp);
int mp_memory(struct mp *mp);
double mp_memory_rss(void); /* MiB of this process */

/* ---- time and computation (mpi_work.c) ---- */
double mp_now(void);
void mp_wait_until(double when); /* without a call of MPI */

/* Measures how long a unit takes while the other ranks wait in MPI. */
void mp_calibrate(struct mp *mp);
long mp_units(const struct mp *mp, double seconds);
/* Computes. A fixed amount of work, not a fixed time: a thread or an interrupt that takes the
 * processor away makes it longer, as it would a program's. request is for --test only; without
 * that option there is no call of MPI in here. */
void mp_work(const struct mp *mp, long units, MPI_Request *request);

/* How many iterations, at most `wanted`, of so many seconds each fit into this row's share of the
 * time that is left, with `rows` rows to come (this one included). 0: the time is over. The same
 * on all ranks. */
int mp_fit(const struct mp *mp, int wanted, double seconds, int rows);
int mp_iterations(const struct mp *mp);
int mp_warmup(const struct mp *mp);
int mp_window(const struct mp *mp);
double mp_delay(const struct mp *mp);
int mp_sizes(const struct mp *mp, size_t sizes[MP_SIZES]);

/* ---- who comes first (mpi_work.c) ---- */
enum mp_timing { MP_RECEIVER_EARLY, MP_SENDER_EARLY, MP_TIMINGS };
enum mp_side { MP_RECEIVER, MP_SENDER, MP_SIDES };
extern const char *const mp_timings[], *const mp_sides[];

/* Brings two ranks together and returns zero, the time on this rank's clock when the late side is
 * to post: two delays from now. The early side posts one delay from now, when nobody is in the
 * barrier any more. */
double mp_meet(const struct mp *mp);
void mp_wait_turn(const struct mp *mp, double zero, bool early);

/* First and last bytes of a message say which one it is. */
void mp_stamp(unsigned char *buf, size_t size, unsigned int n);
void mp_check(struct mp *mp, const unsigned char *buf, size_t size, unsigned int n);

/* The same of all bytes, which takes as long as a copy of them: not while time is taken. */
void mp_fill(unsigned char *buf, size_t size, unsigned int n);
void mp_verify(struct mp *mp, const unsigned char *buf, size_t size, unsigned int n);

void *mp_room(size_t bytes); /* whole pages, cleared; never NULL */

/* ---- a message from any buffer (mpi_ways.c) ---- */
enum mp_way { MP_SEND, MP_PUT, MP_GET, MP_WAYS };
extern const char *const mp_ways[];

/* Of many buffers (mpi_buffers.c): back to back, or each on pages of its own. */
enum { MP_PACKED, MP_PAGES, MP_LAYOUTS };
extern const char *const mp_layouts[];

/* Seconds. MP_SEND: half a round trip of a ping-pong, from `buf` and into `in` on both ranks.
 * MP_PUT and MP_GET: rank 0's operation between `buf` and rank 1's mp->in, and a fence; for these
 * there has to be a window. */
double mp_move(struct mp *mp, enum mp_way way, unsigned char *buf, unsigned char *in, size_t size);
/* The same without a clock: writes to the buffers before and after, and looks at each byte. */
void mp_prove(struct mp *mp, enum mp_way way, unsigned char *buf, unsigned char *in, size_t size,
	      unsigned int n);
void mp_window_open(struct mp *mp, enum mp_way way, size_t bytes);
void mp_window_close(struct mp *mp);

/* ---- collectives (mpi_coll_ops.c) ---- */

/* Of MPI_COMM_WORLD; n distinguishes calls, so that what an earlier one has left is not taken for
 * the result of this one. */
struct mp_coll {
	const char *name;
	void (*stamp)(struct mp *mp, size_t size, unsigned int n); /* before a call */
	void (*call)(struct mp *mp, size_t size);
	void (*own)(struct mp *mp, size_t size); /* the same, by its PMPI_ name */
	void (*check)(struct mp *mp, size_t size, unsigned int n);
	bool rooted;   /* nobody needs anything but what rank 0 has */
	bool separate; /* in a loop, a barrier behind each that is not timed */
	bool sized;    /* it moves data */
};
extern const struct mp_coll mp_colls[]; /* ends with a name of NULL */
const struct mp_coll *mp_coll_find(const char *name);

/* ---- clocks of several ranks (mpi_clock.c) ---- */

/* How many ranks are on the machine of this one, whatever hosts of a lab they are on: they share
 * its cores, and its clock. */
int mp_neighbours(const struct mp *mp);
/* What has to be added to mp_now() to get rank 0's: 0 on one machine, unless measured all the
 * same. Wants all ranks. */
double mp_offset(const struct mp *mp, bool measure);

/* ---- output (mpi_out.c) ---- */
struct mp_cell {
	const char *name;
	const char *text; /* NULL: a number */
	double number;    /* NaN: none */
	int digits;       /* behind the point */
};

#define MP_TEXT(n, t)    ((struct mp_cell){.name = (n), .text = (t)})
#define MP_INT(n, v)     ((struct mp_cell){.name = (n), .number = (double)(v)})
#define MP_REAL(n, v, d) ((struct mp_cell){.name = (n), .number = (v), .digits = (d)})
#define MP_SUMMARY       6

void mp_begin(const struct mp *mp);
/* Rank 0 prints a row; others do nothing. */
void mp_row(struct mp *mp, const struct mp_cell *cells, int n);
void mp_end(const struct mp *mp);
/* n, p50, mean, p10, p90, p99 of n values, which are sorted by this. Microseconds of seconds. */
void mp_summary_us(struct mp_cell cells[MP_SUMMARY], double *seconds, int n);
void mp_summary_mbps(struct mp_cell cells[MP_SUMMARY], double *mbps, int n);
double mp_median(double *v, int n); /* sorts */

#endif
