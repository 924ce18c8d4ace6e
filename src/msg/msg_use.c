#include "util_clock.h"
#include "msg_ep.h"

/* Who looks sees no more than some changes in a second. */
#define SHOW_EVERY (500 * UTIL_NS_PER_US)

struct msg_live_path msg_use_path(const struct msg_paths *paths, uint32_t path, uint64_t now)
{
	const struct msg_use *u = &paths->use;
	struct msg_live_path p = u->path[path];

	p.weight = paths->state.weight[path];
	if (u->out[path])
		p.busy += now - u->since[path];
	return p;
}

void msg_use_open(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths)
{
	paths->use.shown = UINT32_MAX;
	paths->use.peer = peer;
	/* Tried once: what fails now fails for the next peer, too. */
	if (ep->conf.live) {
		ep->live = msg_live_open();
		ep->conf.live = false;
	}
	if (ep->live)
		paths->use.shown = msg_live_add(ep->live, ep->peers[peer].addr.ip, &paths->conf);
}

void msg_use_show(struct msg_ep *ep, struct msg_paths *paths, uint64_t now, bool end)
{
	struct msg_live_path path[STRIPE_PATHS_MAX];
	struct msg_use *u = &paths->use;
	uint32_t down;

	if (u->shown == UINT32_MAX || (!end && now - u->last < SHOW_EVERY))
		return;
	u->last = now;
	down = paths->silent;
	for (uint32_t i = 0; i < paths->conf.paths; i++) {
		path[i] = msg_use_path(paths, i, now);
		down |= (uint32_t)paths->state.down[i] << i;
	}
	msg_live_write(ep->live, u->shown, path, down);
}
