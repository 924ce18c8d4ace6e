/* Reading what OpenSM and the diagnostic programs print. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_beside.h"
#include "fabric_lft_in.h"

/* What is beside the tree, instead of a node's number. */
#define BESIDE(x) fabric_nodes((x)->t)

/* ---- lines and words ---- */

/* 1: a line, 0: the end, or -errno. */
static int next_line(struct lft_reader *x, FILE *from)
{
	size_t len = 0;
	int c = getc_unlocked(from);

	if (c == EOF && !ferror(from))
		return 0;
	x->line++;
	for (; c != EOF && c != '\n'; c = getc_unlocked(from)) {
		if (c == 0)
			return lft_refuse(x, "a zero byte; expected a text file");
		if (len == LINE_MAX_LEN)
			return lft_refuse(x,
					  "a line of more than %d characters; expected tables of "
					  "OpenSM",
					  LINE_MAX_LEN);
		x->text[len++] = (char)c;
	}
	if (ferror(from)) {
		int err = errno ? errno : EIO;

		fabric_refuse(x->why, x->why_size, "can not read %s: %s", x->file, strerror(err));
		return -err;
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
	const struct lft_known *x = a, *y = b;

	return (x->guid > y->guid) - (x->guid < y->guid);
}

static uint32_t find_guid(const struct lft_reader *x, uint64_t guid)
{
	struct lft_known key = {.guid = guid};
	const struct lft_known *k = bsearch(&key, x->known, x->n_known, sizeof(key), by_guid);

	return k ? k->node : FABRIC_NONE;
}

/* A LID has one owner for the whole of the file. */
static int own(struct lft_reader *x, uint32_t lid, uint64_t guid)
{
	struct lft_owner *o;

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
		return lft_refuse(x,
				  "LID 0x%04x is of port GUID 0x%016" PRIx64
				  ", but it was of 0x%016" PRIx64 " before; a LID has one owner",
				  lid, guid, o->guid);
	o->node = find_guid(x, guid);
	if (o->node == FABRIC_NONE)
		return lft_refuse(x, "no node of this fabric has the port GUID 0x%016" PRIx64,
				  guid);
	o->guid = guid;
	return 0;
}

/* ---- guid2lid ---- */

static int lids_line(struct lft_reader *x)
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
		return lft_refuse(x,
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

static int read_lids(struct lft_reader *x, FILE *from, const char *name)
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

static int begin_table(struct lft_reader *x)
{
	const char *at = strstr(x->text, " guid 0x");
	uint64_t guid;
	uint32_t node;

	if (!at || !number(at + 6, 16, UINT64_MAX, &guid))
		return lft_refuse(x,
				  "the table of which switch? Expected 'Unicast lids ... guid 0x' "
				  "and its GUID");
	/* Of a switch, that of its port 0 is its own. */
	node = find_guid(x, guid);
	x->table = NULL;
	x->skip = node == BESIDE(x);
	if (x->skip)
		return 0;
	if (node == FABRIC_NONE || node < fabric_hosts(x->t))
		return lft_refuse(x, "no switch of this fabric has the GUID 0x%016" PRIx64, guid);
	x->table = &x->tables[node - fabric_hosts(x->t)];
	if (x->table->line)
		return lft_refuse(x, "the table of switch %s again; the first is in line %u",
				  lft_name(x, node), x->table->line);
	x->table->line = x->line;
	x->table->node = node;
	return 0;
}

static int set_port(struct lft_reader *x, uint32_t lid, uint32_t port)
{
	struct lft_table *t = x->table;

	if (lft_port_at(t, lid) != LFT_NO_PORT)
		return lft_refuse(
			x, "LID 0x%04x again in the table of switch %s, which begins in line %u",
			lid, lft_name(x, t->node), t->line);
	if (lid >= t->room) {
		uint32_t n = enough(lid);
		uint8_t *ports = realloc(t->ports, n);

		if (!ports)
			return -ENOMEM;
		memset(ports + t->room, LFT_NO_PORT, n - t->room);
		t->ports = ports;
		t->room = n;
	}
	t->ports[lid] = (uint8_t)port;
	return 0;
}

static int table_entry(struct lft_reader *x, const char *at)
{
	uint64_t lid, port, guid;
	int ret;

	at = number(at, 16, FABRIC_LID_MAX, &lid);
	at = at && lid ? number(skip(at), 10, LFT_NO_PORT, &port) : NULL;
	if (!at)
		return lft_refuse(
			x,
			"%s is no entry of a table; expected a LID of 0x0001 to 0x%04x and "
			"a port of 000 to 254",
			fabric_quote(x->text).text, FABRIC_LID_MAX);
	if (!x->table && !x->skip)
		return lft_refuse(x, "an entry without a switch; expected a line 'Unicast lids ... "
				     "guid 0x...' before it");
	ret = x->skip ? 0 : set_port(x, (uint32_t)lid, (uint32_t)port);
	at = strstr(at, "portguid 0x");
	if (ret || !at)
		return ret;
	if (!number(at + 9, 16, UINT64_MAX, &guid))
		return lft_refuse(x, "%s is no GUID; expected at most 16 hexadecimal digits",
				  fabric_quote(at + 9).text);
	return own(x, (uint32_t)lid, guid);
}

static int table_line(struct lft_reader *x)
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
	return lft_refuse(
		x,
		"%s is neither the beginning of a switch's table nor an entry of it, such "
		"as 0x0004 001",
		fabric_quote(x->text).text);
}

static int read_tables(struct lft_reader *x, FILE *from, const char *name)
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

/* ---- all ---- */

static void know(struct lft_reader *x, uint64_t guid, uint32_t node)
{
	if (guid)
		x->known[x->n_known++] = (struct lft_known){guid, node};
}

static int reader_init(struct lft_reader *x)
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

static void reader_free(struct lft_reader *x)
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
	struct lft_reader x = {.tree = tree, .t = &tree->pgft, .why = why, .why_size = why_size};
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
		ret = lft_find_runs(&x, first, &lmc);
	if (!ret)
		ret = lft_convert(&x, r, first, lmc);
	if (ret == -ENOMEM)
		fabric_refuse(why, why_size, "no memory to read the tables of %s", name);
	free(first);
	reader_free(&x);
	return ret;
}
