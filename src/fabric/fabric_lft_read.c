/* Reading what OpenSM and the diagnostic programs print. */
#include "fabric_lft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_beside.h"
#include "fabric_text.h"

#define NO_PORT      255
#define LINE_MAX_LEN 1000 /* descriptions have 64 characters at most */

struct known {
	uint64_t guid;
	uint32_t node;
};

/* Whose a LID is; GUID 0: nobody said yet. */
struct owner {
	uint64_t guid;
	uint32_t node;
};

/* Of a switch: ports by LID, below room, and the line where it begins; 0: not seen yet. */
struct table {
	uint8_t *ports;
	uint32_t room, line, node;
};

struct reader {
	const struct fabric_tree *tree;
	const struct fabric_pgft *t;
	struct known *known; /* by port GUID, ascending */
	uint32_t n_known;
	struct owner *owners; /* by LID, below n_owners */
	uint32_t n_owners;
	struct table *tables; /* by switch */
	struct table *table;  /* that is being read */
	bool skip;            /* it is of a switch beside the tree: nobody asks for it */
	const char *file;
	uint32_t line;
	char text[LINE_MAX_LEN + 1];
	char *why;
	size_t why_size;
};

/* What is beside the tree, instead of a node's number. */
#define BESIDE(x) fabric_nodes((x)->t)

