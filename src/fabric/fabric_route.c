#include "fabric_route.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabric_text.h"
#include "util_rand.h"

/* ---- the name of a routing ---- */

static int parse_lmc(struct fabric_routing *r, const char *text, char *why, size_t why_size)
{
	uint64_t k;
	int ret = fabric_decimal(text, &k);

	if (ret == -EINVAL)
		return fabric_refuse(why, why_size,
				     "%s is no LMC; expected a number from 0 to %d, such as lmc:2",
				     fabric_quote(text).text, FABRIC_LMC_MAX);
	if (ret || k > FABRIC_LMC_MAX)
		return fabric_refuse(why, why_size,
				     "LMC %s is too large; a host has 2^LMC addresses, and the "
				     "most is lmc:%d",
				     fabric_quote(text).text, FABRIC_LMC_MAX);
	*r = (struct fabric_routing){.kind = FABRIC_DMODK, .lmc = (uint32_t)k};
	return 0;
}

static int parse_random(struct fabric_routing *r, const char *text, char *why, size_t why_size)
{
	uint64_t seed;
	int ret = fabric_seed("random", text, &seed, why, why_size);

	if (!ret)
		*r = (struct fabric_routing){.kind = FABRIC_RANDOM, .seed = seed};
	return ret;
}

int fabric_routing_parse(struct fabric_routing *r, const char *text, char *why, size_t why_size)
{
	if (!strcmp(text, "dmodk")) {
		*r = (struct fabric_routing){.kind = FABRIC_DMODK};
		return 0;
	}
	if (!strcmp(text, "ecmp")) {
		*r = (struct fabric_routing){.kind = FABRIC_ECMP};
		return 0;
	}
	if (!strcmp(text, "random") || !strcmp(text, "lmc"))
		return fabric_refuse(why, why_size, "%s needs a number, such as %s:1", text, text);
	if (!strncmp(text, "random:", 7))
		return parse_random(r, text + 7, why, why_size);
	if (!strncmp(text, "lmc:", 4))
		return parse_lmc(r, text + 4, why, why_size);
	return fabric_refuse(why, why_size,
			     "%s is no routing; known are dmodk, ecmp, random:SEED and lmc:K",
			     fabric_quote(text).text);
}

void fabric_routing_print(const struct fabric_routing *r, char text[FABRIC_ROUTING_NAME_MAX])
{
	if (r->kind == FABRIC_ECMP)
		snprintf(text, FABRIC_ROUTING_NAME_MAX, "ecmp");
	else if (r->kind == FABRIC_RANDOM)
		snprintf(text, FABRIC_ROUTING_NAME_MAX, "random:%" PRIu64, r->seed);
	else if (r->lmc)
		snprintf(text, FABRIC_ROUTING_NAME_MAX, "lmc:%u", r->lmc);
	else
		snprintf(text, FABRIC_ROUTING_NAME_MAX, "dmodk");
}

/* ---- the choice ---- */

/* Equation (1), turned by the address: the up-going port of every node of level l.
 *
 * The turn is the same for all destinations. So those that share a switch still are an
 * arithmetic sequence of step W_l, which is all that the proofs of theorems 1 and 2 use. */
static uint32_t climb(const struct fabric_pgft *t, uint32_t l, uint32_t host, uint32_t address)
{
	for (uint32_t below = 0; below < l; below++)
		address /= fabric_up_ports(t, below);
	return (host / t->W[l] + address % fabric_up_ports(t, l)) % fabric_up_ports(t, l);
}

static uint64_t random_entry(const struct fabric_pgft *t, const struct fabric_routing *r,
			     struct fabric_node n, uint32_t host, uint32_t address)
{
	uint64_t row = (uint64_t)fabric_number(t, n) * fabric_hosts(t) + host;
	uint64_t entry = (row << r->lmc) + address;
	struct util_rand rand;

	util_rand_seed(&rand, r->seed);
	util_rand_skip(&rand, entry);
	return util_rand_next(&rand);
}

static uint32_t choose(const struct fabric_pgft *t, const struct fabric_routing *r,
		       struct fabric_node n, const struct fabric_ports *ports, uint32_t host,
		       uint32_t address)
{
	if (r->kind == FABRIC_RANDOM)
		return (uint32_t)(random_entry(t, r, n, host, address) % ports->count);
	if (ports->up)
		return climb(t, n.level, host, address);
	/* The cable that a flow from here below would come up by: each down-going port then
	 * has one destination at most. */
	return climb(t, n.level - 1, host, address) / t->w[n.level];
}

struct fabric_ports fabric_route(const struct fabric_pgft *t, const struct fabric_routing *r,
				 struct fabric_node n, uint32_t host, uint32_t address)
{
	struct fabric_ports ports = {.up = !fabric_is_below(t, n, host)};

	if (ports.up) {
		ports.stride = 1;
		ports.count = fabric_up_ports(t, n.level);
	} else if (n.level > 0) {
		ports.first = host / t->M[n.level - 1] % t->m[n.level];
		ports.stride = t->m[n.level];
		ports.count = t->p[n.level];
	}
	if (ports.count == 0 || r->kind == FABRIC_ECMP)
		return ports;
	ports.first += ports.stride * choose(t, r, n, &ports, host, address);
	ports.count = 1;
	return ports;
}
