/* The papers' figures and tables, what they claim, and what this machine says of it.
 *
 * A *figure* (or table) is what users name: hsal/fig10. It has *claims*, each of which is a number,
 * or a direction, that the paper's text states. An *experiment* is how something is measured or
 * simulated here: shell commands that print JSON, and what to take from it. Several figures may
 * stand on one experiment. A figure without one can not be measured here, and says why.
 *
 * An experiment is repeated in rounds, in which its commands take turns. A round gives *series*,
 * points (x, y) with a name; a claim is a number made of them, one for each round, and the verdict
 * is about their median and its interval.
 *
 * Tables are constant, functions of the first half are pure. Nothing here is thread-safe, since
 * nothing has threads.
 */
#ifndef WEFT_REPRO_H
#define WEFT_REPRO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- what the papers say ---- */

enum repro_function {
	REPRO_VALUE,   /* a(ax) */
	REPRO_RATIO,   /* a(ax) / b(bx) */
	REPRO_GAIN,    /* percent that a is below b: 100 (1 - a(ax) / b(bx)) */
	REPRO_LEAST,   /* the least of a(x) / b(x) over all x that both have */
	REPRO_MOST,    /* the most of it */
	REPRO_BELOW,   /* the part of all x for which a(x) < b(x) */
	REPRO_RISE,    /* a at its greatest x / a at its least x */
	REPRO_LOWEST,  /* the x at which a is least */
	REPRO_MAXIMUM, /* the greatest a(x) */
};

enum repro_sense {
	REPRO_AT_LEAST,
	REPRO_AT_MOST,
	REPRO_ABOUT,
};

struct repro_claim {
	const char *says;      /* one sentence */
	const char *published; /* as the text has it */
	const char *unit;      /* of the value here; NULL: none */
	enum repro_function function;
	const char *a, *b; /* series; b may be NULL */
	double ax, bx;
	enum repro_sense sense;
	double want;      /* what was published; NAN: a direction only */
	double tolerance; /* relative */
	double neutral;   /* what it would be without the effect; NAN: there is no such value */
};

enum repro_verdict {
	REPRO_REPRODUCED,
	REPRO_SAME_DIRECTION,
	REPRO_NOT_HERE,
};

struct repro_take {
	const char *series; /* follows the step's label, or is all of the name */
	const char *rows;   /* where in the document: "rows"; NULL: all of it */
	const char *where;  /* "by=mpi,mif=32": only rows of which this is true */
	const char *key;    /* the name goes on with what this member says */
	const char *x;      /* members, with dots: "usec.median"; NULL: the step's own x */
	const char *y;
};

struct repro_step {
	const char *label; /* of its series; may be empty */
	/* For sh, in an environment in which Weft's programs are in PATH and ROUND is the number of
	 * the round, from 1. {a|b}: a in a quick run, b in a full one. */
	const char *command;
	const struct repro_take *takes; /* end with one without y */
	double x;
	bool table; /* it prints columns, which members "1", "2"... stand for, and no JSON */
};

enum repro_need {
	REPRO_OPENMPI = 1,   /* weft-mpi-perf.openmpi, and a launcher */
	REPRO_COLL = 2,      /* libweft-coll.openmpi.so */
	REPRO_LAB = 4,       /* network namespaces */
	REPRO_FFT = 8,       /* the transform of examples/, which is built with the tests */
	REPRO_PROVIDER = 16, /* libweft-fi.so */
};

enum repro_mode { REPRO_QUICK, REPRO_FULL, REPRO_MODES };

struct repro_experiment {
	const char *name;
	const char *setup;              /* shell, before the first round: labs; NULL: nothing */
	const struct repro_step *steps; /* end with one without command */
	unsigned int needs;
	unsigned int rounds[REPRO_MODES];
	unsigned int seconds[REPRO_MODES]; /* what all rounds take, about */
	const char *x, *y;                 /* of the axes */
	bool log_x, log_y;
	bool bars; /* x is no quantity */
};

struct repro_figure {
	const char *name;
	const char *shows;                         /* one sentence */
	const struct repro_experiment *experiment; /* NULL: not here, */
	const char *why;                           /* and why */
	const char
		*differs; /* what is different here from the paper's way to measure; may be NULL */
	const struct repro_claim *claims; /* end with one that says nothing */
};

struct repro_paper {
	const char *name;
	const char *author, *title;
	const struct repro_figure *figures; /* end with one without name */
};

extern const struct repro_paper repro_papers[]; /* end with one without name */
extern const struct repro_figure repro_hsal[], repro_fattree[], repro_arrival[], repro_onetomany[],
	repro_thesis[];

/* ---- names (repro_find.c) ---- */

/* A paper, or a figure of it, that the word means: "hsal", "hsal/fig10". Calls fn for each figure;
 * returns how many there are. */
size_t repro_each(const char *word, void (*fn)(const struct repro_figure *f, void *arg), void *arg);
const struct repro_paper *repro_paper_of(const struct repro_figure *f);
/* The name that the user most likely meant, or NULL. */
const char *repro_nearest(const char *word);
/* A command as it is run in this mode; allocated, NULL without memory. */
char *repro_command(const char *text, enum repro_mode mode);
/* All commands of an experiment: changed ones must not be mixed with older results. */
unsigned long long repro_recipe(const struct repro_experiment *x, enum repro_mode mode);

