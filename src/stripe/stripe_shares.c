/* Policies that divide a message once, at its beginning: weights in, shares out. */
#include "stripe_in.h"

#include <string.h>

/* ---- weights ---- */

/* Equation 1. */
static void even_init(const struct stripe_conf *c, struct stripe_peer *p)
{
	for (uint32_t i = 0; i < c->paths; i++)
		p->weight[i] = 1.0 / c->paths;
}

static void weighted_init(const struct stripe_conf *c, struct stripe_peer *p)
{
	memcpy(p->weight, c->fixed, c->paths * sizeof(p->weight[0]));
}

/* ---- dividing ---- */

/* Of the bytes, those up to the part of the whole. Rounded sums rather than rounded shares: the
 * last ends where the message does. */
static uint64_t up_to(uint64_t bytes, double part)
{
	double b = (double)bytes * part;

	return b < (double)bytes ? (uint64_t)b : bytes;
}

/* Among the heaviest of the batch, by weight. */
static void divide(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m)
{
	uint32_t path[STRIPE_PATHS_MAX], n = stripe_sort(c, p, path);
	double total = 0, sum = 0;
	uint64_t done = 0;

	n = n < c->batch ? n : c->batch;
	for (uint32_t i = 0; i < n; i++)
		total += p->weight[path[i]];
	for (uint32_t i = 0; i < n; i++) {
		uint64_t end;

		sum += p->weight[path[i]];
		end = i + 1 < n ? up_to(m->bytes, sum / total) : m->bytes;
		if (end <= done)
			continue;
		m->order[m->paths++] = path[i];
		m->share[path[i]] = end - done;
		m->by[path[i]] = p->weight[path[i]];
		done = end;
	}
}

static void whole(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m)
{
	uint32_t path = p->turn;

	while (!stripe_usable(c, p, path))
		path = (path + 1) % c->paths;
	p->turn = (path + 1) % c->paths;
	m->order[m->paths++] = path;
	m->share[path] = m->bytes;
}

/* For what has to leave its path: the least busy one, the heaviest of these. */
static uint32_t another(const struct stripe_conf *c, const struct stripe_peer *p,
			const struct stripe_msg *m)
{
	uint32_t path[STRIPE_PATHS_MAX], n = stripe_sort(c, p, path), best = path[0];

	for (uint32_t i = 1; i < n; i++)
		if (m->flying[path[i]] < m->flying[best])
			best = path[i];
	return best;
}

static bool shares_next(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
			struct stripe_piece *piece)
{
	if (m->n_lost) {
		m->torn = true;
		piece->path = another(c, p, m);
		return true;
	}
	for (uint32_t i = 0; i < m->paths; i++) {
		uint32_t path = m->order[i];

		if (!m->share[path])
			continue;
		piece->bytes = m->share[path];
		m->share[path] = 0;
		if (!stripe_usable(c, p, path)) {
			m->torn = true;
			path = another(c, p, m);
		}
		piece->path = path;
		return true;
	}
	return false;
}

/* ---- learning ---- */

static void shares_done(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
			const struct stripe_piece *piece, uint64_t began, uint64_t now)
{
	(void)c;
	(void)p;
	m->time[piece->path] = now > began ? now - began : 1;
	if (m->found == 1)
		m->late = m->were_out == m->paths;
}

static void keep(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		 uint64_t now)
{
	(void)c;
	(void)p;
	(void)m;
	(void)now;
}

static void keep_path(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path)
{
	(void)c;
	(void)p;
	(void)path;
}

/* Equation 3. The sums are over those that the message was divided among. If another message
 * has changed the weights since, the rates are still those of the weights that it was divided by. */
static void learn(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		  uint64_t now)
{
	double batch = 0, rates = 0, rate[STRIPE_PATHS_MAX];

	(void)now;
	/* A path that has taken over another's stripe looks slow, and is not. And times that all
	 * end when somebody at last looked are not those of the paths. */
	if (m->torn || (m->late && m->found >= m->paths))
		return;
	for (uint32_t i = 0; i < m->paths; i++) {
		uint32_t path = m->order[i];

		rate[i] = m->by[path] / (double)m->time[path];
		batch += p->weight[path];
		rates += rate[i];
	}
	for (uint32_t i = 0; i < m->paths && rates > 0; i++) {
		double *w = &p->weight[m->order[i]];

		*w = (1 - c->alpha) * *w + c->alpha * batch * rate[i] / rates;
	}
}

/* ---- tables ---- */

#define SHARES(NAME, INIT, BEGIN, END)                                                             \
	const struct stripe_policy stripe_##NAME = {                                               \
		#NAME, INIT, BEGIN, shares_next, shares_done, END, keep_path}

SHARES(single, even_init, divide, keep);
SHARES(original, even_init, divide, keep);
SHARES(even, even_init, divide, keep);
SHARES(roundrobin, even_init, whole, keep);
SHARES(weighted, weighted_init, divide, keep);
SHARES(hsam, even_init, divide, learn);
SHARES(bss, even_init, divide, learn);
