/* Rows as a table for people, or as JSON. */
#include "mpi_perf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void library(char text[MPI_MAX_LIBRARY_VERSION_STRING])
{
	int n;

	MPI_Get_library_version(text, &n);
	/* "MPICH Version:\t4.0.2\n..."; "Open MPI v4.1.4, package: ..." */
	text[strcspn(text, ",\n\"\\")] = '\0';
	for (char *tab = strchr(text, '\t'); tab; tab = strchr(tab, '\t'))
		*tab = ' ';
}

void mp_begin(const struct mp *mp)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];

	if (mp->rank)
		return;
	library(text);
	if (mp->o.json)
		printf("{\"program\": \"weft-mpi-perf\", \"command\": \"%s\", \"mpi\": \"%s\", "
		       "\"ranks\": %d, \"test\": %s, \"rows\": [",
		       mp->kind->name, text, mp->ranks, mp->o.test > 0 ? "true" : "false");
	else
		printf("# weft-mpi-perf %s, %d ranks, %s%s\n", mp->kind->name, mp->ranks, text,
		       mp->o.test > 0 ? ", MPI_Test during computation" : "");
	fflush(stdout);
}

static int width(const struct mp_cell *c)
{
	int len = (int)strlen(c->name) + 2, least = c->text ? 16 : 11;

	return len > least ? len : least;
}

static void table_row(const struct mp_cell *cells, int n, bool head)
{
	if (head) {
		for (int i = 0; i < n; i++)
			printf(i ? "%*s" : "# %-*s", i ? width(&cells[i]) : width(&cells[i]) - 2,
			       cells[i].name);
		putchar('\n');
	}
	for (int i = 0; i < n; i++) {
		const struct mp_cell *c = &cells[i];
		int w = i ? width(c) : -width(c);

		if (c->text || isnan(c->number))
			printf("%*s", w, c->text ? c->text : "-");
		else
			printf("%*.*f", w, c->digits, c->number);
	}
	putchar('\n');
}

static void json_row(const struct mp_cell *cells, int n, bool first)
{
	fputs(first ? "\n {" : ",\n {", stdout);
	for (int i = 0; i < n; i++) {
		const struct mp_cell *c = &cells[i];

		printf("%s\"%s\": ", i ? ", " : "", c->name);
		if (c->text)
			printf("\"%s\"", c->text);
		else if (isnan(c->number))
			fputs("null", stdout);
		else
			printf("%.*f", c->digits, c->number);
	}
	putchar('}');
}

void mp_row(struct mp *mp, const struct mp_cell *cells, int n)
{
	if (mp->rank == 0 && mp->o.json)
		json_row(cells, n, !mp->rows);
	else if (mp->rank == 0)
		table_row(cells, n, !mp->rows);
	if (mp->rank == 0)
		fflush(stdout);
	mp->rows++;
}

void mp_end(const struct mp *mp)
{
	bool late = mp_now() - mp->start > mp->o.bound;

	if (mp->rank)
		return;
	if (mp->o.json)
		printf("\n], \"seconds\": %.1f, \"cut_short\": %s, \"wrong\": %ld}\n",
		       mp_now() - mp->start, late ? "true" : "false", mp->wrong);
	else if (late)
		printf("# the time of -T %.0f was over after %.1f s\n", mp->o.bound,
		       mp_now() - mp->start);
	fflush(stdout);
}

/* ---- statistics ---- */

double mp_median(double *v, int n)
{
	struct bench_summary s;

	bench_summarize(v, (size_t)n, &s);
	return s.median;
}

static void summary(struct mp_cell *cells, const char *const *names, double *v, int n, double scale,
		    int digits)
{
	struct bench_summary s;

	bench_summarize(v, (size_t)n, &s);
	cells[0] = MP_INT("n", n);
	cells[1] = MP_REAL(names[0], s.median * scale, digits);
	cells[2] = MP_REAL(names[1], s.mean * scale, digits);
	cells[3] = MP_REAL(names[2], bench_percentile(v, s.n, 0.1) * scale, digits);
	cells[4] = MP_REAL(names[3], bench_percentile(v, s.n, 0.9) * scale, digits);
	cells[5] = MP_REAL(names[4], s.p99 * scale, digits);
}

void mp_summary_us(struct mp_cell cells[MP_SUMMARY], double *seconds, int n)
{
	static const char *const names[] = {"p50_us", "mean_us", "p10_us", "p90_us", "p99_us"};

	summary(cells, names, seconds, n, 1e6, 2);
}

void mp_summary_mbps(struct mp_cell cells[MP_SUMMARY], double *mbps, int n)
{
	static const char *const names[] = {"p50_MBps", "mean_MBps", "p10_MBps", "p90_MBps",
					    "p99_MBps"};

	summary(cells, names, mbps, n, 1, 2);
}
