#include "flow.h"

#include <stdlib.h>
#include <string.h>

void flow_init(struct flow *f, const struct stripe_conf *c, uint32_t hosts, bool ecmp,
	       uint64_t seed)
{
	*f = (struct flow){.conf = *c, .hosts = hosts};
	f->peer = calloc(FLOW_HOSTS, sizeof(*f->peer));
	f->spine = calloc(FLOW_HOSTS, sizeof(*f->spine));
	util_rand_seed(&f->rand, seed);
	for (uint32_t i = 0; i < FLOW_LINKS; i++)
		f->cap[i] = 1;
	for (uint32_t a = 0; a < hosts; a++)
		for (uint32_t b = 0; b < hosts; b++) {
			uint64_t first = util_rand_below(&f->rand, FLOW_LEAF);

			stripe_peer_init(c, &f->peer[a][b], util_rand_next(&f->rand));
			for (uint32_t k = 0; k < STRIPE_PATHS_MAX; k++)
				f->spine[a][b][k] =
					(ecmp ? util_rand_next(&f->rand) : first + k) % FLOW_LEAF;
		}
}

void flow_free(struct flow *f)
{
	free(f->peer);
	free(f->spine);
}

uint32_t flow_link(const struct flow *f, bool up, uint32_t leaf, uint32_t spine)
{
	return 2 * f->hosts + (up ? 0 : f->hosts) + leaf * FLOW_LEAF + spine;
}

/* Of a path, into link[]; how many there are. */
static uint32_t links_of(const struct flow *f, uint32_t host, uint32_t path, uint32_t link[4])
{
	uint32_t to = f->host[host].to, spine = f->spine[host][to][path], n = 0;

	link[n++] = host;
	if (host / FLOW_LEAF != to / FLOW_LEAF) {
		link[n++] = flow_link(f, true, host / FLOW_LEAF, spine);
		link[n++] = flow_link(f, false, to / FLOW_LEAF, spine);
	}
	link[n++] = f->hosts + to;
	return n;
}

/* ---- max-min fair rates ---- */

struct fill {
	uint32_t link[4], links;
	double *rate;
};

static void fill(struct fill *flow, uint32_t flows, double *room)
{
	uint32_t n[FLOW_LINKS] = {0}, open = flows;

	for (uint32_t i = 0; i < flows; i++)
		for (uint32_t k = 0; k < flow[i].links; k++)
			n[flow[i].link[k]]++;
	while (open) {
		uint32_t at = FLOW_LINKS;

		for (uint32_t l = 0; l < FLOW_LINKS; l++)
			if (n[l] && (at == FLOW_LINKS || room[l] / n[l] < room[at] / n[at]))
				at = l;
		double rate = room[at] / n[at];

		for (uint32_t i = 0; i < open;) {
			bool here = false;

			for (uint32_t k = 0; k < flow[i].links; k++)
				here |= flow[i].link[k] == at;
			if (!here) {
				i++;
				continue;
			}
			*flow[i].rate = rate;
			for (uint32_t k = 0; k < flow[i].links; k++) {
				n[flow[i].link[k]]--;
				room[flow[i].link[k]] -= rate;
			}
			flow[i] = flow[--open];
		}
	}
}

static void rates(struct flow *f, double now)
{
	struct fill flow[FLOW_HOSTS * STRIPE_PATHS_MAX];
	double room[FLOW_LINKS];
	uint32_t n = 0;

	memcpy(room, f->cap, sizeof(room));
	for (uint32_t h = 0; h < f->hosts; h++)
		for (uint32_t k = 0; k < f->conf.paths && f->host[h].busy; k++) {
			struct flow_host *host = &f->host[h];

			host->rate[k] = 0;
			if (!host->posts[k] || host->post[k][0].began > now)
				continue;
			flow[n].rate = &host->rate[k];
			flow[n].links = links_of(f, h, k, flow[n].link);
			n++;
		}
	fill(flow, n, room);
}

/* ---- messages ---- */

static void post(struct flow *f, uint32_t h, double now)
{
	struct flow_host *host = &f->host[h];
	struct stripe_peer *peer = &f->peer[h][host->to];
	struct stripe_piece piece;

	while (stripe_next(&f->conf, peer, &host->msg, &piece)) {
		uint32_t k = piece.path;

		host->cpu = (host->cpu > now ? host->cpu : now) + FLOW_CPU;
		if (!host->posts[k])
			host->left[k] = (double)piece.bytes;
		host->post[k][host->posts[k]++] = (struct flow_post){piece, host->cpu};
	}
}

static void arrived(struct flow *f, uint32_t h, uint32_t k, double now)
{
	struct flow_host *host = &f->host[h];
	struct flow_post done = host->post[k][0];
	double late = f->noise * (double)(util_rand_next(&f->rand) >> 11) / 9007199254740992.0;

	memmove(&host->post[k][0], &host->post[k][1], --host->posts[k] * sizeof(done));
	host->left[k] = host->posts[k] ? (double)host->post[k][0].piece.bytes : 0;
	host->busy = !stripe_done(&f->conf, &f->peer[h][host->to], &host->msg, &done.piece,
				  (uint64_t)done.began, (uint64_t)(now + late * FLOW_BYTES));
	host->took = now;
	if (!host->busy && host->more) {
		host->more--;
		host->busy = true;
		stripe_begin(&f->conf, &f->peer[h][host->to], &host->msg, (uint64_t)FLOW_BYTES,
			     (uint64_t)now);
	}
	if (host->busy)
		post(f, h, now);
}

/* Until something is posted or arrives. */
static double step(const struct flow *f, double now)
{
	double least = 1e300;

	for (uint32_t h = 0; h < f->hosts; h++)
		for (uint32_t k = 0; k < f->conf.paths && f->host[h].busy; k++) {
			const struct flow_host *host = &f->host[h];
			double t;

			if (!host->posts[k])
				continue;
			t = host->post[k][0].began > now ? host->post[k][0].began - now
							 : host->left[k] / host->rate[k];
			least = t < least ? t : least;
		}
	return least;
}

double flow_round(struct flow *f, const uint32_t *to, uint32_t messages)
{
	double now = 0;
	uint32_t busy = f->hosts;

	for (uint32_t h = 0; h < f->hosts; h++) {
		struct flow_host *host = &f->host[h];

		host->to = to[h];
		host->busy = true;
		host->cpu = 0;
		stripe_begin(&f->conf, &f->peer[h][to[h]], &host->msg, (uint64_t)FLOW_BYTES, 0);
		post(f, h, 0);
		host->more = messages - 1;
	}
	while (busy) {
		double dt;

		rates(f, now);
		dt = step(f, now);
		for (uint32_t h = busy = 0; h < f->hosts; h++) {
			struct flow_host *host = &f->host[h];

			for (uint32_t k = 0; k < f->conf.paths && host->busy; k++) {
				if (!host->posts[k] || host->post[k][0].began > now)
					continue;
				host->left[k] -= dt * host->rate[k];
				if (host->left[k] < 1e-3)
					arrived(f, h, k, now + dt);
			}
			busy += host->busy;
		}
		now += dt;
	}
	return now / messages;
}