/* ---- points (repro_series.c) ---- */

#define REPRO_SERIES_MAX 64
#define REPRO_POINTS_MAX 512
#define REPRO_NAME_MAX   96

struct repro_point {
	double x, y;
};

struct repro_series {
	char name[REPRO_NAME_MAX];
	size_t n;
	struct repro_point *points; /* ascending x */
};

/* One round, or several together. */
struct repro_data {
	size_t n;
	struct repro_series series[REPRO_SERIES_MAX];
};

/* Adds a point, after others of the same x nothing. 0, -ENOMEM or -E2BIG. */
int repro_add(struct repro_data *d, const char *name, double x, double y);
void repro_clear(struct repro_data *d);
const struct repro_series *repro_find(const struct repro_data *d, const char *name);
/* NAN if there is none. */
double repro_at(const struct repro_series *s, double x);
/* The value of a claim in a round; NAN if something of it is missing. */
double repro_value(const struct repro_claim *c, const struct repro_data *d);
/* What a step has printed. Returns how many points, or -errno; why is a sentence then. */
int repro_take(const struct repro_step *s, const char *text, size_t len, struct repro_data *d,
	       char why[160]);

/* ---- verdicts (repro_judge.c) ---- */

struct repro_outcome {
	enum repro_verdict verdict;
	size_t n;                /* rounds with a value */
	double value, low, high; /* the median, and its interval; NAN without */
	char why[320];
};

const char *repro_verdict_name(enum repro_verdict v);
/* values: one for each round; NANs are left out. They are sorted. */
void repro_judge(const struct repro_claim *c, double *values, size_t n, struct repro_outcome *o);
/* Of all claims of a figure: the least of their verdicts. */
enum repro_verdict repro_worst(const struct repro_outcome *o, size_t n);

/* ---- running (repro_keep.c, repro_run.c) ---- */

struct repro_options {
	enum repro_mode mode;
	bool resume, quiet;
	double seconds;      /* for all experiments together; 0: as long as they take */
	bool alone;          /* no namespaces here: no labs, and a kill -9 may leave something */
	const char *out;     /* directory of results; exists, absolute */
	const char *bin;     /* directory of Weft's programs */
	const char *version; /* of Weft */
};

/* What is missing for an experiment, and how to get it: a sentence, or NULL. */
const char *repro_missing(const struct repro_options *o, const struct repro_experiment *x);

/* Runs fn as process 1 of namespaces of its own, in which it may start what it likes: when it ends,
 * or we do, whatever kills us, all of it is gone, with its shared memory and its network. SIGINT
 * and SIGTERM end it. Returns fn's value, -EINTR with *signal, or -errno if there was no such
 * place; then nothing was run. */
int repro_keep(const struct repro_options *o, int (*fn)(void *arg), void *arg, int *signal);
/* As process 1: ends all other processes there are, and waits for them. */
void repro_sweep(void);

/* Seconds that an experiment may take which should take so many: what is left is divided among
 * those to come by their weights, and none gets more than a slow machine could need. */
double repro_weight(double seconds);
double repro_budget(double left, double seconds, double weights);

/* Measures, round by round, and writes each down (repro_store.h). 0, or how many experiments lack
 * something. */
int repro_run(const struct repro_options *o, const struct repro_experiment *const *x, size_t n);

/* ---- what was measured (repro_store.c) ---- */

#define REPRO_ROUNDS_MAX 99

struct repro_result {
	size_t rounds; /* complete ones */
	struct repro_data data[REPRO_ROUNDS_MAX];
	bool complete;
	double seconds;
	char failure[512]; /* the first; empty: none */
	char time[32];
};

/* Reads what is there of an experiment, if it was measured with the same commands: 0, -ENOENT, or
 * -EPROTO. */
int repro_load(const struct repro_options *o, const struct repro_experiment *x,
	       struct repro_result *r);
/* 0 or -errno; the file is whole at any time. */
int repro_store(const struct repro_options *o, const struct repro_experiment *x,
		const struct repro_result *r);
void repro_drop(struct repro_result *r);

/* A figure and all that is known of it. */
#define REPRO_CLAIMS_MAX 12

struct repro_finding {
	const struct repro_figure *figure;
	enum repro_verdict verdict;
	char why[640];
	size_t n;
	struct repro_outcome claims[REPRO_CLAIMS_MAX];
	size_t rounds, wanted;
	double seconds;
	char note[512];         /* what went wrong on the way; empty: nothing */
	struct repro_data data; /* medians over the rounds */
	char *svg;              /* NULL: no plot */
};

/* Looks up and judges. missing: as of repro_missing, or NULL. */
void repro_conclude(const struct repro_options *o, const struct repro_figure *f,
		    struct repro_finding *r);
void repro_finding_free(struct repro_finding *r);
json_t *repro_finding_json(const struct repro_finding *r, enum repro_mode mode);

/* ---- pictures and the page (repro_plot.c, repro_page.c) ---- */

/* OUT/NAME.svg by gnuplot, also kept in r->svg. 0, -ENOENT without gnuplot, or -errno. */
int repro_plot(const struct repro_options *o, struct repro_finding *r);

/* The report: one HTML page. environment: an object of texts; missing: an array of texts. */
int repro_page(FILE *to, const struct repro_options *o, const struct repro_finding *r, size_t n,
	       const json_t *environment, const json_t *missing);

#endif
