/* Tables as OpenSM prints them, read for a small fabric. The first byte chooses: of a whole one or
 * not, and whether the text up to a line of "--" is a guid2lid. What is accepted must read the same
 * again after it was written. */
#include <errno.h>

#include "fabric_lft.h"
#include "fuzz.h"

/* One sentence: not empty, not cut off, nothing in it that a terminal would obey. */
static void check_sentence(const char *why)
{
	HOLDS(strlen(why) > 10 && strlen(why) < 255);
	for (; *why; why++)
		HOLDS(*why >= ' ' && *why < 0x7f);
}

/* fmemopen has no empty files: of those there is nothing to read. */
static FILE *open_text(const void *text, size_t size)
{
	FILE *f = size ? fmemopen((void *)text, size, "r") : fopen("/dev/null", "r");

	HOLDS(f);
	return f;
}

static void check_table(const struct fabric_routes *r)
{
	const struct fabric_pgft *t = &r->tree->pgft;

	for (uint32_t node = 0; node < fabric_nodes(t); node++)
		for (uint32_t j = 0; j < fabric_hosts(t); j++)
			for (uint32_t a = 0; a < 1u << r->rule.lmc; a++) {
				uint32_t cable;
				bool up;

				cable = fabric_routes_step(r, node, j, a, &up);
				HOLDS(cable == FABRIC_NONE ||
				      fabric_tree_has_cable(r->tree, cable));
			}
}

/* Written with the LIDs that we give, it is the same table. */
static void check_again(const struct fabric_routes *r)
{
	char *text = NULL, *lids = NULL, why[256];
	size_t size, lids_size, bytes;
	struct fabric_routes again;
	FILE *f, *l;

	f = open_memstream(&text, &size);
	l = open_memstream(&lids, &lids_size);
	HOLDS(f && l && !fabric_lft_write(r, false, f));
	HOLDS(!fabric_lft_write_lids(r->tree, r->rule.lmc, l));
	fclose(f);
	fclose(l);
	f = open_text(text, size);
	l = open_text(lids, lids_size);
	HOLDS(!fabric_lft_read(&again, r->tree, f, "again", l, "lids", why, sizeof(why)));
	bytes = (fabric_nodes(&r->tree->pgft) - fabric_hosts(&r->tree->pgft)) *
		fabric_routes_entries(r) * sizeof(*r->table);
	HOLDS(again.rule.lmc == r->rule.lmc && !memcmp(again.table, r->table, bytes));
	fabric_routes_free(&again);
	fclose(f);
	fclose(l);
	free(text);
	free(lids);
}

static void make_tree(struct fabric_tree *t, bool whole)
{
	struct fabric_pgft pgft;
	char why[256];

	HOLDS(!fabric_pgft_parse(&pgft, "2;2,2;1,1;1,2", why, sizeof(why)));
	fabric_tree_init(t, &pgft);
	if (!whole)
		HOLDS(!fabric_tree_remove(t, 1) && !fabric_tree_cut(t, 4));
}

static const uint8_t *find_split(const uint8_t *text, size_t size)
{
	for (size_t i = 0; i + 3 <= size; i++)
		if (!memcmp(text + i, "--\n", 3))
			return text + i;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *lids = NULL, *tables;
	struct fabric_routes r;
	struct fabric_tree t;
	const uint8_t *split;
	char why[256] = "";
	uint8_t *text;
	int ret;

	if (size == 0)
		return 0;
	make_tree(&t, data[0] % 2 == 0);
	text = exact_copy(data + 1, size - 1);
	split = data[0] & 2 ? find_split(text, size - 1) : NULL;
	if (split)
		lids = open_text(text, (size_t)(split - text));
	split = split ? split + 3 : text;
	tables = open_text(split, size - 1 - (size_t)(split - text));
	ret = fabric_lft_read(&r, &t, tables, "corpus", lids, "lids", why, sizeof(why));
	HOLDS(ret == 0 || ret == -EINVAL);
	if (ret) {
		HOLDS(!r.table && !r.links);
		check_sentence(why);
	} else {
		check_table(&r);
		check_again(&r);
	}
	fabric_routes_free(&r);
	fclose(tables);
	if (lids)
		fclose(lids);
	free(text);
	fabric_tree_free(&t);
	return 0;
}
