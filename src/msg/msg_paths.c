/* The paths to peers, see msg_stripe.h. */
#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "util_rand.h"
#include "msg_ep.h"

void msg_paths_free(struct msg_ep *ep, struct msg_paths *paths)
{
	if (paths && ep->port->ways_free)
		ep->port->ways_free(paths);
	free(paths);
}

/* Short messages take the first path that is up. */
static int plan_whole(struct msg_paths *paths, uint64_t seed)
{
	char why[128];
	int err = stripe_parse(&paths->whole.conf, "single", why, sizeof(why));

	paths->whole.conf.paths = paths->conf.paths;
	if (!err)
		stripe_peer_init(&paths->whole.conf, &paths->whole.state, seed);
	return err;
}

static void make_plans(struct msg_ep *ep, struct msg_paths *paths, uint64_t seed)
{
	/* Of paths that may share links, some are enough; none of those that do not is left out. */
	if (ep->conf.stripe_auto && msg_paths_distinct(paths))
		paths->conf.batch = paths->conf.paths;
	stripe_peer_init(&paths->conf, &paths->state, seed);
	for (uint32_t i = 0; i < paths->conf.paths && ep->port->way_up; i++)
		if (!ep->port->way_up(paths->way[i]))
			paths->state.down[i] = paths->whole.state.down[i] = true;
}

/* 0; -EAGAIN: not yet; or one path has to do. */
static int make_paths(struct msg_ep *ep, uint32_t peer, struct msg_paths **out)
{
	struct msg_paths *paths = calloc(1, sizeof(*paths));
	uint64_t seed;
	int err = paths ? util_random_key(&seed, sizeof(seed)) : -ENOMEM;

	if (!err) {
		paths->conf = ep->conf.stripe;
		err = ep->port->ways(ep, peer, paths);
	}
	if (!err)
		err = plan_whole(paths, seed);
	if (err) {
		msg_paths_free(ep, paths);
		return err;
	}
	make_plans(ep, paths, seed);
	msg_use_open(ep, peer, paths);
	*out = paths;
	return 0;
}

static void end_old(struct msg_ep *ep, struct msg_paths *paths)
{
	if (paths->use.shown != UINT32_MAX)
		msg_live_drop(ep->live, paths->use.shown);
	msg_paths_free(ep, paths);
}

/* Messages that are under way keep those that they have. */
static void retire(struct msg_ep *ep, struct msg_paths *paths)
{
	paths->old = true;
	if (!paths->users)
		end_old(ep, paths);
}

void msg_paths_leave(struct msg_ep *ep, struct msg_paths *paths)
{
	if (!--paths->users && paths->old)
		end_old(ep, paths);
}

/* Connections are never replaced: each comes up again by itself. */
int msg_paths_now(struct msg_ep *ep, uint32_t peer)
{
	bool news = ep->port->ways_news && ep->port->ways_news(ep, peer);
	struct msg_peer *p = &ep->peers[peer];
	struct msg_paths *paths;
	int err;

	if (p->paths && !news)
		return 0;
	err = make_paths(ep, peer, &paths);
	if (err)
		return p->paths ? 0 : err;
	if (p->paths) {
		paths->before = p->paths->before;
		for (uint32_t i = 0; i < p->paths->conf.paths; i++)
			paths->before += p->paths->use.path[i].bytes;
		retire(ep, p->paths);
	}
	p->paths = paths;
	return 0;
}

/* Asking the device takes its lock, for each path. */
#define WATCH_EVERY (20 * UTIL_NS_PER_MS)

/* The device sends what is on a silent way over another one; no more is given to it for a while. */
void msg_paths_watch(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths, uint64_t now)
{
	const struct msg_use *u = &paths->use;

	if (!ep->port->way_silent || now - paths->watched < WATCH_EVERY)
		return;
	paths->watched = now;
	paths->silent = 0;
	for (uint32_t i = 0; i < paths->conf.paths; i++) {
		bool silent = ep->port->way_silent(ep, peer, paths->way[i]);

		paths->silent |= (uint32_t)silent << i;
		if (msg_silent_use(&paths->rest[i], silent, u->given[i], u->out[i], now))
			stripe_heal(&paths->conf, &paths->state, i);
		else
			stripe_down(&paths->conf, &paths->state, i);
	}
}

/* ---- for people ---- */

bool msg_ep_paths(struct msg_ep *ep, uint32_t *peer, struct msg_path_stats *out)
{
	bool found = false;
	uint64_t now;

	util_lock(&ep->lock);
	now = util_now_ns();
	for (; *peer < ep->n_peers && !found; ++*peer) {
		const struct msg_paths *paths = ep->peers[*peer].paths;

		if (!paths)
			continue;
		*out = (struct msg_path_stats){.ip = ep->peers[*peer].addr.ip,
					       .paths = paths->conf.paths,
					       .addresses = paths->addresses,
					       .before = paths->before};
		for (uint32_t i = 0; i < out->paths; i++) {
			struct msg_live_path p = msg_use_path(paths, i, now);

			out->weight[i] = p.weight;
			out->bytes[i] = p.bytes;
			out->busy[i] = p.busy;
			out->to[i] = paths->ip[i];
		}
		found = true;
	}
	util_unlock(&ep->lock);
	return found;
}