#define refuse(x, fmt, ...)                                                                        \
	fabric_refuse((x)->why, (x)->why_size, "%s:%u: " fmt, (x)->file, (x)->line, ##__VA_ARGS__)

/* ---- lines and words ---- */

/* 1: a line, 0: the end, or -errno. */
static int next_line(struct reader *x, FILE *from)
{
	size_t len = 0;
	int c = getc_unlocked(from);

	if (c == EOF && !ferror(from))
		return 0;
	x->line++;
	for (; c != EOF && c != '\n'; c = getc_unlocked(from)) {
		if (c == 0)
			return refuse(x, "a zero byte; expected a text file");
		if (len == LINE_MAX_LEN)
			return refuse(x,
				      "a line of more than %d characters; expected tables of "
				      "OpenSM",
				      LINE_MAX_LEN);
		x->text[len++] = (char)c;
	}
	if (ferror(from)) {
		fabric_refuse(x->why, x->why_size, "can not read %s: %s", x->file, strerror(EIO));
		return -EIO;
	}
	while (len && strchr(" \t\r", x->text[len - 1]))
		len--;
	x->text[len] = 0;
	return 1;
}

static const char *skip(const char *at)
{
	return at + strspn(at, " \t");
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return 99;
}

/* Digits, followed by a blank, a sign or the end. Returns what follows, or NULL. */
static const char *number(const char *at, int base, uint64_t most, uint64_t *value)
{
	uint64_t v = 0;

	if (base == 16) {
		if (at[0] != '0' || (at[1] | 32) != 'x')
			return NULL;
		at += 2;
	}
	if (digit(*at) >= base)
		return NULL;
	for (; digit(*at) < base; at++) {
		unsigned d = (unsigned)digit(*at);

		if (v > (most - d) / (unsigned)base)
			return NULL;
		v = v * (unsigned)base + d;
	}
	*value = v;
	return *at && !strchr(" \t:,#()", *at) ? NULL : at;
}

/* ---- GUIDs and LIDs ---- */

/* Room for a LID and some more: a power of two, so that growing costs little. */
static uint32_t enough(uint32_t lid)
{
	uint32_t n = 64;

	while (n <= lid)
		n *= 2;
	return n;
}

static int by_guid(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return (x->guid > y->guid) - (x->guid < y->guid);
}

static uint32_t find_guid(const struct reader *x, uint64_t guid)
{
	struct known key = {.guid = guid};
	const struct known *k = bsearch(&key, x->known, x->n_known, sizeof(key), by_guid);

	return k ? k->node : FABRIC_NONE;
}

static const char *name_of(const struct reader *x, uint32_t node)
{
	static _Thread_local char name[FABRIC_TREE_NAME_MAX];

	fabric_tree_name(x->tree, node, name);
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return name;
}

/* A LID has one owner for the whole of the file. */
static int own(struct reader *x, uint32_t lid, uint64_t guid)
{
	struct owner *o;

	if (lid >= x->n_owners) {
		uint32_t n = enough(lid);

		o = realloc(x->owners, n * sizeof(*o));
		if (!o)
			return -ENOMEM;
		memset(o + x->n_owners, 0, (n - x->n_owners) * sizeof(*o));
		x->owners = o;
		x->n_owners = n;
	}
	o = &x->owners[lid];
	if (o->guid == guid && guid)
		return 0;
	if (o->guid)
		return refuse(x,
			      "LID 0x%04x is of port GUID 0x%016" PRIx64
			      ", but it was of 0x%016" PRIx64 " before; a LID has one owner",
			      lid, guid, o->guid);
	o->node = find_guid(x, guid);
	if (o->node == FABRIC_NONE)
		return refuse(x, "no node of this fabric has the port GUID 0x%016" PRIx64, guid);
	o->guid = guid;
	return 0;
}

/* ---- guid2lid ---- */

static int lids_line(struct reader *x)
{
	const char *at = skip(x->text);
	uint64_t guid, first, last;
	int ret = 0;

	if (!*at || *at == '#')
		return 0;
	at = number(at, 16, UINT64_MAX, &guid);
	at = at ? number(skip(at), 16, FABRIC_LID_MAX, &first) : NULL;
	at = at ? number(skip(at), 16, FABRIC_LID_MAX, &last) : NULL;
	if (!at || *skip(at) || first < 1 || last < first)
		return refuse(x,
			      "%s is no line of a guid2lid; expected a GUID, the first LID and "
			      "the last, such as 0x0002c90000000011 0x0004 0x0007",
			      fabric_quote(x->text).text);
	/* It remembers nodes that are no longer there. */
	if (find_guid(x, guid) == FABRIC_NONE)
		return 0;
	for (uint64_t lid = first; !ret && lid <= last; lid++)
		ret = own(x, (uint32_t)lid, guid);
	return ret;
}

static int read_lids(struct reader *x, FILE *from, const char *name)
{
	int ret;

	x->file = name;
	x->line = 0;
	while ((ret = next_line(x, from)) > 0) {
		ret = lids_line(x);
		if (ret)
			return ret;
	}
	return ret;
}

/* ---- tables ---- */

static int begin_table(struct reader *x)
{
	const char *at = strstr(x->text, " guid 0x");
	uint64_t guid;
	uint32_t node;

	if (!at || !number(at + 6, 16, UINT64_MAX, &guid))
		return refuse(x, "the table of which switch? Expected 'Unicast lids ... guid 0x' "
				 "and its GUID");
	/* Of a switch, that of its port 0 is its own. */
	node = find_guid(x, guid);
	x->table = NULL;
	x->skip = node == BESIDE(x);
	if (x->skip)
		return 0;
	if (node == FABRIC_NONE || node < fabric_hosts(x->t))
		return refuse(x, "no switch of this fabric has the GUID 0x%016" PRIx64, guid);
	x->table = &x->tables[node - fabric_hosts(x->t)];
	if (x->table->line)
		return refuse(x, "the table of switch %s again; the first is in line %u",
			      name_of(x, node), x->table->line);
	x->table->line = x->line;
	x->table->node = node;
	return 0;
}

static uint32_t port_at(const struct table *t, uint32_t lid)
{
	return lid < t->room ? t->ports[lid] : NO_PORT;
}

static int set_port(struct reader *x, uint32_t lid, uint32_t port)
{
	struct table *t = x->table;

	if (port_at(t, lid) != NO_PORT)
		return refuse(x,
			      "LID 0x%04x again in the table of switch %s, which begins in line %u",
			      lid, name_of(x, t->node), t->line);
	if (lid >= t->room) {
		uint32_t n = enough(lid);
		uint8_t *ports = realloc(t->ports, n);

		if (!ports)
			return -ENOMEM;
		memset(ports + t->room, NO_PORT, n - t->room);
		t->ports = ports;
		t->room = n;
	}
	t->ports[lid] = (uint8_t)port;
	return 0;
}

static int table_entry(struct reader *x, const char *at)
{
	uint64_t lid, port, guid;
	int ret;

	at = number(at, 16, FABRIC_LID_MAX, &lid);
	at = at && lid ? number(skip(at), 10, NO_PORT, &port) : NULL;
	if (!at)
		return refuse(x,
			      "%s is no entry of a table; expected a LID of 0x0001 to 0x%04x and "
			      "a port of 000 to 254",
			      fabric_quote(x->text).text, FABRIC_LID_MAX);
	if (!x->table && !x->skip)
		return refuse(x, "an entry without a switch; expected a line 'Unicast lids ... "
				 "guid 0x...' before it");
	ret = x->skip ? 0 : set_port(x, (uint32_t)lid, (uint32_t)port);
	at = strstr(at, "portguid 0x");
	if (ret || !at)
		return ret;
	if (!number(at + 9, 16, UINT64_MAX, &guid))
		return refuse(x, "%s is no GUID; expected at most 16 hexadecimal digits",
			      fabric_quote(at + 9).text);
	return own(x, (uint32_t)lid, guid);
}

static int table_line(struct reader *x)
{
	const char *at = skip(x->text);

	if (!*at || *at == '#' || *at == '!')
		return 0;
	if (!strncmp(at, "Unicast lids", 12))
		return begin_table(x);
	if (at[0] == '0' && (at[1] | 32) == 'x')
		return table_entry(x, at);
	/* "22 lids dumped", "22 valid lids dumped", and what ibroute has above its columns */
	if (*at >= '0' && *at <= '9' && strstr(at, "lids dumped"))
		return 0;
	if (!strncmp(at, "Lid  Out", 8) || !strncmp(at, "Port     Info", 13))
		return 0;
	return refuse(x,
		      "%s is neither the beginning of a switch's table nor an entry of it, such "
		      "as 0x0004 001",
		      fabric_quote(x->text).text);
}

static int read_tables(struct reader *x, FILE *from, const char *name)
{
	int ret;

	x->file = name;
	x->line = 0;
	while ((ret = next_line(x, from)) > 0) {
		ret = table_line(x);
		if (ret)
			return ret;
	}
	return ret;
}

/* ---- what they mean ---- */

/* What has no cable left does not appear in tables. */
static bool is_cut_off(const struct reader *x, uint32_t node)
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
static int check_run(const struct reader *x, uint32_t host, uint32_t first, uint32_t last,
		     uint32_t count)
{
	if (count == 0)
		return fabric_refuse(x->why, x->why_size,
				     "%s: no LID of host %s; expected lines with its port GUID "
				     "0x%016" PRIx64 ", or a guid2lid that has it",
				     x->file, name_of(x, host),
				     fabric_tree_port_guid(x->tree, host));
	if (last - first + 1 != count || (count & (count - 1)) || count > 1u << FABRIC_LMC_MAX)
		return fabric_refuse(
			x->why, x->why_size,
			"%s: host %s has %u LIDs from 0x%04x to 0x%04x; expected 1, 2, "
			"4 ... 128 in one row",
			x->file, name_of(x, host), count, first, last);
	return 0;
}

static int find_runs(const struct reader *x, uint32_t *first, uint32_t *lmc)
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
				x->file, name_of(x, host), count[host], example, count[example]);
	}
	if (!ret)
		*lmc = example == FABRIC_NONE ? 0 : (uint32_t)__builtin_ctz(count[example]);
	free(last);
	free(count);
	return ret;
}

