/* Reads what `weft lab show --json` says of a lab and checks its routes against the closed
 * forms, which are written down here once more, from the papers and not from src/fabric.
 *
 *	check_routes < lab.json             all routes, all pairs; exits with 1 at what is wrong
 *	check_routes --path A B < lab.json  the addresses that a packet from A to B passes
 *
 * Every packet's way is walked: from each host to each address, over the routes that the
 * kernels have and the cables that the lab says it has. It goes up, then down, and arrives.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 8

static uint32_t h, m[LEVELS + 2], w[LEVELS + 2], p[LEVELS + 2], hosts, lmc;
static uint64_t seed;
static enum { DMODK, ECMP, RANDOM } kind;

static struct node {
	char name[32];
	uint32_t level, index;
	struct in_addr address;
	/* Where each port leads: node and its port there. */
	struct port {
		char name[16];
		struct node *peer;
		bool up;
	} * port;
	uint32_t ports;
	/* Routes by destination: 32 bits, then the whole lab. */
	struct route {
		uint32_t dst, mask;
		json_t *via; /* array of port names */
	} * route;
	uint32_t routes;
} * node;
static uint32_t nodes;
static uint32_t *address_of; /* host j, number a: [j << lmc | a], host byte order */

static void __attribute__((noreturn, format(printf, 1, 2))) bad(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("check_routes: ");
	vprintf(fmt, ap);
	printf("\n");
	exit(1);
}

/* ---- reading ---- */

static uint32_t product(const uint32_t *of, uint32_t from, uint32_t to)
{
	uint32_t x = 1;

	for (uint32_t i = from; i <= to; i++)
		x *= of[i];
	return x;
}

static void read_tuple(const char *text)
{
	uint32_t *row[] = {m, w, p};
	char *at;

	h = (uint32_t)strtoul(text, &at, 10);
	for (int r = 0; r < 3; r++)
		for (uint32_t l = 1; l <= h; l++)
			row[r][l] = (uint32_t)strtoul(at + 1, &at, 10);
	if (*at || h < 1 || h > LEVELS)
		bad("tuple '%s'", text);
	hosts = product(m, 1, h);
}

static void read_routing(const char *text)
{
	if (!strcmp(text, "dmodk")) {
		kind = DMODK;
	} else if (!strcmp(text, "ecmp")) {
		kind = ECMP;
	} else if (sscanf(text, "random:%" SCNu64, &seed) == 1) {
		kind = RANDOM;
	} else if (sscanf(text, "lmc:%" SCNu32, &lmc) != 1) {
		bad("routing '%s'", text);
	}
}

static struct node *find(const char *name)
{
	for (uint32_t i = 0; i < nodes; i++)
		if (!strcmp(node[i].name, name))
			return &node[i];
	bad("no node '%s'", name);
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text)
		bad("no text '%s'", key);
	return text;
}

static struct in_addr parse_address(const char *text)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, text, &addr) != 1)
		bad("address '%s'", text);
	return addr;
}

static void read_nodes(json_t *lab)
{
	json_t *list = json_object_get(lab, "hosts"), *one, *addresses;
	uint32_t switches = (uint32_t)json_array_size(json_object_get(lab, "switches"));
	size_t i, a;

	if (json_array_size(list) != hosts)
		bad("%zu hosts, expected %u", json_array_size(list), hosts);
	node = calloc(hosts + switches, sizeof(*node));
	address_of = calloc((size_t)hosts << lmc, sizeof(*address_of));
	json_array_foreach (list, i, one) {
		struct node *n = &node[nodes++];

		snprintf(n->name, sizeof(n->name), "h%zu", i);
		if (strcmp(n->name, text_of(one, "name")) != 0)
			bad("host %zu is '%s'", i, text_of(one, "name"));
		n->index = (uint32_t)i;
		addresses = json_object_get(one, "addresses");
		if (json_array_size(addresses) != 1u << lmc)
			bad("%s has %zu addresses", n->name, json_array_size(addresses));
		n->address = parse_address(json_string_value(json_array_get(addresses, 0)));
		for (a = 0; a < 1u << lmc; a++)
			address_of[i << lmc | a] =
				ntohl(parse_address(json_string_value(json_array_get(addresses, a)))
					      .s_addr);
	}
	json_array_foreach (json_object_get(lab, "switches"), i, one) {
		struct node *n = &node[nodes++];

		snprintf(n->name, sizeof(n->name), "%s", text_of(one, "name"));
		if (sscanf(n->name, "s%" SCNu32 ".%" SCNu32, &n->level, &n->index) != 2)
			bad("switch '%s'", n->name);
		n->address = parse_address(text_of(one, "address"));
	}
	for (uint32_t l = 0; l <= h; l++) {
		uint32_t expected = product(m, l + 1, h) * product(w, 1, l), there = 0;

		for (uint32_t k = 0; k < nodes; k++)
			there += node[k].level == l;
		if (there != expected)
			bad("%u nodes at level %u, expected %u", there, l, expected);
	}
}

