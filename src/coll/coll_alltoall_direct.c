/* Everybody gives to everybody: the call. See coll_direct.h. */
#include <errno.h>
#include <stdlib.h>

#include "coll_direct.h"

/* All blocks of this host, and long ones of others: short ones are unpacked from where the network
 * has put them. */
static bool lands(const struct coll_direct *d, uint32_t src)
{
	return src != d->c->rank && (coll_direct_is_here(d, src) ||
				     coll_direct_is_long(d, coll_block_len(&d->a->recv, src)));
}

static int open_landing(struct coll_direct *d)
{
	uint64_t len = 0;

	if (d->a->recv.type.plain)
		return 0;
	d->landing_at = calloc(d->c->size, sizeof(*d->landing_at));
	if (!d->landing_at)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->c->size; i++) {
		d->landing_at[i] = len;
		if (lands(d, i))
			len += coll_block_len(&d->a->recv, i);
	}
	d->landing = coll_scratch(d->c, 1, len);
	return d->landing ? 0 : -ENOMEM;
}

/* Other hosts hear of us first: it takes them longer. */
static int begin(struct coll_direct *d)
{
	uint32_t me = d->c->rank;
	int ret = open_landing(d);

	if (!ret && coll_block_len(&d->a->recv, me) != coll_block_len(&d->a->send, me))
		ret = -EMSGSIZE;
	if (!ret)
		ret = coll_direct_net_begin(d);
	if (!ret)
		ret = coll_direct_here_begin(d);
	return ret ? ret : coll_deliver(d->a, me, coll_send_at(d->a, me));
}

/* One after the other: there is no end before both. Only those who send in parts, or to whom, are
 * needed here meanwhile. */
static int waits_for(const struct coll_direct *d)
{
	bool net = !coll_direct_net_finished(d), here = !coll_direct_here_finished(d);

	if (net && here && coll_direct_here_parts(d))
		return COLL_FOR_NET | COLL_FOR_SHM;
	return net ? COLL_FOR_NET : COLL_FOR_SHM;
}

static bool missing(const void *arg, uint32_t rank)
{
	return coll_direct_net_waits_for(arg, rank);
}

static int run(struct coll_direct *d)
{
	struct coll_wait w;

	coll_wait_begin(d->c, &w, COLL_FOR_SHM);
	w.missing = missing;
	w.arg = d;
	for (;;) {
		int net = coll_direct_net_turn(d);
		int here = net < 0 ? net : coll_direct_here_turn(d);

		if (here < 0)
			return here;
		if (coll_direct_net_finished(d) && coll_direct_here_finished(d))
			return 0;
		w.what = waits_for(d);
		if (!net && !here) {
			int ret = coll_wait(d->c, &w);

			if (ret)
				return ret;
		}
	}
}

int coll_alltoall_direct(struct coll_alltoall *a, bool aware)
{
	struct coll_direct d = {.a = a, .c = a->c, .aware = aware};
	int ret;

	d.call = coll_begin(a->c);
	ret = begin(&d);
	if (!ret)
		ret = run(&d);
	if (!ret)
		ret = coll_direct_net_end(&d);
	coll_direct_here_free(&d, ret);
	coll_direct_net_free(&d);
	free(d.landing_at);
	return ret;
}
