/* weft fabric route: what its tables are like. */
#include "cli_fabric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util_clock.h"

struct summary {
	uint64_t tables, computed; /* alike switches have the same */
	uint64_t entries, without, used, most, least;
	double ms;
};

#define KNOWN 64 /* tables that others may have, too */

struct survey {
	const struct cli_fabric *f;
	struct summary *s;
	uint16_t *row;
	uint32_t *use; /* by port: entries */
	struct known { /* the last that were counted */
		uint32_t node;
		uint64_t without;
	} known[KNOWN];
	uint64_t n_known;
};

/* Alike switches have the same tables, but for what is missing near some of them. */
static bool is_known(const struct survey *v, uint32_t node)
{
	uint64_t n = v->n_known < KNOWN ? v->n_known : KNOWN;

	for (uint64_t i = 1; i <= n; i++) {
		const struct known *k = &v->known[(v->n_known - i) % KNOWN];

		if (fabric_routes_same(&v->f->routes, k->node, node)) {
			v->s->without += k->without;
			return true;
		}
	}
	return false;
}

/* Tables repeat themselves after all up-going ports had their turn. To see that a block is the one
 * before once more is faster than to count it. */
static void count(const struct survey *v, uint32_t level)
{
	const struct fabric_pgft *t = &v->f->tree.pgft;
	size_t n = fabric_routes_entries(&v->f->routes), i = 0;
	size_t period = ((size_t)t->W[level] * fabric_up_ports(t, level)) << v->f->routes.rule.lmc;
	size_t step = period ? (2047 / period + 1) * period : n;

	while (i < n) {
		size_t block = step < n - i ? step : n - i;
		const uint16_t *row = v->row + i;
		uint32_t times = 1;

		while (i + (times + 1) * block <= n &&
		       !memcmp(row, row + times * block, block * sizeof(*row)))
			times++;
		for (size_t k = 0; k < block; k++)
			v->use[row[k]] += times;
		i += times * block;
	}
}

static void sum_up(struct survey *v, uint32_t node)
{
	const struct fabric_tree *t = &v->f->tree;
	uint32_t ports = fabric_tree_ports(t, node);
	struct summary *s = v->s;

	v->known[v->n_known++ % KNOWN] = (struct known){node, v->use[0]};
	s->computed++;
	s->without += v->use[0];
	for (uint32_t port = 1; port <= ports && port <= UINT16_MAX; port++) {
		uint32_t c = fabric_tree_cable_at(t, node, port);

		if (c == FABRIC_NONE || fabric_tree_upper_port(t, c) == port)
			continue;
		s->most = v->use[port] > s->most ? v->use[port] : s->most;
		s->least = v->use[port] < s->least ? v->use[port] : s->least;
	}
	memset(v->use, 0, (ports + 1) * sizeof(*v->use));
}

static int survey_switches(struct survey *v)
{
	const struct fabric_pgft *t = &v->f->tree.pgft;
	uint32_t hosts = fabric_hosts(t), nodes = fabric_nodes(t);
	struct cli_fabric_progress shown;
	int err = 0;

	cli_fabric_progress_begin(&shown);
	for (uint32_t i = hosts; !err && i < nodes; i++) {
		if (!fabric_tree_has_node(&v->f->tree, i))
			continue;
		v->s->tables++;
		v->s->entries += fabric_routes_entries(&v->f->routes);
		if (is_known(v, i))
			continue;
		cli_fabric_progress(&shown, (double)(i - hosts) / (nodes - hosts));
		err = fabric_routes_row(&v->f->routes, i, v->row);
		if (err)
			break;
		count(v, fabric_node(t, i).level);
		sum_up(v, i);
	}
	cli_fabric_progress_end(&shown);
	return err;
}

/* Every table once, none kept: how many entries, and how evenly they use the cables that go up. */
static int survey(const struct cli_fabric *f, struct summary *s)
{
	struct survey v = {.f = f, .s = s};
	uint64_t start = util_now_ns();
	int err = -ENOMEM;

	s->least = UINT64_MAX;
	v.row = malloc(fabric_routes_entries(&f->routes) * sizeof(*v.row));
	v.use = calloc(UINT16_MAX + 1, sizeof(*v.use));
	if (v.row && v.use)
		err = survey_switches(&v);
	free(v.row);
	free(v.use);
	s->ms = (double)(util_now_ns() - start) / 1e6;
	return err;
}

static void print_summary(const struct cli_fabric *f, const struct summary *s, bool json)
{
	char tuple[FABRIC_TUPLE_MAX];
	json_t *j;

	fabric_pgft_print(&f->tree.pgft, tuple);
	if (json) {
		j = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I}", "pgft", tuple,
			      "tables", (json_int_t)s->tables, "tables_computed",
			      (json_int_t)s->computed, "entries", (json_int_t)s->entries,
			      "without_a_way", (json_int_t)s->without, "most_per_up_link",
			      (json_int_t)s->most, "least_per_up_link",
			      (json_int_t)(s->least == UINT64_MAX ? 0 : s->least), "ms", s->ms,
			      "max_rss_kb", (json_int_t)cli_fabric_rss_kb());
		cli_print_json(j, 0);
		return;
	}
	printf("%s: %" PRIu64 " tables, %" PRIu64 " entries", tuple, s->tables, s->entries);
	if (s->computed < s->tables)
		printf(" (%" PRIu64 " tables are different)", s->computed);
	printf(", computed in %.1f ms", s->ms);
	if (s->without)
		printf(", %" PRIu64 " without a way", s->without);
	putchar('\n');
	if (s->least != UINT64_MAX)
		printf("destinations per up-going link: %" PRIu64 " to %" PRIu64 "\n", s->least,
		       s->most);
}

int cli_fabric_survey(const struct cli_fabric *f, bool json)
{
	struct summary s = {0};
	int err = survey(f, &s);

	if (err)
		return cli_fabric_no_routes(err);
	print_summary(f, &s, json);
	return CLI_OK;
}
