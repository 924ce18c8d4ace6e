/* What tables of OpenSM mean: which LIDs are a host's, and where its packets leave a switch. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fabric_lft_in.h"

const char *lft_name(const struct lft_reader *x, uint32_t node)
{
	static _Thread_local char name[FABRIC_TREE_NAME_MAX];

	fabric_tree_name(x->tree, node, name);
	return fabric_mask(name);
}

/* What has no cable left does not appear in tables. */
static bool is_cut_off(const struct lft_reader *x, uint32_t node)
{
	struct fabric_node n = fabric_node(x->t, node);
	uint32_t down = fabric_down_ports(x->t, n.level);

	for (uint32_t i = 0; i < down + fabric_up_ports(x->t, n.level); i++) {
		struct fabric_cable c = i < down ? fabric_cable_down(x->t, n, i)
						 : fabric_cable_up(x->t, n, i - down);

		if (fabric_tree_has_cable(x->tree, fabric_cable_number(x->t, &c)))
			return false;
	}
	return true;
}

/* The LIDs of all hosts are as many, a power of two, side by side. */
static int check_run(const struct lft_reader *x, uint32_t host, uint32_t first, uint32_t last,
		     uint32_t count)
{
	if (count == 0)
		return fabric_refuse(x->why, x->why_size,
				     "%s: no LID of host %s; expected lines with its port GUID "
				     "0x%016" PRIx64 ", or a guid2lid that has it",
				     x->file, lft_name(x, host),
				     fabric_tree_port_guid(x->tree, host));
	if (last - first + 1 != count || (count & (count - 1)) || count > 1u << FABRIC_LMC_MAX)
		return fabric_refuse(
			x->why, x->why_size,
			"%s: host %s has %u LIDs from 0x%04x to 0x%04x; expected 1, 2, "
			"4 ... 128 in one row",
			x->file, lft_name(x, host), count, first, last);
	return 0;
}

int lft_find_runs(const struct lft_reader *x, uint32_t *first, uint32_t *lmc)
{
	uint32_t hosts = fabric_hosts(x->t), example = FABRIC_NONE;
	uint32_t *last = calloc(hosts, sizeof(*last)), *count = calloc(hosts, sizeof(*count));
	int ret = last && count ? 0 : -ENOMEM;

	for (uint32_t lid = 1; !ret && lid < x->n_owners; lid++) {
		uint32_t host = x->owners[lid].node;

		if (!x->owners[lid].guid || host >= hosts)
			continue;
		if (!count[host]++)
			first[host] = lid;
		last[host] = lid;
	}
	for (uint32_t host = 0; !ret && host < hosts; host++) {
		if (count[host] == 0 && is_cut_off(x, host))
			continue;
		ret = check_run(x, host, first[host], last[host], count[host]);
		if (example == FABRIC_NONE)
			example = host;
		if (!ret && count[host] != count[example])
			ret = fabric_refuse(
				x->why, x->why_size,
				"%s: host %s has %u LIDs, but host %u of the fabric has "
				"%u; expected the same LMC for all",
				x->file, lft_name(x, host), count[host], example, count[example]);
	}
	if (!ret)
		*lmc = example == FABRIC_NONE ? 0 : (uint32_t)__builtin_ctz(count[example]);
	free(last);
	free(count);
	return ret;
}

static int convert_row(struct lft_reader *x, struct fabric_routes *r, uint32_t i,
		       const uint32_t *first)
{
	uint16_t *row = r->table + i * fabric_routes_entries(r);
	const uint32_t *links = r->links + (size_t)i * (r->max_port + 1);

	for (size_t e = 0; e < fabric_routes_entries(r); e++) {
		uint32_t host = (uint32_t)(e >> r->rule.lmc), lid, port;

		if (!first[host] || !fabric_tree_has_node(x->tree, host))
			continue;
		lid = first[host] + (uint32_t)(e & ((1u << r->rule.lmc) - 1));
		port = lft_port_at(&x->tables[i], lid);
		if (port == LFT_NO_PORT || port == 0)
			continue;
		if (port <= r->max_port && links[port] != FABRIC_NONE) {
			row[e] = (uint16_t)port;
		} else if (fabric_tree_whole(x->tree)) {
			x->line = x->tables[i].line;
			return lft_refuse(
				x,
				"in the table that begins here, LID 0x%04x leaves switch %s by "
				"port %u, where no cable is",
				lid, lft_name(x, x->t->first[1] + i), port);
		}
	}
	return 0;
}

int lft_convert(struct lft_reader *x, struct fabric_routes *r, const uint32_t *first, uint32_t lmc)
{
	uint32_t switches = fabric_nodes(x->t) - fabric_hosts(x->t);
	int ret = fabric_routes_empty(r, x->tree, lmc);

	if (ret == -ERANGE)
		return fabric_refuse(x->why, x->why_size,
				     "the switches of this fabric have too many ports for tables");
	for (uint32_t i = 0; !ret && i < switches; i++) {
		uint32_t node = x->t->first[1] + i;

		if (!fabric_tree_has_node(x->tree, node) ||
		    (!x->tables[i].line && is_cut_off(x, node)))
			continue;
		if (!x->tables[i].line)
			ret = fabric_refuse(x->why, x->why_size,
					    "%s: no table of switch %s, GUID 0x%016" PRIx64,
					    x->file, lft_name(x, node),
					    fabric_tree_guid(x->tree, node));
		else
			ret = convert_row(x, r, i, first);
	}
	if (ret)
		fabric_routes_free(r);
	return ret;
}
