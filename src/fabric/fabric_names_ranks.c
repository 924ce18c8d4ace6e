/* Whom hostfiles name, and which rank is where. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_names_in.h"

#define REFUSE FABRIC_NAMES_REFUSE

int fabric_names_no_memory(const struct fabric_names *r)
{
	fabric_refuse(r->why, r->why_size, "no memory to read the hosts of %s", r->name.text);
	return -ENOMEM;
}

static int note(struct fabric_names *r, uint32_t host, bool machine)
{
	if (r->n_named == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct fabric_named *named = realloc(r->named, room * sizeof(*named));

		if (!named)
			return fabric_names_no_memory(r);
		r->named = named;
		r->room = room;
	}
	r->named[r->n_named] = (struct fabric_named){
		.line = r->number,
		.host = host,
		.rank = r->ranked ? r->rank : (uint32_t)r->n_named,
		.ranks = r->ranks,
		.machine = machine,
	};
	r->n_named++;
	return 0;
}

/* ---- hosts ---- */

static bool takes_part(const struct fabric_set *set, uint32_t host)
{
	uint32_t low = 0, high = set->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (set->hosts[mid] == host)
			return true;
		if (set->hosts[mid] < host)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

static int check_host(struct fabric_names *r, uint32_t node, struct fabric_quote word)
{
	uint32_t n = fabric_hosts(&r->tree->pgft);

	if (node >= n && !r->tree->net)
		return REFUSE(r, ": %s is a switch; ranks run on hosts, h0 to h%u", word.text,
			      n - 1);
	if (node >= n)
		return REFUSE(r, ": %s is a switch; ranks run on hosts", word.text);
	if (!fabric_tree_has_node(r->tree, node))
		return REFUSE(r, ": %s is missing in this fabric; expected a host that is there",
			      word.text);
	if (r->set && !takes_part(r->set, node))
		return REFUSE(r, ": %s does not take part; expected one of the %u hosts that do",
			      word.text, r->set->count);
	if (r->seen[node])
		return REFUSE(r, ": %s is in line %" PRIu64 " already; a host may be named once",
			      word.text, r->seen[node]);
	r->seen[node] = r->number;
	return 0;
}

int fabric_names_add_host(struct fabric_names *r, uint32_t node, const char *text, size_t len)
{
	int ret;

	/* An order says which rank is where; in an allocation it is of no interest how many there
	 * are. */
	if (r->set && r->ranks > 1)
		return REFUSE(r, ": a host runs one rank here; expected %s1, or no number of ranks",
			      r->style);
	ret = check_host(r, node, fabric_quote_n(text, len));
	return ret ? ret : note(r, node, false);
}

/* ---- machines ---- */

int fabric_names_add_machine(struct fabric_names *r, const uint32_t *hosts, uint32_t count,
			     const char *text, size_t len)
{
	if (r->times[hosts[0]]++ == count || (r->set && r->ranks > count))
		return REFUSE(r,
			      ": more ranks on %s than it has hosts in this fabric, which are %u; "
			      "expected one for each",
			      fabric_quote_n(text, len).text, count);
	return note(r, hosts[0], true);
}

/* Of a machine, the next n that are there and take part and had no rank; all, if it is named once
 * and does not say how many. If there are none, the first says why. */
static int place_machine(struct fabric_names *r, const struct fabric_named *m)
{
	uint32_t n = r->set && m->ranks ? m->ranks : r->times[m->host] > 1, added = 0, count;
	char name[FABRIC_TREE_NAME_MAX];
	const uint32_t *hosts;
	int ret = 0;

	r->number = m->line;
	fabric_tree_machine_name(r->tree, m->host, name);
	count = fabric_tree_machine(r->tree, name, &hosts);
	for (uint32_t i = 0; !ret && i < count && (!n || added < n); i++) {
		if (!fabric_tree_has_node(r->tree, hosts[i]) || (n && r->seen[hosts[i]]) ||
		    (r->set && !takes_part(r->set, hosts[i])))
			continue;
		ret = check_host(r, hosts[i], fabric_quote(name));
		if (!ret)
			r->hosts[r->count++] = hosts[i];
		added++;
	}
	if (!ret && !added)
		return check_host(r, m->host, fabric_quote(name));
	if (!ret && added < n)
		return REFUSE(r, ": %u ranks on %s, of whose hosts %u are left; expected no more",
			      n, fabric_quote(name).text, added);
	return ret;
}

/* ---- ranks ---- */

static int by_rank(const void *a, const void *b)
{
	const struct fabric_named *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? 1 : -1;
	return (x->line > y->line) - (x->line < y->line);
}

static int sort_ranks(struct fabric_names *r)
{
	qsort(r->named, r->n_named, sizeof(*r->named), by_rank);
	for (uint32_t i = 0; i < r->n_named; i++) {
		const struct fabric_named *m = &r->named[i];

		r->number = m->line;
		if (i && m->rank == m[-1].rank)
			return REFUSE(r, ": rank %u is in line %" PRIu64 " already", m->rank,
				      m[-1].line);
		if (m->rank != i)
			return REFUSE(r, ": rank %u, but there is no rank %u; expected 0 to %zu",
				      m->rank, i, r->n_named - 1);
	}
	return 0;
}

int fabric_names_end(struct fabric_names *r)
{
	int ret = r->ranked ? sort_ranks(r) : 0;

	for (size_t i = 0; !ret && i < r->n_named; i++) {
		const struct fabric_named *m = &r->named[i];

		if (m->machine)
			ret = place_machine(r, m);
		else
			r->hosts[r->count++] = m->host;
	}
	return ret;
}
