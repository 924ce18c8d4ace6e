#include "fabric_hsd_in.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric_routes_in.h"

/* The up-going port of level l towards a host, asked at a node that does not have it below. */
static uint32_t climb_port(const struct fabric_routes *r, uint32_t l, uint32_t to, uint32_t address)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t other = to / t->M[l] == 0;
	struct fabric_node n = {l, other * t->W[l]};

	return fabric_route(t, &r->rule, n, to, address).first;
}

static void sums_of(const struct fabric_hsd_job *job, uint32_t host, uint32_t *of)
{
	const struct fabric_routes *r = job->routes;
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t to = fabric_key(r, host), b = 0, q;

	for (uint32_t l = 0; l < t->h; l++) {
		uint32_t ports = fabric_up_ports(t, l);

		of[l] = 2 * t->W[l] * ports * (host / t->M[l]);
		/* Where all hosts are below, nothing climbs. */
		q = t->M[l] < fabric_hosts(t) ? climb_port(r, l, to, job->address) : 0;
		of[t->h + l] = 2 * (t->first_cable[l + 1] + b * ports + q);
		b += t->W[l] * (q % t->w[l + 1]);
	}
}

int fabric_sums_make(struct fabric_sums *s, const struct fabric_hsd_job *job)
{
	*s = (struct fabric_sums){.h = job->routes->tree->pgft.h};
	s->of = malloc((size_t)job->cps->n * 2 * s->h * sizeof(*s->of));
	if (!s->of)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->cps->n; i++)
		sums_of(job, job->hosts[i], s->of + (size_t)i * 2 * s->h);
	return 0;
}

/* For h known to the compiler, the loop over levels is unrolled. */
static inline __attribute__((always_inline)) void count(const uint32_t *sums, uint32_t h,
							const struct fabric_flow *flows, uint32_t n,
							uint32_t *degree)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *from = sums + (size_t)flows[i].from * 2 * h;
		const uint32_t *to = sums + (size_t)flows[i].to * 2 * h;

		for (uint32_t l = 0; l < h && from[l] != to[l]; l++) {
			degree[to[h + l] + from[l]]++;
			degree[to[h + l] + to[l] + 1]++;
		}
	}
}

void fabric_sums_count(const struct fabric_sums *s, const struct fabric_flow *flows, uint32_t n,
		       uint32_t *degree)
{
	if (s->h == 2)
		count(s->of, 2, flows, n, degree);
	else if (s->h == 3)
		count(s->of, 3, flows, n, degree);
	else
		count(s->of, s->h, flows, n, degree);
}

int fabric_sums_way(const struct fabric_sums *s, struct fabric_flow flow,
		    uint32_t links[FABRIC_HOPS_MAX])
{
	const uint32_t *from = s->of + (size_t)flow.from * 2 * s->h;
	const uint32_t *to = s->of + (size_t)flow.to * 2 * s->h;
	int n = 0;

	for (uint32_t l = 0; l < s->h && from[l] != to[l]; l++) {
		links[n++] = to[s->h + l] + from[l];
		links[n++] = to[s->h + l] + to[l] + 1;
	}
	return n;
}
