#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab.h"
#include "lab_nl.h"
#include "lab_node.h"
#include "util_clock.h"

struct lab_watch {
	struct lab lab;
	int holder;            /* a pidfd: our sockets keep the namespaces, but not the lab */
	struct lab_nl *nl;     /* of each node */
	struct lab_load *last; /* of each cable */
	uint64_t last_time;    /* 0: there is none */
};

static int open_all(struct lab_watch *w, struct lab_error *e)
{
	const struct fabric_pgft *t = &w->lab.spec.tree;
	int ret = lab_raise_files(fabric_nodes(t) + 64, e);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < fabric_nodes(t); i++) {
		ret = lab_nl_open_on(&w->nl[i], &w->lab, fabric_node(t, i), e);
		if (ret)
			return ret;
	}
	return 0;
}

int lab_watch_open(struct lab_watch **out, const struct lab *lab, struct lab_error *e)
{
	struct lab_watch *w = calloc(1, sizeof(*w));
	uint32_t nodes = fabric_nodes(&lab->spec.tree);
	int ret;

	if (!w)
		return lab_fail(e, ENOMEM, "out of memory");
	w->lab = *lab;
	w->holder = (int)syscall(SYS_pidfd_open, lab->holder, 0);
	w->nl = calloc(nodes, sizeof(*w->nl));
	w->last = calloc(fabric_cables(&lab->spec.tree), sizeof(*w->last));
	for (uint32_t i = 0; w->nl && i < nodes; i++)
		w->nl[i].fd = -1;
	ret = w->nl && w->last ? open_all(w, e) : lab_fail(e, ENOMEM, "out of memory");
	if (ret)
		lab_watch_close(w);
	else
		*out = w;
	return ret;
}

void lab_watch_close(struct lab_watch *w)
{
	for (uint32_t i = 0; w->nl && i < fabric_nodes(&w->lab.spec.tree); i++)
		lab_nl_close(&w->nl[i]);
	if (w->holder >= 0)
		close(w->holder);
	free(w->nl);
	free(w->last);
	free(w);
}

/* ---- counters ---- */

struct sampling {
	const struct lab_spec *spec;
	struct fabric_node node;
	struct lab_load *load;
};

/* The direction that this interface sends in. */
static struct lab_flow *flow_of(const struct sampling *s, int ifindex, struct lab_load **load)
{
	struct fabric_cable c;
	struct lab_port p;

	if (ifindex < 0 || !lab_port_of(s->spec, s->node, (uint32_t)ifindex, &p))
		return NULL;
	c = lab_port_cable(s->spec, p);
	*load = &s->load[fabric_cable_number(&s->spec->tree, &c)];
	return p.up ? &(*load)->up : &(*load)->down;
}

static int count_link(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
	struct rtnl_link_stats64 stats;
	const struct nlattr *attr;
	struct lab_load *load;
	struct lab_flow *flow = flow_of(arg, ifi->ifi_index, &load);
	bool up;

	if (!flow)
		return MNL_CB_OK;
	/* Lower ends come first; a cable that is not there has none. */
	up = ifi->ifi_flags & IFF_UP;
	load->alive = flow == &load->up ? up : load->alive && up;
	mnl_attr_for_each(attr, h, sizeof(*ifi))
	{
		if (mnl_attr_get_type(attr) != IFLA_STATS64)
			continue;
		memset(&stats, 0, sizeof(stats));
		memcpy(&stats, mnl_attr_get_payload(attr),
		       mnl_attr_get_payload_len(attr) < sizeof(stats)
			       ? mnl_attr_get_payload_len(attr)
			       : sizeof(stats));
		flow->bytes = stats.tx_bytes;
		flow->packets = stats.tx_packets;
		flow->drops += stats.tx_dropped;
	}
	return MNL_CB_OK;
}

/* Where there is a queue, its counters are better than the interface's: they count packets
 * and headers as they are on the wire, not the large segments that become packets later. */