static void add_port(struct node *n, const char *name, struct node *peer, bool up)
{
	n->port = realloc(n->port, (n->ports + 1) * sizeof(*n->port));
	snprintf(n->port[n->ports].name, sizeof(n->port->name), "%s", name);
	n->port[n->ports].peer = peer;
	n->port[n->ports++].up = up;
}

/* Digit i of a node, 1 … h: a_i where i is above its level, b_i otherwise. */
static uint32_t digit(const struct node *n, uint32_t i)
{
	uint32_t b = n->index % product(w, 1, n->level), a = n->index / product(w, 1, n->level);

	return i > n->level ? a / product(m, n->level + 1, i - 1) % m[i]
			    : b / product(w, 1, i - 1) % w[i];
}

/* Section IV.B: ports (l, a…, q) and (l+1, b…, r) are connected if and only if all digits but
 * number l+1 are the same, and q = b_l+1 + k w_l+1, r = a_l+1 + k m_l+1. */
static void check_cable(const struct node *lower, const char *q_name, const struct node *upper,
			const char *r_name)
{
	uint32_t l = lower->level, q, r;

	if (upper->level != l + 1)
		bad("%s and %s are joined", lower->name, upper->name);
	if (sscanf(q_name, l ? "u%" SCNu32 : "eth%" SCNu32, &q) != 1 ||
	    sscanf(r_name, "d%" SCNu32, &r) != 1)
		bad("ports '%s' and '%s'", q_name, r_name);
	for (uint32_t i = 1; i <= h; i++)
		if (i != l + 1 && digit(lower, i) != digit(upper, i))
			bad("%s and %s differ in digit %u", lower->name, upper->name, i);
	if (q % w[l + 1] != digit(upper, l + 1) || r % m[l + 1] != digit(lower, l + 1) ||
	    q / w[l + 1] != r / m[l + 1] || q / w[l + 1] >= p[l + 1])
		bad("%s %s is joined to %s %s", lower->name, q_name, upper->name, r_name);
}

static void read_cables(json_t *lab)
{
	json_t *one, *lower, *upper;
	uint32_t expected = 0;
	size_t i;

	json_array_foreach (json_object_get(lab, "links"), i, one) {
		struct node *a, *b;

		lower = json_object_get(one, "lower");
		upper = json_object_get(one, "upper");
		a = find(text_of(lower, "node"));
		b = find(text_of(upper, "node"));
		check_cable(a, text_of(lower, "port"), b, text_of(upper, "port"));
		add_port(a, text_of(lower, "port"), b, true);
		add_port(b, text_of(upper, "port"), a, false);
	}
	for (uint32_t k = 0; k < nodes; k++) {
		uint32_t l = node[k].level;
		uint32_t ports = (l < h ? w[l + 1] * p[l + 1] : 0) + (l ? m[l] * p[l] : 0);

		if (node[k].ports != ports)
			bad("%s has %u ports, expected %u", node[k].name, node[k].ports, ports);
		expected += l < h ? w[l + 1] * p[l + 1] : 0;
	}
	if (i != expected)
		bad("%zu cables, expected %u", i, expected);
}

static void read_routes(json_t *lab)
{
	json_t *one;
	size_t i;

	json_array_foreach (json_object_get(lab, "routes"), i, one) {
		struct node *n = find(text_of(one, "node"));
		char dst[64], *slash;
		struct route r = {.mask = ~0u, .via = json_object_get(one, "ports")};

		snprintf(dst, sizeof(dst), "%s", text_of(one, "destination"));
		slash = strchr(dst, '/');
		if (slash) {
			*slash = '\0';
			r.mask = ~0u << (32 - atoi(slash + 1));
		}
		r.dst = ntohl(parse_address(dst).s_addr);
		n->route = realloc(n->route, (n->routes + 1) * sizeof(r));
		n->route[n->routes++] = r;
	}
}

/* ---- the closed forms ---- */