static int convert_row(struct reader *x, struct fabric_routes *r, uint32_t i, const uint32_t *first)
{
	uint16_t *row = r->table + i * fabric_routes_entries(r);
	const uint32_t *links = r->links + (size_t)i * (r->max_port + 1);

	for (size_t e = 0; e < fabric_routes_entries(r); e++) {
		uint32_t host = (uint32_t)(e >> r->rule.lmc), lid, port;

		if (!first[host] || !fabric_tree_has_node(x->tree, host))
			continue;
		lid = first[host] + (uint32_t)(e & ((1u << r->rule.lmc) - 1));
		port = port_at(&x->tables[i], lid);
		if (port == NO_PORT || port == 0)
			continue;
		if (port <= r->max_port && links[port] != FABRIC_NONE) {
			row[e] = (uint16_t)port;
		} else if (fabric_tree_whole(x->tree)) {
			x->line = x->tables[i].line;
			return refuse(
				x,
				"in the table that begins here, LID 0x%04x leaves switch %s by "
				"port %u, where no cable is",
				lid, name_of(x, x->t->first[1] + i), port);
		}
	}
	return 0;
}

static int convert(struct reader *x, struct fabric_routes *r, const uint32_t *first, uint32_t lmc)
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
					    x->file, name_of(x, node),
					    fabric_tree_guid(x->tree, node));
		else
			ret = convert_row(x, r, i, first);
	}
	if (ret)
		fabric_routes_free(r);
	return ret;
}

