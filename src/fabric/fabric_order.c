#include "fabric_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_order_in.h"
#include "fabric_text.h"
#include "util_rand.h"

/* ---- sets ---- */

static int no_memory(const struct fabric_tree *t, char *why, size_t why_size)
{
	fabric_refuse(why, why_size, "no memory for the order of %u hosts", fabric_hosts(&t->pgft));
	return -ENOMEM;
}

void fabric_set_free(struct fabric_set *s)
{
	free(s->hosts);
	*s = (struct fabric_set){0};
}

/* One without any cable, since its leaf is gone, is of no use. */
static bool is_there(const struct fabric_tree *t, uint32_t host)
{
	uint32_t ports = fabric_up_ports(&t->pgft, 0);

	if (!fabric_tree_has_node(t, host))
		return false;
	for (uint32_t q = 0; q < ports; q++)
		if (fabric_tree_has_cable(t, host * ports + q))
			return true;
	return false;
}

/* Those that are marked, 0: takes part, and there. */
static int set_make(struct fabric_set *s, const struct fabric_tree *t, const uint8_t *out)
{
	uint32_t n = fabric_hosts(&t->pgft);

	*s = (struct fabric_set){.hosts = malloc(n * sizeof(*s->hosts))};
	if (!s->hosts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (!(out && out[i]) && is_there(t, i))
			s->hosts[s->count++] = i;
	return 0;
}

int fabric_set_all(struct fabric_set *s, const struct fabric_tree *t)
{
	return set_make(s, t, NULL);
}

static int parse_exclude(const struct fabric_tree *t, const char *text, uint32_t *k, uint64_t *seed,
			 char *why, size_t why_size)
{
	uint32_t n = fabric_hosts(&t->pgft);
	size_t len = strcspn(text, ":");
	char number[24] = "";
	uint64_t v;

	if (len < sizeof(number))
		memcpy(number, text, len);
	if (!text[len] || fabric_decimal(number, &v))
		return fabric_refuse(why, why_size,
				     "%s does not say whom to exclude; expected K:SEED, such as "
				     "10:1",
				     fabric_quote(text).text);
	if (v >= n)
		return fabric_refuse(why, why_size,
				     "%s of %u hosts can not be excluded; expected at most %u",
				     number, n, n - 1);
	*k = (uint32_t)v;
	if (fabric_decimal(text + len + 1, seed))
		return fabric_refuse(why, why_size,
				     "%s is no seed in %s; expected K:SEED with a number, such as "
				     "%s:1",
				     fabric_quote(text + len + 1).text, fabric_quote(text).text,
				     number);
	return 0;
}

static int exclude(struct fabric_set *s, const struct fabric_tree *t, uint32_t k, uint64_t seed)
{
	uint32_t n = fabric_hosts(&t->pgft);
	uint32_t *all = malloc(n * sizeof(*all));
	uint8_t *out = calloc(n, 1);
	struct util_rand rand;
	int ret = -ENOMEM;

	if (all && out) {
		for (uint32_t i = 0; i < n; i++)
			all[i] = i;
		util_rand_seed(&rand, seed);
		util_rand_shuffle(&rand, all, n);
		for (uint32_t i = 0; i < k; i++)
			out[all[i]] = 1;
		ret = set_make(s, t, out);
	}
	free(all);
	free(out);
	return ret;
}

int fabric_set_exclude(struct fabric_set *s, const struct fabric_tree *t, const char *text,
		       char *why, size_t why_size)
{
	uint64_t seed;
	uint32_t k = 0;
	int ret = parse_exclude(t, text, &k, &seed, why, why_size);

	*s = (struct fabric_set){0};
	if (ret)
		return ret;
	if (exclude(s, t, k, seed))
		return no_memory(t, why, why_size);
	if (s->count)
		return 0;
	fabric_set_free(s);
	return fabric_refuse(why, why_size,
			     "%s excludes all hosts that are not missing; expected fewer",
			     fabric_quote(text).text);
}

static int ascending(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int set_begin(struct fabric_set *s, const struct fabric_tree *t, char *why, size_t why_size)
{
	*s = (struct fabric_set){.hosts = malloc(fabric_hosts(&t->pgft) * sizeof(*s->hosts))};
	return s->hosts ? 0 : no_memory(t, why, why_size);
}

static int set_end(struct fabric_set *s, int ret)
{
	if (ret)
		fabric_set_free(s);
	else
		qsort(s->hosts, s->count, sizeof(*s->hosts), ascending);
	return ret;
}

int fabric_set_read(struct fabric_set *s, const struct fabric_tree *t, FILE *from, const char *name,
		    char *why, size_t why_size)
{
	int ret = set_begin(s, t, why, why_size);

	if (ret)
		return ret;
	ret = fabric_names_read(t, NULL, from, name, s->hosts, &s->count, why, why_size);
	return set_end(s, ret);
}

int fabric_set_file(struct fabric_set *s, const struct fabric_tree *t, const char *path, char *why,
		    size_t why_size)
{
	int ret = set_begin(s, t, why, why_size);

	if (ret)
		return ret;
	ret = fabric_names_file(t, NULL, path, s->hosts, &s->count, why, why_size);
	return set_end(s, ret);
}

uint32_t *fabric_set_index(const struct fabric_set *s, const struct fabric_tree *t)
{
	uint32_t n = fabric_hosts(&t->pgft);
	uint32_t *index = malloc(n * sizeof(*index));

	if (!index)
		return NULL;
	memset(index, 0xff, n * sizeof(*index));
	for (uint32_t i = 0; i < s->count; i++)
		index[s->hosts[i]] = i;
	return index;
}

/* ---- orders ---- */

static void order_set(const struct fabric_set *set, uint32_t *hosts, uint32_t *count)
{
	memcpy(hosts, set->hosts, set->count * sizeof(*hosts));
	*count = set->count;
}

static int order_random(const struct fabric_set *set, const char *text, uint32_t *hosts,
			uint32_t *count, char *why, size_t why_size)
{
	struct util_rand rand;
	uint64_t seed;
	int ret = fabric_seed("random", text, &seed, why, why_size);

	if (ret)
		return ret;
	order_set(set, hosts, count);
	util_rand_seed(&rand, seed);
	util_rand_shuffle(&rand, hosts, *count);
	return 0;
}

static int order_worst(const struct fabric_tree *t, const struct fabric_set *set, uint32_t *hosts,
		       uint32_t *count, char *why, size_t why_size)
{
	if (t->pgft.h < 2)
		return fabric_refuse(why, why_size,
				     "adversarial needs leaves with up-going ports, and this tree "
				     "is a single level; expected two or more");
	*count = set->count;
	return fabric_order_worst(&t->pgft, set, hosts) ? no_memory(t, why, why_size) : 0;
}

int fabric_order_of(const struct fabric_tree *t, const struct fabric_set *set, const char *text,
		    uint32_t *hosts, uint32_t *count, char *why, size_t why_size)
{
	if (!strcmp(text, "routing") || !strcmp(text, "compact")) {
		order_set(set, hosts, count);
		return 0;
	}
	if (!strcmp(text, "adversarial"))
		return order_worst(t, set, hosts, count, why, why_size);
	if (!strncmp(text, "random:", 7))
		return order_random(set, text + 7, hosts, count, why, why_size);
	if (!strncmp(text, "file:", 5))
		return fabric_names_file(t, set, text + 5, hosts, count, why, why_size);
	return fabric_refuse(why, why_size,
			     "%s is no order; known are routing, compact, adversarial, "
			     "random:SEED and file:F",
			     fabric_quote(text).text);
}

/* ---- of whole trees ---- */

int fabric_order(const struct fabric_pgft *t, const char *text, uint32_t *hosts, uint32_t *count,
		 char *why, size_t why_size)
{
	struct fabric_tree tree;
	struct fabric_set set;
	int ret;

	fabric_tree_init(&tree, t);
	if (fabric_set_all(&set, &tree))
		ret = no_memory(&tree, why, why_size);
	else
		ret = fabric_order_of(&tree, &set, text, hosts, count, why, why_size);
	fabric_set_free(&set);
	fabric_tree_free(&tree);
	return ret;
}

int fabric_order_read(const struct fabric_pgft *t, FILE *from, const char *name, uint32_t *hosts,
		      uint32_t *count, char *why, size_t why_size)
{
	struct fabric_tree tree;
	int ret;

	fabric_tree_init(&tree, t);
	ret = fabric_names_read(&tree, NULL, from, name, hosts, count, why, why_size);
	fabric_tree_free(&tree);
	return ret;
}
