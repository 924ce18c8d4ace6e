#include "lab_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_IFINDEX 16 /* the kernel may give a new namespace a few of its own */
#define MAKE          (NLM_F_CREATE | NLM_F_REPLACE)

/* Of the last resort: what is left when the cable of a route has failed. Without it the
 * router would answer that the network is unreachable, as no switch does. */
#define BLACKHOLE_METRIC 65536

/* ---- ports ---- */

struct lab_port lab_port(const struct lab_spec *s, struct fabric_node n, uint32_t i)
{
	uint32_t up = fabric_up_ports(&s->tree, n.level);

	return (struct lab_port){.node = n, .up = i < up, .port = i < up ? i : i - up};
}

uint32_t lab_port_number(const struct lab_spec *s, struct lab_port p)
{
	return p.port + (p.up ? 0 : fabric_up_ports(&s->tree, p.node.level));
}

uint32_t lab_port_ifindex(const struct lab_spec *s, struct lab_port p)
{
	return FIRST_IFINDEX + lab_port_number(s, p);
}

bool lab_port_of(const struct lab_spec *s, struct fabric_node n, uint32_t ifindex,
		 struct lab_port *p)
{
	if (ifindex < FIRST_IFINDEX || ifindex - FIRST_IFINDEX >= lab_port_count(s, n))
		return false;
	*p = lab_port(s, n, ifindex - FIRST_IFINDEX);
	return true;
}

struct fabric_cable lab_port_cable(const struct lab_spec *s, struct lab_port p)
{
	return p.up ? fabric_cable_up(&s->tree, p.node, p.port)
		    : fabric_cable_down(&s->tree, p.node, p.port);
}

struct lab_port lab_port_peer(const struct lab_spec *s, struct lab_port p)
{
	struct fabric_cable c = lab_port_cable(s, p);

	return p.up ? (struct lab_port){.node = c.upper, .up = false, .port = c.r}
		    : (struct lab_port){.node = c.lower, .up = true, .port = c.q};
}

/* Locally administered, and different for each end of each cable. */
static void mac_of(const struct lab_spec *s, struct lab_port p, uint8_t mac[6])
{
	struct fabric_cable c = lab_port_cable(s, p);
	uint32_t number = fabric_cable_number(&s->tree, &c);

	mac[0] = 0x02;
	mac[1] = p.up ? 0 : 1;
	for (int i = 0; i < 4; i++)
		mac[2 + i] = (uint8_t)(number >> (24 - 8 * i));
}

/* ---- cables ---- */

static void put_end(struct nlmsghdr *h, const struct lab_spec *s, struct lab_port p)
{
	char name[LAB_PORT_MAX];
	uint8_t mac[6];

	lab_port_name(p.node, p.up, p.port, name);
	mac_of(s, p, mac);
	mnl_attr_put_strz(h, IFLA_IFNAME, name);
	mnl_attr_put(h, IFLA_ADDRESS, sizeof(mac), mac);
	mnl_attr_put_u32(h, IFLA_MTU, s->mtu);
}

int lab_node_cable(struct lab_nl *nl, const struct lab_spec *s, const struct fabric_cable *c,
		   int upper_namespace, struct lab_error *e)
{
	struct lab_port lower = {.node = c->lower, .up = true, .port = c->q};
	struct lab_port upper = lab_port_peer(s, lower);
	struct nlattr *info, *data, *peer;
	struct ifinfomsg *ifi;
	struct nlmsghdr *h = lab_nl_put(nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(*ifi),
					"a veth pair (module veth)", e);

	if (!h)
		return -e->code;
	ifi = mnl_nlmsg_get_payload(h);
	ifi->ifi_index = (int)lab_port_ifindex(s, lower);
	put_end(h, s, lower);
	info = mnl_attr_nest_start(h, IFLA_LINKINFO);
	mnl_attr_put_str(h, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
	/* The other end begins with a header of its own. */
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_index = (int)lab_port_ifindex(s, upper);
	put_end(h, s, upper);
	mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t)upper_namespace);
	mnl_attr_nest_end(h, peer);
	mnl_attr_nest_end(h, data);
	mnl_attr_nest_end(h, info);
	lab_nl_done(nl, h);
	return 0;
}

