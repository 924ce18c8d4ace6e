/* Documents of weft-mpi-perf into one table; and what can be said of its rows. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_mpi.h"

static const struct bench_mpi_spec specs[] = {
	{.series = "wire-latency",
	 .title = "MPI between two hosts, unshaped: latency, half a round trip; raw: sockets "
		  "without MPI,\n# the physical limit",
	 .unit = "usec",
	 .keys = {"size"},
	 .value = "p50_us",
	 .bases = {"best"}},
	{.series = "wire-bandwidth",
	 .title = "MPI between two hosts, unshaped: bandwidth, windows of 64 messages; raw: "
		  "sockets\n# without MPI, the physical limit",
	 .unit = "MBps",
	 .keys = {"size"},
	 .value = "p50_MBps",
	 .more = true,
	 .bases = {"tcp", "best"}},
	{.series = "speculation",
	 .title = "the overhead of speculation on a ping-pong that never profits (thesis, fig. "
		  "4.19);\n# crossing: send and receive begin at once; send-first: receives 1 ms "
		  "after the send;\n# weft-always: without adaptation",
	 .unit = "usec",
	 .keys = {"size", "timing"},
	 .value = "p50_us",
	 .judged = "timing",
	 .bases = {"weft-nospec"}},
	{.series = "overlap",
	 .title = "overlap of communication and computation (thesis, 3.6.1, 4.4.1), two hosts, 1 "
		  "Gbit/s:\n# how much of a transfer is hidden; weft-off: without speculation and "
		  "progress thread",
	 .unit = "percent",
	 .keys = {"size", "scenario", "side"},
	 .value = "overlap_pct",
	 .judged = "side"},
	{.series = "progress",
	 .title = "independent progress (thesis, 3.6.2, 4.4.1), two hosts, 1 Gbit/s: one side is "
		  "away for\n# delay_x times the latency; how much of the latency is left when it "
		  "is back",
	 .unit = "percent",
	 .keys = {"size", "scenario", "side", "delay_x"},
	 .value = "left_pct"},
	{.series = "exchange",
	 .title = "programs that compute and exchange (thesis, fig. 4.15 and 4.16), two hosts, "
		  "100\n# Mbit/s: time of an iteration; ratio: 11 ms to computation",
	 .unit = "usec",
	 .keys = {"size", "model", "ratio"},
	 .value = "T_iter_us",
	 .bases = {"tcp", "weft-off"}},
	{.series = "rtr",
	 .title = "RTRs, what receives said in advance, of both ranks and all of a run: sent, and "
		  "used\n# by the message that they were for",
	 .unit = "",
	 .keys = {"of", "rtrs"},
	 .value = "n"},
	{.series = "host-latency",
	 .title = "MPI on one host: latency, half a round trip; sm: Open MPI's shared memory",
	 .unit = "usec",
	 .keys = {"size"},
	 .value = "p50_us",
	 .bases = {"sm"}},
	{.series = "alltoall",
	 .title = "16 ranks on one host, MPI_Alltoall in a loop; sm: Open MPI's shared memory, "
		  "yielding",
	 .unit = "usec",
	 .keys = {"size"},
	 .value = "mean_us",
	 .bases = {"sm"}},
	{.series = "memory",
	 .title = "memory of a process after a message to everyone; all through the network of "
		  "four hosts",
	 .unit = "MiB",
	 .keys = {"ranks", "what"},
	 .value = "mean_MiB",
	 .only = {"when", "all"},
	 .bases = {"tcp"}},
};

const struct bench_mpi_spec *bench_mpi_spec_find(const char *series)
{
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (!strcmp(specs[i].series, series))
			return &specs[i];
	return NULL;
}

/* ---- rows ---- */

