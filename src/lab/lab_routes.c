#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "lab_nl.h"
#include "lab_node.h"

struct listing {
	const struct lab_spec *spec;
	struct fabric_node node;
	int (*fn)(const struct lab_route *r, void *arg);
	void *arg;
	char (*port)[LAB_PORT_MAX];
	uint32_t room;
	int ret; /* of fn */
};

static void add_port(struct listing *l, struct lab_route *r, uint32_t ifindex)
{
	struct lab_port p;

	if (r->count < l->room && lab_port_of(l->spec, l->node, ifindex, &p))
		lab_port_name(p.node, p.up, p.port, l->port[r->count++]);
}

static void add_hops(struct listing *l, struct lab_route *r, const struct nlattr *attr)
{
	const struct rtnexthop *hop = mnl_attr_get_payload(attr);
	int left = mnl_attr_get_payload_len(attr);

	for (; RTNH_OK(hop, left); left -= NLMSG_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
		if (!(hop->rtnh_flags & RTNH_F_DEAD))
			add_port(l, r, (uint32_t)hop->rtnh_ifindex);
}

static int list_route(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(h);
	struct listing *l = arg;
	struct lab_route r = {.node = l->node, .prefix = rt->rtm_dst_len, .port = l->port};
	const struct nlattr *attr;

	/* The local table, and the blackhole of a switch, are not ways to anybody. */
	if (rt->rtm_family != AF_INET || rt->rtm_table != RT_TABLE_MAIN ||
	    rt->rtm_type != RTN_UNICAST || l->ret)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, h, sizeof(*rt))
	{
		switch (mnl_attr_get_type(attr)) {
		case RTA_DST:
			r.dst.s_addr = mnl_attr_get_u32(attr);
			break;
		case RTA_OIF:
			add_port(l, &r, mnl_attr_get_u32(attr));
			break;
		case RTA_MULTIPATH:
			add_hops(l, &r, attr);
			break;
		}
	}
	if (r.count)
		l->ret = l->fn(&r, l->arg);
	return MNL_CB_OK;
}

static int list_node(const struct lab *lab, struct listing *l, struct lab_error *e)
{
	struct lab_nl nl;
	int ret = lab_nl_open_on(&nl, lab, l->node, e);

	if (ret)
		return ret;
	ret = lab_nl_dump(&nl, RTM_GETROUTE, sizeof(struct rtmsg), AF_INET, list_route, l, "routes",
			  e);
	lab_nl_close(&nl);
	return ret;
}

int lab_routes(const struct lab *lab, int (*fn)(const struct lab_route *r, void *arg), void *arg,
	       struct lab_error *e)
{
	const struct fabric_pgft *t = &lab->spec.tree;
	struct listing l = {.spec = &lab->spec, .fn = fn, .arg = arg};
	int ret = 0;

	for (uint32_t i = 0; i <= t->h; i++) {
		uint32_t ports = lab_port_count(&lab->spec, (struct fabric_node){i, 0});

		l.room = ports > l.room ? ports : l.room;
	}
	l.port = calloc(l.room, sizeof(*l.port));
	if (!l.port)
		return lab_fail(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; !ret && !l.ret && i < fabric_nodes(t); i++) {
		l.node = fabric_node(t, i);
		ret = list_node(lab, &l, e);
	}
	free(l.port);
	return ret ? ret : l.ret;
}
