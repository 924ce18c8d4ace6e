/* Host names from files: those that launchers read, and lists as Slurm writes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_names_in.h"
#include "fabric_net.h"
#include "fabric_text.h"

#define REFUSE FABRIC_NAMES_REFUSE

/* ---- one name ---- */

static bool is_in_tree(const struct fabric_tree *t, uint32_t net_node)
{
	for (uint32_t i = 0; i < fabric_hosts(&t->pgft); i++)
		if (t->net_node[i] == net_node)
			return true;
	return false;
}

/* A host of the network that has no place in the tree. */
static bool is_beside(const struct fabric_tree *t, const char *text, size_t len)
{
	for (uint32_t i = 0; i < t->net->n_nodes; i++) {
		const struct fabric_net_node *n = &t->net->nodes[i];
		const char *const names[] = {n->name, n->host, n->id};

		for (size_t k = 0; k < 3 && n->kind != FABRIC_NET_SWITCH; k++)
			if (!strncmp(names[k], text, len) && !names[k][len])
				return !is_in_tree(t, i);
	}
	return false;
}

/* Who knows the hosts by other names is told one of them. */
static int unknown(const struct fabric_names *r, const char *text, size_t len)
{
	uint32_t n = fabric_hosts(&r->tree->pgft), some = 0;
	char name[FABRIC_TREE_NAME_MAX];

	if (!r->tree->net)
		return REFUSE(r, ": %s is no host of this tree; its hosts are h0 to h%u",
			      fabric_quote_n(text, len).text, n - 1);
	if (is_beside(r->tree, text, len))
		return REFUSE(r,
			      ": %s is beside the tree and can not be ordered; expected hosts that "
			      "have a place in it",
			      fabric_quote_n(text, len).text);
	while (some < n - 1 && !fabric_tree_has_node(r->tree, some))
		some++;
	fabric_tree_name(r->tree, some, name);
	return REFUSE(r, ": %s is no host of this fabric; expected one of %u names such as %s",
		      fabric_quote_n(text, len).text, n, fabric_quote(name).text);
}

/* -ENOENT: there is no such host, and nothing was said about it. */
static int find_name(struct fabric_names *r, const char *text, size_t len)
{
	char name[FABRIC_TREE_NAME_MAX];
	const uint32_t *hosts;
	uint32_t node, count;

	if (len == 0 || len >= sizeof(name))
		return -ENOENT;
	memcpy(name, text, len);
	name[len] = '\0';
	count = fabric_tree_machine(r->tree, name, &hosts);
	if (count > 1)
		return fabric_names_add_machine(r, hosts, count, text, len);
	if (!fabric_tree_find(r->tree, name, &node))
		return fabric_names_add_host(r, node, text, len);
	/* The adapter may have got another name, its machine has not. */
	return count ? fabric_names_add_host(r, hosts[0], text, len) : -ENOENT;
}

/* ---- lists of names ---- */

/* What is in brackets: numbers and ranges of numbers, with as many digits as they are written. */
struct range {
	const char *begin, *end; /* between the brackets */
	const char *after;       /* the range that we are in */
	uint32_t value, last;
	int width;
};

#define RANGES_MAX 4

static const char *take_number(const char *at, const char *end, uint32_t *value)
{
	const char *begin = at;

	for (*value = 0; at < end && *at >= '0' && *at <= '9'; at++) {
		if (at - begin == 9)
			return NULL;
		*value = *value * 10 + (uint32_t)(*at - '0');
	}
	return at > begin ? at : NULL;
}

static int load(struct range *g, const char *at)
{
	const char *begin = at;

	at = take_number(at, g->end, &g->value);
	if (!at)
		return -EINVAL;
	g->width = (int)(at - begin);
	g->last = g->value;
	if (at < g->end && *at == '-')
		at = take_number(at + 1, g->end, &g->last);
	if (!at || g->last < g->value || (at < g->end && *at != ','))
		return -EINVAL;
	g->after = at;
	return 0;
}

/* 1: there is a next number, 0: it begins again, or -EINVAL. */
static int advance(struct range *g)
{
	int ret;

	if (g->value < g->last) {
		g->value++;
		return 1;
	}
	if (g->after < g->end) {
		ret = load(g, g->after + 1);
		return ret ? ret : 1;
	}
	return load(g, g->begin);
}