static void count_stat(struct lab_flow *flow, const struct nlattr *stat)
{
	const void *data = mnl_attr_get_payload(stat);
	size_t len = mnl_attr_get_payload_len(stat);
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;

	switch (mnl_attr_get_type(stat)) {
	case TCA_STATS_BASIC:
		if (len < sizeof(basic.bytes) + sizeof(basic.packets))
			return;
		memcpy(&basic, data, len < sizeof(basic) ? len : sizeof(basic));
		flow->bytes = basic.bytes;
		flow->packets = basic.packets;
		break;
	case TCA_STATS_PKT64: /* comes after, where 32 bits are not enough */
		if (len == sizeof(flow->packets))
			memcpy(&flow->packets, data, len);
		break;
	case TCA_STATS_QUEUE:
		if (len < sizeof(queue))
			return;
		memcpy(&queue, data, sizeof(queue));
		flow->drops += queue.drops;
		flow->backlog = queue.backlog;
		break;
	}
}

static int count_queue(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);
	const struct nlattr *attr, *inner;
	struct lab_load *load;
	struct lab_flow *flow = flow_of(arg, tc->tcm_ifindex, &load);

	if (!flow || tc->tcm_parent != TC_H_ROOT)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, h, sizeof(*tc)) if (mnl_attr_get_type(attr) == TCA_STATS2)
		mnl_attr_for_each_nested(inner, attr) count_stat(flow, inner);
	return MNL_CB_OK;
}

static int count_node(struct lab_watch *w, struct fabric_node n, struct lab_load *load,
		      struct lab_error *e)
{
	struct lab_nl *nl = &w->nl[fabric_number(&w->lab.spec.tree, n)];
	struct sampling s = {&w->lab.spec, n, load};
	int ret = lab_nl_dump(nl, RTM_GETLINK, sizeof(struct ifinfomsg), AF_UNSPEC, count_link, &s,
			      "interfaces", e);

	if (ret || !w->lab.spec.rate)
		return ret;
	return lab_nl_dump(nl, RTM_GETQDISC, sizeof(struct tcmsg), AF_UNSPEC, count_queue, &s,
			   "queues", e);
}

/* Counters begin anew when an interface or a queue does. */
static double per_second(uint64_t now, uint64_t before, double seconds)
{
	uint64_t n = now >= before ? now - before : now;

	return seconds > 0 ? (double)n / seconds : 0;
}

static void compare(struct lab_flow *now, const struct lab_flow *before, double seconds)
{
	now->bits = 8 * per_second(now->bytes, before->bytes, seconds);
	now->losses = per_second(now->drops, before->drops, seconds);
}

/* Without a rate there is no whole to be a part of: the fastest direction is taken for it. */
static double whole(const struct lab_watch *w, const struct lab_load *load)
{
	double most = 0;

	if (w->lab.spec.rate)
		return (double)w->lab.spec.rate;
	for (uint32_t i = 0; i < fabric_cables(&w->lab.spec.tree); i++) {
		most = load[i].up.bits > most ? load[i].up.bits : most;
		most = load[i].down.bits > most ? load[i].down.bits : most;
	}
	return most;
}

static void utilise(const struct lab_watch *w, struct lab_load *load, double seconds)
{
	uint32_t n = fabric_cables(&w->lab.spec.tree);
	double all;

	for (uint32_t i = 0; i < n; i++) {
		compare(&load[i].up, &w->last[i].up, seconds);
		compare(&load[i].down, &w->last[i].down, seconds);
	}
	all = whole(w, load);
	for (uint32_t i = 0; all > 0 && i < n; i++) {
		load[i].up.utilisation = load[i].up.bits / all;
		load[i].down.utilisation = load[i].down.bits / all;
	}
}

/* A kernel without pidfds can not tell; then the counters just stand still. */
static bool has_ended(const struct lab_watch *w)
{
	struct pollfd p = {.fd = w->holder, .events = POLLIN};

	return w->holder >= 0 && poll(&p, 1, 0) == 1;
}

int lab_watch_sample(struct lab_watch *w, struct lab_load *load, double *seconds,
		     struct lab_error *e)
{
	const struct fabric_pgft *t = &w->lab.spec.tree;
	uint64_t now = util_now_ns();
	int ret = 0;

	if (has_ended(w))
		return lab_fail(e, ESRCH, "lab %s is gone", w->lab.spec.name);
	memset(load, 0, fabric_cables(t) * sizeof(*load));
	for (uint32_t i = 0; !ret && i < fabric_nodes(t); i++)
		ret = count_node(w, fabric_node(t, i), load, e);
	if (ret)
		return ret;
	*seconds = w->last_time ? (double)(now - w->last_time) / UTIL_NS_PER_S : 0;
	utilise(w, load, *seconds);
	memcpy(w->last, load, fabric_cables(t) * sizeof(*load));
	w->last_time = now;
	return 0;
}