static uint64_t splitmix(uint64_t state)
{
	uint64_t z = state;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* The numbered output of the generator that began with the seed. */
static uint64_t chance(const struct node *n, uint32_t j, uint32_t a)
{
	uint64_t number = (uint64_t)(n - node) * hosts + j;

	return splitmix(seed + (((number << lmc) + a) + 1) * 0x9E3779B97F4A7C15u);
}

/* Equation (1), turned by the digit of a that belongs to the level. */
static uint32_t climb(uint32_t l, uint32_t j, uint32_t a)
{
	uint32_t ports = w[l + 1] * p[l + 1], ways = product(w, 1, l) * product(p, 1, l);

	return (j / product(w, 1, l) + a / ways) % ports;
}

static bool is_below(const struct node *n, uint32_t j)
{
	return n->index / product(w, 1, n->level) == j / product(m, 1, n->level);
}

/* Is this port of n what the routing gives for address a of host j? */
static bool is_right(const struct node *n, const char *port, uint32_t j, uint32_t a)
{
	uint32_t l = n->level, got, k;

	if (!is_below(n, j)) {
		uint32_t ports = w[l + 1] * p[l + 1];

		if (sscanf(port, l ? "u%" SCNu32 : "eth%" SCNu32, &got) != 1)
			return false;
		if (kind == ECMP)
			return got < ports;
		return got == (kind == RANDOM ? chance(n, j, a) % ports : climb(l, j, a));
	}
	if (sscanf(port, "d%" SCNu32, &got) != 1)
		return false;
	/* Down to the child that holds j, by the cable that a climbing flow would use. */
	if (got % m[l] != j / product(m, 1, l - 1) % m[l])
		return false;
	k = got / m[l];
	if (kind == ECMP)
		return k < p[l];
	return k == (kind == RANDOM ? chance(n, j, a) % p[l] : climb(l - 1, j, a) / w[l]);
}

static size_t expected_ports(const struct node *n, uint32_t j)
{
	uint32_t l = n->level;

	if (kind != ECMP)
		return 1;
	return is_below(n, j) ? p[l] : w[l + 1] * p[l + 1];
}

/* ---- walking ---- */

static const struct route *look_up(const struct node *n, uint32_t dst)
{
	const struct route *best = NULL;

	for (uint32_t i = 0; i < n->routes; i++)
		if ((dst & n->route[i].mask) == n->route[i].dst &&
		    (!best || n->route[i].mask > best->mask))
			best = &n->route[i];
	return best;
}

static const struct port *port_of(const struct node *n, const char *name)
{
	for (uint32_t i = 0; i < n->ports; i++)
		if (!strcmp(n->port[i].name, name))
			return &n->port[i];
	bad("%s has no port '%s'", n->name, name);
}

static unsigned long hops;

/* Over all ports that may be taken. */
static void walk(const struct node *n, uint32_t j, uint32_t a, bool climbing, bool print)
{
	const struct route *r;
	const char *name;
	json_t *one;
	size_t i;

	if (n == &node[j])
		return;
	r = look_up(n, address_of[j << lmc | a]);
	if (!r)
		bad("%s has no route to address %u of h%u", n->name, a, j);
	if (json_array_size(r->via) != expected_ports(n, j))
		bad("%s has %zu ports for h%u, expected %zu", n->name, json_array_size(r->via), j,
		    expected_ports(n, j));
	json_array_foreach (r->via, i, one) {
		const struct port *port;

		name = json_string_value(one);
		if (!is_right(n, name, j, a))
			bad("%s sends to address %u of h%u by %s", n->name, a, j, name);
		port = port_of(n, name);
		if (port->up && !climbing)
			bad("up again at %s on the way to h%u", n->name, j);
		hops++;
		if (print) {
			struct in_addr addr = port->peer->address;

			puts(inet_ntoa(addr));
		}
		walk(port->peer, j, a, port->up, print);
	}
}

int main(int argc, char **argv)
{
	json_error_t error;
	json_t *lab = json_loadf(stdin, 0, &error);

	if (!lab)
		bad("no JSON: %s", error.text);
	read_tuple(text_of(lab, "pgft"));
	read_routing(text_of(lab, "routing"));
	read_nodes(lab);
	read_cables(lab);
	read_routes(lab);
	if (argc == 4 && !strcmp(argv[1], "--path")) {
		walk(find(argv[2]), find(argv[3])->index, 0, true, true);
		json_decref(lab);
		return 0;
	}
	for (uint32_t from = 0; from < hosts; from++)
		for (uint32_t to = 0; to < hosts; to++)
			for (uint32_t a = 0; a < 1u << lmc; a++)
				walk(&node[from], to, a, true, false);
	printf("%u hosts, %u nodes: %lu steps of all ways are right\n", hosts, nodes, hops);
	json_decref(lab);
	return 0;
}