static int put_link_state(struct lab_nl *nl, uint32_t ifindex, bool on, struct lab_error *e)
{
	struct ifinfomsg *ifi;
	struct nlmsghdr *h =
		lab_nl_put(nl, RTM_NEWLINK, 0, sizeof(*ifi), "an interface go up or down", e);

	if (!h)
		return -e->code;
	ifi = mnl_nlmsg_get_payload(h);
	ifi->ifi_index = (int)ifindex;
	ifi->ifi_flags = on ? IFF_UP : 0;
	ifi->ifi_change = IFF_UP;
	lab_nl_done(nl, h);
	return 0;
}

int lab_node_port_down(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
		       struct lab_error *e)
{
	return put_link_state(nl, lab_port_ifindex(s, p), false, e);
}

/* ---- addresses ---- */

static int put_address(struct lab_nl *nl, uint32_t ifindex, struct in_addr addr, uint32_t prefix,
		       struct lab_error *e)
{
	struct ifaddrmsg *ifa;
	struct nlmsghdr *h = lab_nl_put(nl, RTM_NEWADDR, MAKE, sizeof(*ifa), "an address", e);

	if (!h)
		return -e->code;
	ifa = mnl_nlmsg_get_payload(h);
	ifa->ifa_family = AF_INET;
	ifa->ifa_prefixlen = (uint8_t)prefix;
	ifa->ifa_index = ifindex;
	mnl_attr_put_u32(h, IFA_LOCAL, addr.s_addr);
	mnl_attr_put_u32(h, IFA_ADDRESS, addr.s_addr);
	/* All hosts look as if they were in one subnet, which MPI libraries like to see, but
	 * are reached through the switches. */
	mnl_attr_put_u32(h, IFA_FLAGS, IFA_F_NOPREFIXROUTE);
	lab_nl_done(nl, h);
	return 0;
}

int lab_node_addresses(struct lab_nl *nl, const struct lab_spec *s, struct fabric_node n,
		       struct lab_error *e)
{
	const uint32_t lo = 1;

	if (put_link_state(nl, lo, true, e))
		return -e->code;
	/* A switch needs one to answer traceroute and ARP with. */
	if (n.level > 0)
		return put_address(nl, lo, lab_address(s, n, 0), 32, e);
	/* On each of its interfaces: the addresses are there as long as one of them is up. */
	for (uint32_t i = 0; i < lab_port_count(s, n); i++)
		for (uint32_t a = 0; a < 1u << s->routing.lmc; a++)
			if (put_address(nl, lab_port_ifindex(s, lab_port(s, n, i)),
					lab_address(s, n, a), s->prefix, e))
				return -e->code;
	return 0;
}

/* ---- ports: the neighbour, the queue ---- */

static int put_neighbour(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
			 struct lab_error *e)
{
	struct lab_port peer = lab_port_peer(s, p);
	struct ndmsg *nd;
	struct nlmsghdr *h = lab_nl_put(nl, RTM_NEWNEIGH, MAKE, sizeof(*nd), "a neighbour", e);
	uint8_t mac[6];

	if (!h)
		return -e->code;
	nd = mnl_nlmsg_get_payload(h);
	nd->ndm_family = AF_INET;
	nd->ndm_state = NUD_PERMANENT;
	nd->ndm_ifindex = (int)lab_port_ifindex(s, p);
	mac_of(s, peer, mac);
	mnl_attr_put_u32(h, NDA_DST, lab_address(s, peer.node, 0).s_addr);
	mnl_attr_put(h, NDA_LLADDR, sizeof(mac), mac);
	lab_nl_done(nl, h);
	return 0;
}

