#include "msg_order.h"

#include <stdlib.h>
#include <string.h>

static struct msg_kept **slot(const struct msg_order *o, uint32_t seq)
{
	return &o->kept[seq % MSG_ORDER_WINDOW];
}

static enum msg_turn keep(struct msg_order *o, uint32_t seq, const void *buf, size_t len)
{
	struct msg_kept *k;

	if (!o->kept)
		o->kept = calloc(MSG_ORDER_WINDOW, sizeof(*o->kept));
	if (!o->kept)
		return MSG_TURN_LOST;
	if (*slot(o, seq))
		return MSG_TURN_OVER;
	k = malloc(sizeof(*k) + len);
	if (!k)
		return MSG_TURN_LOST;
	k->len = len;
	memcpy(k->buf, buf, len);
	*slot(o, seq) = k;
	return MSG_TURN_LATER;
}

enum msg_turn msg_order_came(struct msg_order *o, uint32_t seq, const void *buf, size_t len)
{
	uint32_t ahead = seq - o->expected;

	if (!ahead) {
		o->expected++;
		return MSG_TURN_NOW;
	}
	if (ahead > UINT32_MAX - MSG_ORDER_WINDOW)
		return MSG_TURN_OVER;
	return ahead < MSG_ORDER_WINDOW ? keep(o, seq, buf, len) : MSG_TURN_FAR;
}

struct msg_kept *msg_order_next(struct msg_order *o)
{
	struct msg_kept *k = o->kept ? *slot(o, o->expected) : NULL;

	if (k) {
		*slot(o, o->expected) = NULL;
		o->expected++;
	}
	return k;
}

void msg_order_free(struct msg_order *o)
{
	for (uint32_t i = 0; o->kept && i < MSG_ORDER_WINDOW; i++)
		free(o->kept[i]);
	free(o->kept);
	o->kept = NULL;
}
