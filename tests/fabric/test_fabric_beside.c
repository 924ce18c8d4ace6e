/* Tables of networks that have more than a tree: walked from every end-port to every other, as they
 * were written, and searched for circles of links that could wait for each other. */
#include "test_fabric_shape.h"

#include "fabric_lft.h"
#include "fabric_lft_ways.h"

struct tables {
	const struct fabric_net *net;
	struct fabric_beside beside;
	uint8_t *port;  /* by node of the network, by LID; 255: none */
	uint32_t *ends; /* end-ports: places in net->ports */
	uint32_t *lid;  /* of them */
	uint32_t n_ends, n_hosts;
	bool at_leaf;   /* something beside the tree comes by a leaf */
	uint8_t *waits; /* by link and link, each the place of the port it leaves by */
};

#define LIDS 1024

static void read_tables(struct tables *x, const struct fabric_routes *r)
{
	char *text, *at, *next;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	uint32_t node = 0;

	assert_int_equal(fabric_lft_write(r, false, f), 0);
	fclose(f);
	x->port = malloc((size_t)x->net->n_nodes * LIDS);
	memset(x->port, 255, (size_t)x->net->n_nodes * LIDS);
	for (at = text; *at; at = next + 1) {
		char *guid = strstr(at, " guid 0x");

		next = strchr(at, '\n');
		if (!strncmp(at, "Unicast", 7))
			for (node = 0; x->net->nodes[node].guid != strtoull(guid + 8, NULL, 16);)
				node++;
		else if (at[0] == '0')
			x->port[node * LIDS + strtoul(at, NULL, 16)] =
				(uint8_t)strtoul(at + 7, NULL, 10);
	}
	free(text);
}

/* The hosts of the tree first. */
static void find_ends(struct tables *x, const struct fabric_tree *t, uint32_t lmc)
{
	uint32_t hosts = fabric_hosts(&t->pgft);

	x->ends = malloc((hosts + x->beside.n_ports) * sizeof(*x->ends));
	x->lid = malloc((hosts + x->beside.n_ports) * sizeof(*x->lid));
	for (uint32_t j = 0; j < hosts; j++) {
		if (!fabric_tree_has_cable(t, j))
			continue;
		x->lid[x->n_ends] = fabric_lid(&t->pgft, lmc, j);
		x->ends[x->n_ends++] =
			fabric_net_find_port(t->net, t->net_node[j], t->lower_port[j]);
	}
	x->n_hosts = x->n_ends;
	for (uint32_t i = 0; i < x->beside.n_ports; i++) {
		x->lid[x->n_ends] = (uint32_t)fabric_lid_beside(t, &x->beside, lmc, true, i);
		x->ends[x->n_ends++] = x->beside.ports[i];
	}
}

/* To the next node; a packet that has come by *last waits for this link. */
static uint32_t follow(struct tables *x, uint32_t node, uint32_t port, uint32_t *last)
{
	uint32_t link = fabric_net_find_port(x->net, node, port);

	assert_int_not_equal(link, UINT32_MAX);
	if (*last != FABRIC_NONE)
		x->waits[(size_t)*last * x->net->n_ports + link] = 1;
	*last = link;
	return x->net->ports[link].peer;
}

/* Those of switches are for managers: from a switch to the LID of another, which is lost as well.
 * What waits on the way counts in any case. */
static bool walk_to_switch(struct tables *x, uint32_t node, uint32_t to, uint32_t lid)
{
	uint32_t last = FABRIC_NONE;

	for (uint32_t hops = 0; hops < 20; hops++) {
		uint32_t port = x->port[node * LIDS + lid];

		if (port == 255)
			return false;
		if (port == 0) {
			assert_int_equal(node, to);
			return true;
		}
		node = follow(x, node, port, &last);
		assert_int_equal(x->net->nodes[node].kind, FABRIC_NET_SWITCH);
	}
	fail_msg("to switch %u in a circle", to);
	return false;
}