/* A token bucket. Its depth makes up for timers that fire late: two milliseconds of the rate
 * beside one packet. Less, and a busy machine's links do not reach their rate; much more,
 * and large segments pass whole (the kernel cuts those that are larger than the bucket).
 * The queue holds 20 ms, at least 16 packets. */
static int put_queue(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
		     struct lab_error *e)
{
	uint64_t bytes = s->rate / 8, frame = s->mtu + 14, burst, limit;
	struct nlattr *options;
	struct tc_tbf_qopt tbf = {0};
	struct tcmsg *tc;
	struct nlmsghdr *h = lab_nl_put(nl, RTM_NEWQDISC, MAKE, sizeof(*tc),
					"a tbf queue (module sch_tbf, CONFIG_NET_SCH_TBF)", e);

	if (!h)
		return -e->code;
	burst = frame + bytes / 500;
	limit = burst + (bytes / 50 > 16 * frame ? bytes / 50 : 16 * frame);
	tc = mnl_nlmsg_get_payload(h);
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = (int)lab_port_ifindex(s, p);
	tc->tcm_handle = 1 << 16;
	tc->tcm_parent = TC_H_ROOT;
	mnl_attr_put_strz(h, TCA_KIND, "tbf");
	options = mnl_attr_nest_start(h, TCA_OPTIONS);
	tbf.rate.rate = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
	tbf.rate.linklayer = TC_LINKLAYER_ETHERNET;
	tbf.limit = limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
	mnl_attr_put(h, TCA_TBF_PARMS, sizeof(tbf), &tbf);
	mnl_attr_put_u32(h, TCA_TBF_BURST, burst > INT32_MAX ? INT32_MAX : (uint32_t)burst);
	if (bytes > UINT32_MAX)
		mnl_attr_put_u64(h, TCA_TBF_RATE64, bytes);
	mnl_attr_nest_end(h, options);
	lab_nl_done(nl, h);
	return 0;
}

int lab_node_port(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
		  struct lab_error *e)
{
	if (put_link_state(nl, lab_port_ifindex(s, p), true, e) || put_neighbour(nl, s, p, e))
		return -e->code;
	return s->rate ? put_queue(nl, s, p, e) : 0;
}

/* ---- routes ---- */

static struct nlmsghdr *put_route(struct lab_nl *nl, uint32_t dst, uint32_t prefix, uint8_t type,
				  struct lab_error *e)
{
	struct rtmsg *rt;
	struct nlmsghdr *h = lab_nl_put(nl, RTM_NEWROUTE, MAKE, sizeof(*rt), "a route", e);

	if (!h)
		return NULL;
	rt = mnl_nlmsg_get_payload(h);
	rt->rtm_family = AF_INET;
	rt->rtm_dst_len = (uint8_t)prefix;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = RT_SCOPE_UNIVERSE;
	rt->rtm_type = type;
	mnl_attr_put_u32(h, RTA_DST, htonl(dst));
	return h;
}

static void put_hop(struct nlmsghdr *h, const struct lab_spec *s, struct lab_port p)
{
	struct lab_port peer = lab_port_peer(s, p);

	((struct rtmsg *)mnl_nlmsg_get_payload(h))->rtm_flags = RTNH_F_ONLINK;
	mnl_attr_put_u32(h, RTA_GATEWAY, lab_address(s, peer.node, 0).s_addr);
	mnl_attr_put_u32(h, RTA_OIF, lab_port_ifindex(s, p));
}

static void put_hops(struct nlmsghdr *h, const struct lab_spec *s, const struct lab_port *ports,
		     uint32_t n)
{
	struct nlattr *nest = mnl_attr_nest_start(h, RTA_MULTIPATH);

	for (uint32_t i = 0; i < n; i++) {
		struct lab_port peer = lab_port_peer(s, ports[i]);
		struct rtnexthop *hop = mnl_nlmsg_put_extra_header(h, sizeof(*hop));

		mnl_attr_put_u32(h, RTA_GATEWAY, lab_address(s, peer.node, 0).s_addr);
		hop->rtnh_len =
			(unsigned short)((char *)mnl_nlmsg_get_payload_tail(h) - (char *)hop);
		hop->rtnh_flags = RTNH_F_ONLINK;
		hop->rtnh_ifindex = (int)lab_port_ifindex(s, ports[i]);
	}
	mnl_attr_nest_end(h, nest);
}