/* Of a text with n ranges, the name by their present numbers. 0: it is too long to be one. */
static size_t compose(const char *text, size_t len, const struct range *g, uint32_t n, char *name)
{
	const char *from = text;
	size_t at = 0;

	for (uint32_t i = 0; i <= n; i++) {
		const char *to = i < n ? g[i].begin - 1 : text + len;

		if (at + (size_t)(to - from) + 10 >= FABRIC_TREE_NAME_MAX)
			return 0;
		memcpy(name + at, from, (size_t)(to - from));
		at += (size_t)(to - from);
		if (i == n)
			break;
		at += (size_t)snprintf(name + at, FABRIC_TREE_NAME_MAX - at, "%0*u", g[i].width,
				       g[i].value);
		from = g[i].end + 1;
	}
	return at;
}

static int bad_list(const struct fabric_names *r, const char *text, size_t len)
{
	return REFUSE(r, ": %s is no list of hosts; expected such as host[01-12,15]",
		      fabric_quote_n(text, len).text);
}

/* Finds the brackets; 0: there are none, or they are not for us. */
static int find_ranges(const char *text, size_t len, struct range g[RANGES_MAX], uint32_t *n)
{
	*n = 0;
	for (const char *at = text; (at = memchr(at, '[', len - (size_t)(at - text)));) {
		const char *end = memchr(at, ']', len - (size_t)(at - text));

		if (!end || *n == RANGES_MAX)
			return -EINVAL;
		g[*n] = (struct range){.begin = at + 1, .end = end};
		if (load(&g[*n], at + 1))
			return -EINVAL;
		(*n)++;
		at = end + 1;
	}
	return 0;
}

/* All names in their order, the last number first. It ends at the first name that is not a host or
 * was there before, so it can not be long. */
static int add_ranges(struct fabric_names *r, const char *text, size_t len)
{
	char name[FABRIC_TREE_NAME_MAX];
	struct range g[RANGES_MAX];
	uint32_t n, turning;
	int ret = find_ranges(text, len, g, &n);

	if (ret)
		return bad_list(r, text, len);
	if (n == 0)
		return unknown(r, text, len);
	do {
		size_t size = compose(text, len, g, n, name);

		ret = size ? find_name(r, name, size) : -ENOENT;
		if (ret == -ENOENT)
			return size ? unknown(r, name, size) : unknown(r, text, len);
		if (ret)
			return ret;
		for (turning = n; turning > 0; turning--) {
			ret = advance(&g[turning - 1]);
			if (ret < 0)
				return bad_list(r, text, len);
			if (ret)
				break;
		}
	} while (turning > 0);
	return 0;
}

/* MPICH's "host:1": where the number of ranks begins. */
static size_t without_count(const char *text, size_t len)
{
	size_t at = len;

	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
		at--;
	return at > 1 && at < len && text[at - 1] == ':' ? at - 1 : len;
}

static int take_count(struct fabric_names *r, const char *text, size_t len)
{
	uint32_t n = 0;

	/* Nobody has more, and a number that is too large stays so. */
	for (size_t i = 0; i < len; i++)
		n = n > FABRIC_NONE / 16 ? n : n * 10 + (uint32_t)(text[i] - '0');
	if (!n)
		return REFUSE(r, ": no ranks on a host; expected host:1, or no such host");
	if (!r->ranks) {
		r->ranks = n;
		r->style = "host:";
	}
	return 0;
}

static int add_item(struct fabric_names *r, const char *text, size_t len)
{
	size_t shorter = without_count(text, len);
	uint32_t ranks = r->ranks;
	int ret = find_name(r, text, len);

	if (ret != -ENOENT)
		return ret;
	ret = shorter < len ? take_count(r, text + shorter + 1, len - shorter - 1) : 0;
	if (!ret)
		ret = shorter < len ? find_name(r, text, shorter) : -ENOENT;
	if (ret == -ENOENT)
		ret = add_ranges(r, text, shorter);
	r->ranks = ranks;
	return ret;
}