static void key_text(const json_t *v, char text[BENCH_MPI_NAME])
{
	if (json_is_string(v))
		snprintf(text, BENCH_MPI_NAME, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(text, BENCH_MPI_NAME, "%lld", (long long)json_integer_value(v));
	else
		snprintf(text, BENCH_MPI_NAME, "%g", json_number_value(v));
}

/* The row with these keys, a new one if need be; NULL: no room. */
static struct bench_mpi_row *row_of(struct bench_mpi *m, const json_t *from)
{
	char key[BENCH_MPI_KEYS][BENCH_MPI_NAME] = {{0}};
	struct bench_mpi_row *r;

	for (int i = 0; i < BENCH_MPI_KEYS && m->spec->keys[i]; i++)
		key_text(json_object_get(from, m->spec->keys[i]), key[i]);
	for (size_t i = 0; i < m->n_rows; i++)
		if (!memcmp(m->rows[i]->key, key, sizeof(key)))
			return m->rows[i];
	r = m->n_rows < BENCH_MPI_ROWS ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL;
	memcpy(r->key, key, sizeof(key));
	r->size = (size_t)json_integer_value(json_object_get(from, m->spec->keys[0]));
	for (int s = 0; s < BENCH_MPI_STACKS; s++)
		for (int i = 0; i < BENCH_MPI_ROUNDS; i++)
			r->v[s][i] = NAN;
	m->rows[m->n_rows++] = r;
	return r;
}

int bench_mpi_stack(const struct bench_mpi *m, const char *name)
{
	for (size_t i = 0; i < m->n_stacks; i++)
		if (!strcmp(m->stacks[i], name))
			return (int)i;
	return -1;
}

/* The same, a new one if need be; -1: no room. */
static int stack_of(struct bench_mpi *m, const char *name)
{
	int i = bench_mpi_stack(m, name);

	if (i >= 0 || m->n_stacks == BENCH_MPI_STACKS)
		return i;
	snprintf(m->stacks[m->n_stacks], BENCH_MPI_NAME, "%s", name);
	return (int)m->n_stacks++;
}

static int put(struct bench_mpi *m, const json_t *keys, const char *stack, size_t round,
	       const json_t *value)
{
	int s = stack_of(m, stack);
	struct bench_mpi_row *r = s < 0 ? NULL : row_of(m, keys);

	if (!r)
		return -E2BIG;
	if (json_is_number(value)) /* null: the machine was too busy for a result */
		r->v[s][round - 1] = json_number_value(value);
	if (m->rounds < round)
		m->rounds = round;
	return 0;
}

/* ---- documents ---- */

static bool is_wanted(const struct bench_mpi_spec *spec, const json_t *row)
{
	const char *text =
		spec->only[0] ? json_string_value(json_object_get(row, spec->only[0])) : NULL;

	return !spec->only[0] || (text && !strcmp(text, spec->only[1]));
}

static int add_rows(struct bench_mpi *m, const json_t *doc, const char *stack, size_t round)
{
	const json_t *row;
	size_t i;
	int ret = 0;

	json_array_foreach (json_object_get(doc, "rows"), i, row)
		if (!ret && is_wanted(m->spec, row))
			ret = put(m, row, stack, round, json_object_get(row, m->spec->value));
	return ret;
}

/* Raw sockets, by weft-perf: each kind counts as a stack. */
static int add_raw(struct bench_mpi *m, const json_t *doc, size_t round)
{
	const json_t *result;
	size_t i;
	int ret = 0;

	json_array_foreach (json_object_get(doc, "results"), i, result) {
		const json_t *v = json_object_get(result, m->spec->unit);
		const char *kind = json_string_value(json_object_get(result, "kind"));
		char stack[BENCH_MPI_NAME];

		snprintf(stack, sizeof(stack), "raw-%s", kind ? kind : "");
		if (!ret)
			ret = put(m, result, stack, round, json_object_get(v, "median"));
	}
	return ret;
}

/* Series, stack and round of a file's name. */
static int take_name(struct bench_mpi *m, const char *path, char stack[BENCH_MPI_NAME],
		     size_t *round)
{
	const char *slash = strrchr(path, '/');
	char series[BENCH_MPI_NAME];
	const struct bench_mpi_spec *spec;
	unsigned int n;

	_Static_assert(BENCH_MPI_NAME == 32, "the format below has 31 characters");
	if (sscanf(slash ? slash + 1 : path, "%31[^.].%31[^.].%u.", series, stack, &n) != 3 ||
	    n < 1 || n > BENCH_MPI_ROUNDS)
		return -EINVAL;
	spec = bench_mpi_spec_find(series);
	if (!spec || (m->spec && m->spec != spec))
		return -EINVAL;
	m->spec = spec;
	*round = n;
	return 0;
}

int bench_mpi_load(struct bench_mpi *m, const char *path)
{
	char stack[BENCH_MPI_NAME];
	json_error_t err;
	size_t round = 0;
	json_t *doc;
	int ret;

	if (take_name(m, path, stack, &round)) {
		fprintf(stderr,
			"weft-perf: mpi: %s: not named SERIES.STACK.ROUND.json, or of "
			"another series than those before it\n",
			path);
		return -EINVAL;
	}
	doc = json_load_file(path, 0, &err);
	if (!doc) {
		fprintf(stderr, "weft-perf: %s: line %d: %s\n", path, err.line, err.text);
		return -EINVAL;
	}
	if (json_object_get(doc, "results"))
		ret = add_raw(m, doc, round);
	else
		ret = add_rows(m, doc, stack, round);
	m->cut += json_is_true(json_object_get(doc, "cut_short"));
	if (ret)
		fprintf(stderr, "weft-perf: mpi: %s: too many stacks or rows\n", path);
	json_decref(doc);
	return ret;
}

void bench_mpi_free(struct bench_mpi *m)
{
	for (size_t i = 0; i < m->n_rows; i++)
		free(m->rows[i]);
	m->n_rows = 0;
}

/* ---- what can be said of a row ---- */

void bench_mpi_summary(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack,
		       struct bench_summary *s)
{
	double v[BENCH_MPI_ROUNDS];

	if (stack >= 0)
		memcpy(v, r->v[stack], sizeof(v));
	bench_summarize(v, stack < 0 ? 0 : m->rounds, s);
}

void bench_mpi_ratio(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack, int base,
		     struct bench_summary *s)
{
	double v[BENCH_MPI_ROUNDS];
	size_t n = 0;

	if (stack >= 0 && base >= 0)
		n = bench_ratios(r->v[stack], r->v[base], m->rounds, 1, v);
	bench_summarize(v, n, s);
}

static bool is_rival(const char *stack)
{
	return strncmp(stack, "weft", 4) != 0 && strncmp(stack, "raw-", 4) != 0;
}

int bench_mpi_base(const struct bench_mpi *m, const struct bench_mpi_row *r, const char *base)
{
	struct bench_summary s;
	double best = 0;
	int found = -1;

	if (strcmp(base, "best") != 0)
		return bench_mpi_stack(m, base);
	for (int i = 0; i < (int)m->n_stacks; i++) {
		bench_mpi_summary(m, r, i, &s);
		if (!is_rival(m->stacks[i]) || !s.n ||
		    (found >= 0 && (m->spec->more ? s.median <= best : s.median >= best)))
			continue;
		best = s.median;
		found = i;
	}
	return found;
}
