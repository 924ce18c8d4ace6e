/* Host names from files: those that launchers read, and lists as Slurm writes them. */
#include "fabric_order_in.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_net.h"
#include "fabric_text.h"

struct reader {
	const struct fabric_tree *tree;
	const struct fabric_set *set;
	struct fabric_quote name;
	uint64_t number; /* of the line */
	uint64_t *seen;  /* in which line each host was, 0: in none */
	uint32_t *hosts, count;
	char *why;
	size_t why_size;
};

#define REFUSE(r, fmt, ...)                                                                        \
	fabric_refuse((r)->why, (r)->why_size, "line %" PRIu64 " of %s" fmt, (r)->number,          \
		      (r)->name.text, ##__VA_ARGS__)

static int no_memory(const struct reader *r)
{
	fabric_refuse(r->why, r->why_size, "no memory to read the hosts of %s", r->name.text);
	return -ENOMEM;
}

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
static int unknown(const struct reader *r, const char *text, size_t len)
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

static int add_host(struct reader *r, uint32_t node, const char *text, size_t len)
{
	struct fabric_quote word = fabric_quote_n(text, len);
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
	r->hosts[r->count++] = node;
	return 0;
}

/* All of a machine that are there and take part; if none does, the first says why. */
static int add_machine(struct reader *r, const uint32_t *hosts, uint32_t count, const char *text,
		       size_t len)
{
	uint32_t added = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < count; i++) {
		if (!fabric_tree_has_node(r->tree, hosts[i]) ||
		    (r->set && !takes_part(r->set, hosts[i])))
			continue;
		ret = add_host(r, hosts[i], text, len);
		added++;
	}
	return added ? ret : add_host(r, hosts[0], text, len);
}

/* -ENOENT: there is no such host, and nothing was said about it. */
static int find_name(struct reader *r, const char *text, size_t len)
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
		return add_machine(r, hosts, count, text, len);
	if (!fabric_tree_find(r->tree, name, &node))
		return add_host(r, node, text, len);
	/* The adapter may have got another name, its machine has not. */
	return count ? add_host(r, hosts[0], text, len) : -ENOENT;
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

static int bad_list(const struct reader *r, const char *text, size_t len)
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
static int add_ranges(struct reader *r, const char *text, size_t len)
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

/* MPICH's "host:1", how many processes. */
static size_t without_count(const char *text, size_t len)
{
	size_t at = len;

	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
		at--;
	return at > 1 && at < len && text[at - 1] == ':' ? at - 1 : len;
}

/* An order says which rank is where; in an allocation it is of no interest how many there are. */
static int too_many(const struct reader *r, const char *what)
{
	return REFUSE(r, ": a host runs one rank here; expected %s1, or no number of ranks", what);
}

static int add_item(struct reader *r, const char *text, size_t len)
{
	size_t shorter = without_count(text, len);
	int ret = find_name(r, text, len);

	if (ret == -ENOENT && r->set && shorter < len &&
	    (len - shorter != 2 || text[len - 1] != '1'))
		return too_many(r, "host:");
	if (ret == -ENOENT && shorter < len)
		ret = find_name(r, text, shorter);
	return ret == -ENOENT ? add_ranges(r, text, shorter) : ret;
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

static int add_word(struct reader *r, const char *word)
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

static int read_hosts(struct reader *r, FILE *from, struct fabric_line *line)
{
	int ret;

	errno = 0;
	for (r->number = 1; (ret = fabric_line_read(from, line)) > 0; r->number++) {
		if (line->zero)
			return REFUSE(r, " has a zero byte in it; expected a text file");
		if (line->len)
			ret = add_word(r, line->word);
		if (ret >= 0 && r->set && line->slots)
			ret = too_many(r, "slots=");
		if (ret < 0)
			return ret;
	}
	if (ret < 0)
		return no_memory(r);
	if (ferror(from)) {
		ret = errno ? -errno : -EIO;
		fabric_refuse(r->why, r->why_size, "can not read %s: %s", r->name.text,
			      strerror(-ret));
		return ret;
	}
	if (r->count == 0 && !r->tree->net)
		return fabric_refuse(r->why, r->why_size,
				     "%s names no host; expected one of h0 to h%u per line",
				     r->name.text, fabric_hosts(&r->tree->pgft) - 1);
	if (r->count == 0)
		return fabric_refuse(r->why, r->why_size, "%s names no host; expected one per line",
				     r->name.text);
	return 0;
}

int fabric_names_read(const struct fabric_tree *t, const struct fabric_set *set, FILE *from,
		      const char *name, uint32_t *hosts, uint32_t *count, char *why,
		      size_t why_size)
{
	struct reader r = {.tree = t, .set = set, .name = fabric_quote(name), .hosts = hosts};
	struct fabric_line line = {0};
	int ret;

	r.why = why;
	r.why_size = why_size;
	r.seen = calloc(fabric_hosts(&t->pgft), sizeof(*r.seen));
	ret = r.seen ? read_hosts(&r, from, &line) : no_memory(&r);
	*count = r.count;
	free(r.seen);
	free(line.word);
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