/* The node whose routes are made. */
struct routing {
	struct lab_nl *nl;
	const struct lab_spec *s;
	struct fabric_node node;
	const bool *alive;
	struct lab_port *hops; /* room for all ports */
};

static uint32_t living_hops(const struct routing *r, const struct fabric_ports *ports)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ports->count; i++) {
		struct lab_port p = {r->node, ports->up, ports->first + i * ports->stride};

		if (!r->alive || r->alive[lab_port_number(r->s, p)])
			r->hops[n++] = p;
	}
	return n;
}

static int route(const struct routing *r, uint32_t dst, uint32_t prefix,
		 const struct fabric_ports *ports, struct lab_error *e)
{
	uint32_t n = living_hops(r, ports);
	struct nlmsghdr *h;

	if (!n)
		return 0;
	h = put_route(r->nl, dst, prefix, RTN_UNICAST, e);
	if (!h)
		return -e->code;
	if (r->node.level == 0)
		mnl_attr_put_u32(h, RTA_PREFSRC, lab_address(r->s, r->node, 0).s_addr);
	if (n == 1)
		put_hop(h, r->s, r->hops[0]);
	else
		put_hops(h, r->s, r->hops, n);
	lab_nl_done(r->nl, h);
	return 0;
}

static int blackhole(struct lab_nl *nl, const struct lab_spec *s, struct lab_error *e)
{
	struct nlmsghdr *h = put_route(nl, s->net, s->prefix, RTN_BLACKHOLE, e);

	if (!h)
		return -e->code;
	mnl_attr_put_u32(h, RTA_PRIORITY, BLACKHOLE_METRIC);
	lab_nl_done(nl, h);
	return 0;
}

static int routes_to(const struct routing *r, uint32_t host, struct lab_error *e)
{
	for (uint32_t a = 0; a < 1u << r->s->routing.lmc; a++) {
		struct fabric_ports ports =
			fabric_route(&r->s->tree, &r->s->routing, r->node, host, a);
		struct in_addr dst = lab_address(r->s, (struct fabric_node){0, host}, a);

		if (ports.count && route(r, ntohl(dst.s_addr), 32, &ports, e))
			return -e->code;
	}
	return 0;
}

static int all_routes(const struct routing *r, struct lab_error *e)
{
	const struct lab_spec *s = r->s;
	uint32_t up = fabric_up_ports(&s->tree, r->node.level);
	/* Where all destinations go up alike, one route for the whole lab does. */
	bool alike = up == 1 || (up && s->routing.kind == FABRIC_ECMP);
	struct fabric_ports all = {.up = true, .first = 0, .stride = 1, .count = up};

	if (r->node.level > 0 && blackhole(r->nl, s, e))
		return -e->code;
	if (alike && route(r, s->net, s->prefix, &all, e))
		return -e->code;
	for (uint32_t host = 0; host < fabric_hosts(&s->tree); host++) {
		if (alike && !fabric_is_below(&s->tree, r->node, host))
			continue;
		if (routes_to(r, host, e))
			return -e->code;
	}
	return 0;
}

int lab_node_routes(struct lab_nl *nl, const struct lab_spec *s, struct fabric_node n,
		    const bool *alive, struct lab_error *e)
{
	struct routing r = {nl, s, n, alive, calloc(lab_port_count(s, n), sizeof(*r.hops))};
	int ret = r.hops ? all_routes(&r, e) : lab_fail(e, ENOMEM, "out of memory");

	free(r.hops);
	return ret;
}
