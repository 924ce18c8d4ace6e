/* The texts that describe a fabric. The first byte chooses: a tuple, a routing, the name of a
 * node or a cable, or the file of a node order. What is accepted must read the same again
 * after it was printed. */
#include <errno.h>

#include "fabric_order.h"
#include "fabric_pgft.h"
#include "fabric_route.h"
#include "fuzz.h"

/* One sentence: not empty, not cut off, nothing in it that a terminal would obey. */
static void check_sentence(const char *why)
{
	HOLDS(strlen(why) > 10 && strlen(why) < 255);
	for (; *why; why++)
		HOLDS(*why >= ' ' && *why < 0x7f);
}

static void check_sizes(const struct fabric_pgft *t)
{
	uint64_t hosts = 1, nodes = 0, cables = 0;

	HOLDS(t->h >= 1 && t->h <= FABRIC_LEVELS_MAX);
	for (uint32_t l = 1; l <= t->h; l++)
		hosts *= t->m[l];
	for (uint32_t l = 0; l <= t->h; l++) {
		HOLDS(t->nodes[l] == (uint64_t)t->W[l] * (hosts / t->M[l]));
		nodes += t->nodes[l];
		if (l == 0)
			continue;
		HOLDS(t->cables[l] == (uint64_t)t->nodes[l] * t->m[l] * t->p[l]);
		cables += t->cables[l];
	}
	HOLDS(hosts == fabric_hosts(t) && hosts <= FABRIC_HOSTS_MAX);
	HOLDS(nodes == fabric_nodes(t) && nodes <= FABRIC_NODES_MAX);
	HOLDS(cables == fabric_cables(t) && cables <= FABRIC_CABLES_MAX);
}

/* A cable from both its ends, and its name. */
static void check_cable(const struct fabric_pgft *t, uint32_t number)
{
	struct fabric_cable c = fabric_cable(t, number), again;
	char name[FABRIC_CABLE_NAME_MAX];

	HOLDS(fabric_cable_number(t, &c) == number);
	again = fabric_cable_down(t, c.upper, c.r);
	HOLDS(!memcmp(&again, &c, sizeof(c)));
	fabric_cable_name(t, &c, name);
	HOLDS(!fabric_find_cable(t, name, &again) && !memcmp(&again, &c, sizeof(c)));
}

/* From the last host to the first, by every kind of routing. */
static void check_route(const struct fabric_pgft *t, enum fabric_routing_kind kind)
{
	struct fabric_routing r = {.kind = kind, .seed = t->M[1]};
	struct fabric_node n = {0, fabric_hosts(t) - 1};
	struct fabric_ports p;
	uint32_t hops = 0;

	while (p = fabric_route(t, &r, n, 0, 0), p.count) {
		HOLDS(++hops <= 2 * t->h);
		n = p.up ? fabric_cable_up(t, n, p.first).upper
			 : fabric_cable_down(t, n, p.first).lower;
	}
	HOLDS(n.level == 0 && n.index == 0);
}

static void tuple(const char *text)
{
	char why[256] = "", plain[FABRIC_TUPLE_MAX];
	struct fabric_pgft t, again;
	int r = fabric_pgft_parse(&t, text, why, sizeof(why));

	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
		return;
	}
	check_sizes(&t);
	fabric_pgft_print(&t, plain);
	HOLDS(strlen(plain) < sizeof(plain) - 1);
	HOLDS(!fabric_pgft_parse(&again, plain, why, sizeof(why)));
	HOLDS(!memcmp(&again, &t, sizeof(t)));
	check_cable(&t, 0);
	check_cable(&t, fabric_cables(&t) - 1);
	check_cable(&t, fabric_cables(&t) / 3);
	check_route(&t, FABRIC_DMODK);
	check_route(&t, FABRIC_ECMP);
	check_route(&t, FABRIC_RANDOM);
}

static void routing(const char *text)
{
	char why[256] = "", plain[FABRIC_ROUTING_NAME_MAX];
	struct fabric_routing x = {0}, again = {0};
	int r = fabric_routing_parse(&x, text, why, sizeof(why));

	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
		return;
	}
	fabric_routing_print(&x, plain);
	HOLDS(!fabric_routing_parse(&again, plain, why, sizeof(why)));
	HOLDS(again.kind == x.kind && again.seed == x.seed && again.lmc == x.lmc);
}

static void small_tree(struct fabric_pgft *t)
{
	char why[256];

	HOLDS(!fabric_pgft_parse(t, "3;3,4,2;1,2,3;1,2,1", why, sizeof(why)));
}

/* Nodes have one name each; cables can be named in several ways. */
static void name(const char *text)
{
	char plain[FABRIC_CABLE_NAME_MAX];
	struct fabric_cable c, again;
	struct fabric_node n;
	struct fabric_pgft t;

	small_tree(&t);
	if (!fabric_find(&t, text, &n)) {
		fabric_name(n, plain);
		HOLDS(!strcmp(plain, text));
	}
	if (!fabric_find_cable(&t, text, &c)) {
		fabric_cable_name(&t, &c, plain);
		HOLDS(!fabric_find_cable(&t, plain, &again) && !memcmp(&again, &c, sizeof(c)));
	}
}

static void order(const uint8_t *b, size_t size)
{
	uint32_t hosts[24], count = 0, seen = 0;
	char why[256] = "";
	struct fabric_pgft t;
	FILE *f;
	int r;

	if (size == 0)
		return; /* fmemopen has no empty files */
	small_tree(&t);
	f = fmemopen((void *)b, size, "r");
	HOLDS(f);
	r = fabric_order_read(&t, f, "corpus", hosts, &count, why, sizeof(why));
	fclose(f);
	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
		return;
	}
	HOLDS(count >= 1 && count <= 24 && !memchr(b, 0, size));
	for (uint32_t i = 0; i < count; i++) {
		HOLDS(hosts[i] < 24 && !(seen >> hosts[i] & 1));
		seen |= 1u << hosts[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	/* As text: with a zero at the end, and nothing behind it. */
	text = malloc(size);
	HOLDS(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (data[0] % 4) {
	case 0:
		tuple(text);
		break;
	case 1:
		routing(text);
		break;
	case 2:
		name(text);
		break;
	case 3:
		order((const uint8_t *)text, size - 1);
		break;
	}
	free(text);
	return 0;
}
