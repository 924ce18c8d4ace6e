/* Who takes part and what they exchange, from files: the first byte says which of the two the rest
 * is. What is accepted must hold together. */
#include <errno.h>
#include <stdlib.h>

#include "fabric_cps.h"
#include "fabric_order.h"
#include "fuzz.h"

#define RANKS 16

static void check_sentence(const char *why)
{
	HOLDS(strlen(why) > 10 && strlen(why) < 511);
	for (; *why; why++)
		HOLDS(*why >= ' ' && *why < 0x7f);
}

static void hosts(FILE *from)
{
	struct fabric_pgft pgft;
	struct fabric_tree tree;
	struct fabric_set set;
	char why[512] = "";
	int r;

	HOLDS(!fabric_pgft_parse(&pgft, "2;4,4;1,2;1,2", why, sizeof(why)));
	fabric_tree_init(&tree, &pgft);
	r = fabric_set_read(&set, &tree, from, "corpus", why, sizeof(why));
	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
	} else {
		HOLDS(set.count <= RANKS);
		for (uint32_t i = 0; i < set.count; i++)
			HOLDS(set.hosts[i] < RANKS && (!i || set.hosts[i - 1] < set.hosts[i]));
		fabric_set_free(&set);
	}
	fabric_tree_free(&tree);
}

static void pattern(FILE *from)
{
	struct fabric_flow *flows;
	struct fabric_cps c;
	char why[512] = "";
	int r = fabric_cps_read(&c, from, "corpus", RANKS, why, sizeof(why));

	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
		return;
	}
	flows = calloc(c.widest, sizeof(*flows));
	HOLDS(flows);
	for (uint32_t s = 0; s < c.stages; s++) {
		uint32_t n = fabric_cps_flows(&c, s, flows), found = 0;

		HOLDS(n > 0 && n <= c.widest);
		for (uint32_t i = 0, nth = 0; i < n; i++) {
			nth = i && flows[i].from == flows[i - 1].from ? nth + 1 : 0;
			HOLDS(fabric_cps_nth(&c, s, flows[i].from, nth) == flows[i].to &&
			      flows[i].to < RANKS);
		}
		for (uint32_t i = 0; i < RANKS; i++)
			for (uint32_t k = 0; fabric_cps_nth(&c, s, i, k) != FABRIC_NONE; k++)
				found++;
		HOLDS(found == n);
	}
	free(flows);
	fabric_cps_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f;

	if (size < 2)
		return 0;
	f = fmemopen((void *)(data + 1), size - 1, "r");
	HOLDS(f);
	if (data[0] & 1)
		hosts(f);
	else
		pattern(f);
	fclose(f);
	return 0;
}
