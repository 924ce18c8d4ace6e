/* What the paths to a peer carry, for people: counted by the completion filter (msg_stripe.c), told
 * when an endpoint closes, and shown meanwhile (msg_live.h). */
#ifndef WEFT_MSG_USE_H
#define WEFT_MSG_USE_H

#include "msg_live.h"

struct msg_ep;
struct msg_paths;

struct msg_use {
	struct msg_live_path path[STRIPE_PATHS_MAX]; /* but for the weight, which the policy has */
	uint64_t given[STRIPE_PATHS_MAX];            /* pieces, whatever has become of them, */
	uint32_t out[STRIPE_PATHS_MAX];              /* those under way, */
	uint64_t since[STRIPE_PATHS_MAX];            /* at least one since then */
	uint32_t shown;                              /* as this peer; UINT32_MAX: not at all */
	uint64_t last;                               /* when */
	uint32_t peer;                               /* of the endpoint */
};

/* A piece is given to a path; it has arrived, or (0 bytes) will not. */
static inline void msg_use_begin(struct msg_use *u, uint32_t path, uint64_t now)
{
	u->given[path]++;
	if (!u->out[path]++)
		u->since[path] = now;
}

static inline void msg_use_end(struct msg_use *u, uint32_t path, uint64_t bytes, uint64_t now)
{
	struct msg_live_path *p = &u->path[path];

	p->bytes += bytes;
	p->pieces += bytes > 0;
	if (!--u->out[path])
		p->busy += now - u->since[path];
}

/* Until now. */
struct msg_live_path msg_use_path(const struct msg_paths *paths, uint32_t path, uint64_t now);

/* The paths to a peer have just been made, and are shown from now on. */
void msg_use_open(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths);
/* Shows how it stands now, unless that was done just before; at the end of a message always, as
 * there may be no other. */
void msg_use_show(struct msg_ep *ep, struct msg_paths *paths, uint64_t now, bool end);

#endif
