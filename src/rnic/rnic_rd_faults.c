/* RD on a bad network: carries out what rnic_fault.h decides. */
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "rnic_rd.h"

/* Datagrams that faults may hold back. */
#define DELAYED_MAX 4096
#define REORDER_NS  UTIL_NS_PER_MS
#define REORDER_MAX 8

struct delayed {
	struct list_head link;
	struct rnic_rd_sock *sock;
	struct sockaddr_in to;
	uint8_t sgid;
	uint64_t at;
	uint32_t behind; /* datagrams that still have to overtake it; 0: only time counts */
	size_t len;
	uint8_t data[];
};

static void delayed_send(struct rnic_rd *rd, struct delayed *d)
{
	list_del(&d->link);
	rd->n_delayed--;
	rnic_rd_transmit(d->sock, &d->to, d->sgid, d->data, d->len, d->len);
	free(d);
}

static void delayed_arm(struct rnic_rd *rd)
{
	uint64_t at = UINT64_MAX;
	struct delayed *d;

	list_for_each (d, &rd->delayed, link)
		if (d->at < at)
			at = d->at;
	if (at == UINT64_MAX)
		rnic_timer_cancel(rd->e, &rd->fault_timer);
	else
		rnic_timer_arm(rd->e, &rd->fault_timer, at);
}

static void delayed_fire(struct rnic_timer *t, uint64_t now)
{
	struct rnic_rd *rd = container_of(t, struct rnic_rd, fault_timer);
	struct delayed *d, *tmp;

	list_for_each_safe (d, tmp, &rd->delayed, link)
		if (d->at <= now)
			delayed_send(rd, d);
	delayed_arm(rd);
}

static void overtaken(struct rnic_rd *rd)
{
	struct delayed *d, *tmp;

	list_for_each_safe (d, tmp, &rd->delayed, link)
		if (d->behind && !--d->behind)
			delayed_send(rd, d);
}

static bool delay(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		  const uint8_t *data, size_t len, const struct rnic_fault_verdict *v)
{
	struct rnic_rd *rd = sock->rd;
	struct delayed *d;

	if (rd->n_delayed >= DELAYED_MAX)
		return false;
	d = malloc(sizeof(*d) + len);
	if (!d)
		return false;
	*d = (struct delayed){.sock = sock,
			      .to = *to,
			      .sgid = sgid,
			      .at = util_now_ns() + (v->delay ? v->delay : REORDER_NS),
			      .behind =
				      v->reorder ? 1 + (uint32_t)(rd->n_delayed % REORDER_MAX) : 0,
			      .len = len};
	memcpy(d->data, data, len);
	list_init(&d->link);
	list_add_tail(&d->link, &rd->delayed);
	rd->n_delayed++;
	delayed_arm(rd);
	return true;
}

static void with_faults(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
			uint8_t *data, size_t len)
{
	struct rnic_fault_verdict v = rnic_fault_next(&sock->rd->fault, len);

	if (v.drop)
		return;
	if (v.again)
		rnic_rd_transmit(sock, to, sgid, data, len, len);
	if (v.flip)
		data[v.bit / 8] ^= (uint8_t)(1u << v.bit % 8);
	if ((v.delay || v.reorder) && delay(sock, to, sgid, data, len, &v))
		return;
	rnic_rd_transmit(sock, to, sgid, data, len, len);
	overtaken(sock->rd);
}

void rnic_rd_faults_send(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
			 uint8_t *data, size_t len, size_t seg)
{
	for (size_t off = 0; off < len; off += seg)
		with_faults(sock, to, sgid, data + off, len - off < seg ? len - off : seg);
}

void rnic_rd_faults_init(struct rnic_rd *rd)
{
	list_init(&rd->delayed);
	rnic_timer_init(&rd->fault_timer, delayed_fire);
}

void rnic_rd_faults_forget(struct rnic_rd *rd, const struct rnic_rd_sock *sock)
{
	struct delayed *d, *tmp;

	list_for_each_safe (d, tmp, &rd->delayed, link)
		if (!sock || d->sock == sock) {
			list_del(&d->link);
			rd->n_delayed--;
			free(d);
		}
}
