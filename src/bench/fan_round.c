#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fan_round.h"

#define CHECK_EVERY 1024 /* empty polls between two looks at the clock and at the others */

int fan_times_alloc(struct fan_times *t, const struct fan_plan *plan)
{
	size_t packets = plan->rounds * plan->n;

	*t = (struct fan_times){
		.round = calloc(plan->rounds, sizeof(*t->round)),
		.trip = calloc(packets, sizeof(*t->trip)),
		.post = calloc(packets, sizeof(*t->post)),
	};
	if (t->round && t->trip && t->post)
		return 0;
	fan_times_free(t);
	return -ENOMEM;
}

void fan_times_free(struct fan_times *t)
{
	free(t->round);
	free(t->trip);
	free(t->post);
	*t = (struct fan_times){0};
}

struct round {
	const struct fan_ops *ops;
	void *arg;
	const struct fan_plan *plan;
	uint64_t start, *trip, *post;
	uint32_t seq;
};

/* trip holds the time of the send until the answer replaces it by the difference. */
static int send_all(struct round *r)
{
	uint64_t before = r->start, after;

	for (unsigned int i = 0; i < r->plan->msgs; i++) {
		int ret = r->ops->send(r->arg, i, r->seq);

		if (ret)
			return ret;
		after = r->ops->now(r->arg);
		r->trip[i] = before;
		r->post[i] = after - before;
		before = after;
	}
	/* One message for all: they all left at the same time. */
	for (unsigned int i = r->plan->msgs; i < r->plan->n; i++)
		r->trip[i] = r->start;
	return 0;
}

/* -EAGAIN: some answer is lost. */
static int look_up(struct round *r)
{
	uint64_t now = r->ops->now(r->arg);
	int ret = r->ops->check ? r->ops->check(r->arg) : 0;

	if (ret)
		return ret;
	if (now > r->plan->deadline)
		return -ETIMEDOUT;
	return r->plan->lost_ns && now - r->start > r->plan->lost_ns ? -EAGAIN : 0;
}

static int await_all(struct round *r, uint64_t *last)
{
	unsigned int left = r->plan->n, i, empty = 0;

	while (left) {
		int ret = r->ops->poll(r->arg, r->seq, &i);

		if (!ret && ++empty % CHECK_EVERY == 0)
			ret = look_up(r);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		if (i >= r->plan->n)
			return -EPROTO;
		*last = r->ops->now(r->arg);
		r->trip[i] = *last - r->trip[i];
		left--;
	}
	return 0;
}

int fan_rounds(const struct fan_ops *ops, void *arg, const struct fan_plan *plan,
	       struct fan_times *t)
{
	uint64_t last = ops->now(arg), enough = last + plan->budget;

	for (size_t k = 0; k < plan->rounds && last <= enough; k++) {
		struct round r = {.ops = ops,
				  .arg = arg,
				  .plan = plan,
				  .trip = t->trip + t->rounds * plan->n,
				  .post = t->post + t->rounds * plan->n,
				  .seq = plan->seq0 + (uint32_t)k};
		int ret;

		r.start = ops->now(arg);
		ret = send_all(&r);
		if (!ret)
			ret = await_all(&r, &last);
		if (ret == -EAGAIN) {
			t->lost++;
			ops->settle(arg);
			last = ops->now(arg);
			continue;
		}
		if (ret)
			return ret;
		t->round[t->rounds++] = last - r.start;
	}
	return 0;
}