/* From all switches. Returns how often a leaf has no way. */
static uint64_t walk_to_switches(struct tables *x, const struct fabric_tree *t, uint32_t lmc)
{
	const struct fabric_pgft *g = &t->pgft;
	uint64_t lost = 0;

	for (uint32_t to = g->first[1]; to < fabric_nodes(g); to++)
		for (uint32_t from = g->first[1]; from < fabric_nodes(g); from++) {
			bool there;

			if (t->net_node[from] == FABRIC_NONE || t->net_node[to] == FABRIC_NONE)
				continue;
			there = walk_to_switch(x, t->net_node[from], t->net_node[to],
					       fabric_lid(g, lmc, to));
			lost += !there && from < g->first[2];
		}
	return lost;
}

/* False: it is lost on the way. */
static bool walk(struct tables *x, uint32_t from, uint32_t to, uint32_t address)
{
	uint32_t node = x->net->ports[x->ends[from]].peer, last = FABRIC_NONE;

	for (uint32_t hops = 0; hops < 20; hops++) {
		uint32_t port = x->port[node * LIDS + x->lid[to] + address];

		if (port == 255)
			return false;
		node = follow(x, node, port, &last);
		if (x->net->nodes[node].kind == FABRIC_NET_SWITCH)
			continue;
		assert_int_equal(fabric_net_find_port(x->net, node, x->net->ports[last].peer_port),
				 x->ends[to]);
		return true;
	}
	fail_msg("from %u to %u in a circle", from, to);
	return false;
}

/* Links that nothing waits for are taken away, until none are left. */
static bool has_circle(const struct tables *x)
{
	uint32_t n = x->net->n_ports, done = 0, *waited = calloc(n, 4), *stack = malloc(n * 4),
		 top = 0;

	for (size_t i = 0; i < (size_t)n * n; i++)
		waited[i % n] += x->waits[i];
	for (uint32_t i = 0; i < n; i++)
		if (!waited[i])
			stack[top++] = i;
	while (top) {
		uint32_t link = stack[--top];

		done++;
		for (uint32_t i = 0; i < n; i++)
			if (x->waits[(size_t)link * n + i] && !--waited[i])
				stack[top++] = i;
	}
	free(waited);
	free(stack);
	return done < n;
}

static void find_kind(struct tables *x, const struct fabric_tree *t)
{
	const struct fabric_beside *b = &x->beside;

	x->at_leaf = b->n_switches > 0;
	for (uint32_t i = 0; i < b->n_ports; i++)
		x->at_leaf |= b->number[x->net->ports[b->ports[i]].peer] < t->pgft.first[2];
}

/* Returns how many pairs of which one is beside the tree have no way. */
static uint32_t check_tables(const struct fabric_tree *t, const struct fabric_routing *rule)
{
	struct tables x = {.net = t->net};
	struct fabric_routes r;
	uint32_t lost = 0, lost_hosts = 0;
	struct fabric_lft_lost said;
	uint64_t pairs;

	assert_int_equal(fabric_beside_find(&x.beside, t), 0);
	assert_int_equal(fabric_routes_make(&r, t, rule, NULL), 0);
	read_tables(&x, &r);
	find_ends(&x, t, rule->lmc);
	x.waits = calloc((size_t)t->net->n_ports * t->net->n_ports, 1);
	for (uint32_t from = 0; from < x.n_ends; from++)
		for (uint32_t to = 0; to < x.n_ends; to++)
			for (uint32_t a = 0; to != from && a < 1u << rule->lmc; a++) {
				bool there = walk(&x, from, to, a);

				if (from < x.n_hosts && to < x.n_hosts)
					lost_hosts += !there;
				else
					lost += !there;
			}
	assert_int_equal(fabric_routes_unreachable(&r, &pairs), 0);
	find_kind(&x, t);
	assert_int_equal(fabric_lft_lost(t, rule->lmc, &said), 0);
	assert_int_equal(said.beside > 0, lost > 0);
	assert_int_equal(walk_to_switches(&x, t, rule->lmc), said.switches);
	assert_false(has_circle(&x));
	/* What is analysed is what is written. */
	assert_true(lost_hosts <= pairs << rule->lmc);
	if (!x.at_leaf)
		assert_int_equal(lost_hosts, pairs << rule->lmc);
	if (fabric_tree_whole(t))
		assert_int_equal(lost + lost_hosts, 0);
	fabric_beside_free(&x.beside);
	fabric_routes_free(&r);
	free(x.port);
	free(x.ends);
	free(x.lid);
	free(x.waits);
	return lost;
}