/* ---- all ---- */

static void know(struct reader *x, uint64_t guid, uint32_t node)
{
	if (guid)
		x->known[x->n_known++] = (struct known){guid, node};
}

static int reader_init(struct reader *x)
{
	uint32_t nodes = fabric_nodes(x->t), switches = nodes - fabric_hosts(x->t);
	const struct fabric_net *net = x->tree->net;
	struct fabric_beside b;

	if (fabric_beside_find(&b, x->tree))
		return -ENOMEM;
	x->known = malloc(((size_t)nodes + b.n_switches + b.n_ports) * sizeof(*x->known));
	x->tables = calloc(switches, sizeof(*x->tables));
	if (!x->known || !x->tables) {
		fabric_beside_free(&b);
		return -ENOMEM;
	}
	/* Also what is missing now: the tables may be older. */
	for (uint32_t node = 0; node < nodes; node++)
		know(x, fabric_tree_port_guid(x->tree, node), node);
	for (uint32_t i = 0; i < b.n_switches; i++)
		know(x, net->nodes[b.switches[i]].guid, BESIDE(x));
	for (uint32_t i = 0; i < b.n_ports; i++)
		know(x, net->ports[b.ports[i]].guid, BESIDE(x));
	fabric_beside_free(&b);
	qsort(x->known, x->n_known, sizeof(*x->known), by_guid);
	return 0;
}

static void reader_free(struct reader *x)
{
	uint32_t switches = fabric_nodes(x->t) - fabric_hosts(x->t);

	for (uint32_t i = 0; x->tables && i < switches; i++)
		free(x->tables[i].ports);
	free(x->tables);
	free(x->known);
	free(x->owners);
}

int fabric_lft_read(struct fabric_routes *r, const struct fabric_tree *tree, FILE *from,
		    const char *name, FILE *lids, const char *lids_name, char *why, size_t why_size)
{
	struct reader x = {.tree = tree, .t = &tree->pgft, .why = why, .why_size = why_size};
	uint32_t *first = NULL, lmc;
	int ret;

	*r = (struct fabric_routes){.tree = tree};
	if (fabric_nodes(x.t) > FABRIC_LID_MAX)
		return fabric_refuse(why, why_size,
				     "the fabric has %u nodes, but there are %u LIDs",
				     fabric_nodes(x.t), FABRIC_LID_MAX);
	ret = reader_init(&x);
	if (!ret && lids)
		ret = read_lids(&x, lids, lids_name);
	if (!ret)
		ret = read_tables(&x, from, name);
	if (!ret)
		first = calloc(fabric_hosts(x.t), sizeof(*first));
	if (!ret && !first)
		ret = -ENOMEM;
	if (!ret)
		ret = find_runs(&x, first, &lmc);
	if (!ret)
		ret = convert(&x, r, first, lmc);
	if (ret == -ENOMEM)
		fabric_refuse(why, why_size, "no memory to read the tables of %s", name);
	free(first);
	reader_free(&x);
	return ret;
}