/* Where the item ends: at a comma that is not in brackets. */
static size_t item_length(const char *text)
{
	bool inside = false;
	size_t len = 0;

	for (; text[len] && (inside || text[len] != ','); len++)
		inside = text[len] == '[' || (inside && text[len] != ']');
	return len;
}

static int add_word(struct fabric_names *r, const char *word)
{
	int ret = 0;

	for (;;) {
		size_t len = item_length(word);

		ret = add_item(r, word, len);
		if (ret || !word[len])
			return ret;
		word += len + 1;
	}
}

/* ---- files ---- */

/* Slot 1 of a machine with several hosts is its second one, as our own rankfiles have it; other
 * slots are those of cores. */
static int add_ranked(struct fabric_names *r, const struct fabric_line *line)
{
	size_t len = strlen(line->name);
	const uint32_t *hosts;
	uint32_t n = fabric_tree_machine(r->tree, line->name, &hosts);
	int ret;

	r->rank = line->rank;
	r->ranks = 1;
	if (n > 1 && line->slot < n)
		return fabric_names_add_host(r, hosts[line->slot], line->name, len);
	ret = find_name(r, line->name, len);
	return ret == -ENOENT ? unknown(r, line->name, len) : ret;
}

static int add_line(struct fabric_names *r, struct fabric_line *line)
{
	if (line->zero)
		return REFUSE(r, " has a zero byte in it; expected a text file");
	if (!fabric_line_parse(line))
		return REFUSE(r, ": %s is not understood; expected %s",
			      fabric_quote(line->bad).text, line->expected);
	if (!line->name)
		return 0;
	if (r->n_named && r->ranked != line->ranked)
		return REFUSE(r, ": %s; expected all lines to be of a rankfile, or none",
			      line->ranked ? "a rank, behind lines of a hostfile"
					   : "no rank, behind lines of a rankfile");
	r->ranked = line->ranked;
	if (line->ranked)
		return add_ranked(r, line);
	r->ranks = line->ranks;
	r->style = "slots=";
	return add_word(r, line->name);
}

static int read_hosts(struct fabric_names *r, FILE *from, struct fabric_line *line)
{
	int ret;

	errno = 0;
	for (r->number = 1; (ret = fabric_line_read(from, line)) > 0; r->number++) {
		ret = add_line(r, line);
		if (ret < 0)
			return ret;
	}
	if (ret < 0)
		return fabric_names_no_memory(r);
	if (ferror(from)) {
		ret = errno ? -errno : -EIO;
		fabric_refuse(r->why, r->why_size, "can not read %s: %s", r->name.text,
			      strerror(-ret));
		return ret;
	}
	if (r->n_named == 0 && !r->tree->net)
		return fabric_refuse(r->why, r->why_size,
				     "%s names no host; expected one of h0 to h%u per line",
				     r->name.text, fabric_hosts(&r->tree->pgft) - 1);
	if (r->n_named == 0)
		return fabric_refuse(r->why, r->why_size, "%s names no host; expected one per line",
				     r->name.text);
	return fabric_names_end(r);
}

int fabric_names_read(const struct fabric_tree *t, const struct fabric_set *set, FILE *from,
		      const char *name, uint32_t *hosts, uint32_t *count, char *why,
		      size_t why_size)
{
	struct fabric_names r = {.tree = t, .set = set, .name = fabric_quote(name), .hosts = hosts};
	struct fabric_line line = {0};
	int ret;

	r.why = why;
	r.why_size = why_size;
	r.seen = calloc(fabric_hosts(&t->pgft), sizeof(*r.seen));
	r.times = calloc(fabric_hosts(&t->pgft), sizeof(*r.times));
	ret = r.seen && r.times ? read_hosts(&r, from, &line) : fabric_names_no_memory(&r);
	*count = r.count;
	free(r.seen);
	free(r.times);
	free(r.named);
	free(line.text);
	return ret;
}

int fabric_names_file(const struct fabric_tree *t, const struct fabric_set *set, const char *path,
		      uint32_t *hosts, uint32_t *count, char *why, size_t why_size)
{
	FILE *f;
	int ret = fabric_open(&f, path, why, why_size);

	if (ret)
		return ret;
	ret = fabric_names_read(t, set, f, fabric_file_name(path), hosts, count, why, why_size);
	fabric_close(f);
	return ret;
}