/* Some hosts at any switches, and sometimes switches with hosts that hang on them. */
static void extras(const struct plan *p, struct util_rand *r, FILE *f)
{
	const struct fabric_pgft *g = &p->t.pgft;
	uint32_t n = util_rand_below(r, 9), used[64] = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t sw = g->first[1] + util_rand_below(r, fabric_nodes(g) - g->first[1]);
		uint32_t ports = fabric_tree_ports(&p->t, sw);
		uint32_t port = ports + 1 + used[sw - g->first[1]]++;

		if (!fabric_tree_has_node(&p->t, sw))
			continue;
		if (util_rand_below(r, 4)) {
			fprintf(f, "Ca 1 \"H-f%x0\" # \"more%u\"\n[1](f%x1) \"S-%016x\"[%u]\n", i,
				i, i, 0x1000 + sw * 16, port);
			continue;
		}
		fprintf(f, "Switch 9 \"S-e%x0\" # \"edge%u\"\n[1] \"S-%016x\"[%u]\n", i, i,
			0x1000 + sw * 16, port);
		/* And to a leaf, sometimes to two. */
		if (util_rand_below(r, 2)) {
			sw = g->first[1] + util_rand_below(r, g->nodes[1]);
			fprintf(f, "[9] \"S-%016x\"[%u]\n", 0x1000 + sw * 16,
				fabric_tree_ports(&p->t, sw) + 1 + used[sw - g->first[1]]++);
		}
		for (uint32_t k = 0; k < util_rand_below(r, 3); k++)
			fprintf(f, "Ca 1 \"H-d%x%x0\" # \"at%u.%u\"\n[1](d%x%x1) \"S-e%x0\"[%u]\n",
				i, k, i, k, i, k, i, k + 2);
	}
}

static void test_random(void **state)
{
	static const char *const texts[] = {"2;4,4;1,2;1,2", "2;3,5;1,3;1,1", "3;3,3,2;1,2,3;1,2,1",
					    "3;2,2,4;1,2,2;1,1,1", "2;12,12;1,6;1,2"};
	uint32_t cases = 0, whole = 0, refused = 0, lossy = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 80; seed++)
		for (size_t i = 0; i < COUNT(texts); i++) {
			struct plan p = plan(texts[i], (struct scramble){0});
			struct fabric_routing rule = {.kind = seed % 5 ? FABRIC_DMODK
								       : FABRIC_RANDOM,
						      .seed = seed,
						      .lmc = seed % 7 == 0};
			uint32_t hosts = p.t.pgft.cables[1], lost;
			struct fabric_defects d = {0};
			struct fabric_net *net;
			struct fabric_tree t;
			struct util_rand r;
			char why[256], *text;
			size_t size;
			FILE *f = open_memstream(&text, &size);

			util_rand_seed(&r, seed);
			p.spare = 9;
			for (uint64_t k = 0; k < seed % 4; k++)
				fabric_tree_cut(
					&p.t, hosts + util_rand_below(&r, fabric_cables(&p.t.pgft) -
										  hosts));
			extras(&p, &r, f);
			fclose(f);
			p.extra = text;
			net = net_of(&p);
			cases++;
			if (fabric_shape(&t, net, &d, why, sizeof(why))) {
				refused++;
				fabric_net_free(net);
				free(net);
			} else {
				lost = check_tables(&t, &rule);
				lossy += lost > 0;
				whole += fabric_tree_whole(&t);
				fabric_tree_free(&t);
			}
			fabric_defects_free(&d);
			free_plan(&p);
			free(text);
		}
	print_message(
		"%u networks, %u with a whole tree, %u refused, %u with pairs without a way\n",
		cases, whole, refused, lossy);
	assert_true(whole >= 30 && refused < cases / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
