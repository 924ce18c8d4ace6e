#include "lab_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "lab_nl.h"

int lab_nets_add(struct lab_nets *nets, uint32_t net, uint32_t prefix)
{
	if (nets->n == nets->room) {
		size_t room = nets->room ? 2 * nets->room : 64;
		void *more = realloc(nets->net, room * sizeof(*nets->net));

		if (!more)
			return -ENOMEM;
		nets->net = more;
		nets->room = room;
	}
	nets->net[nets->n++] = (struct lab_net){net, prefix};
	return 0;
}

void lab_nets_free(struct lab_nets *nets)
{
	free(nets->net);
	*nets = (struct lab_nets){0};
}

static uint32_t mask(uint32_t prefix)
{
	return prefix ? ~UINT32_C(0) << (32 - prefix) : 0;
}

static bool is_free(const struct lab_nets *nets, uint32_t net, uint32_t prefix)
{
	for (size_t i = 0; i < nets->n; i++) {
		const struct lab_net *n = &nets->net[i];

		if (!((net ^ n->net) & mask(prefix < n->prefix ? prefix : n->prefix)))
			return false;
	}
	return true;
}

int lab_nets_choose(const struct lab_nets *nets, uint64_t count, uint32_t *net, uint32_t *prefix)
{
	/* From 10.64 on: the beginning of 10/8 is where everybody else begins, too. */
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0a400000, 0x0affffff},
		{0x0a000000, 0x0a3fffff},
		{0xac100000, 0xac1fffff},
	};
	uint32_t bits = 16;

	while (bits < 24 && (UINT64_C(1) << bits) < count)
		bits++;
	if ((UINT64_C(1) << bits) < count)
		return -E2BIG;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		for (uint64_t at = ranges[i].first;
		     at + (UINT64_C(1) << bits) - 1 <= ranges[i].last; at += UINT64_C(1) << bits) {
			at = (at + (UINT64_C(1) << bits) - 1) >> bits << bits;
			if (!is_free(nets, (uint32_t)at, 32 - bits))
				continue;
			*net = (uint32_t)at;
			*prefix = 32 - bits;
			return 0;
		}
	}
	return -ENOSPC;
}

static uint32_t attr_addr(const struct nlattr *attr)
{
	return ntohl(mnl_attr_get_u32(attr));
}

static int add_address(const struct nlmsghdr *h, void *arg)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(h);
	const struct nlattr *attr;

	if (ifa->ifa_family != AF_INET)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, h, sizeof(*ifa)) if (
		mnl_attr_get_type(attr) == IFA_ADDRESS ||
		mnl_attr_get_type(attr) ==
			IFA_LOCAL) if (lab_nets_add(arg, attr_addr(attr),
						    ifa->ifa_prefixlen)) return MNL_CB_ERROR;
	return MNL_CB_OK;
}

static int add_route(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(h);
	const struct nlattr *attr;

	/* A default route covers everything; a half or a quarter of it is one in disguise, as
	 * tunnels like them. They say nothing about who uses an address. */
	if (rt->rtm_family != AF_INET || rt->rtm_dst_len < 4)
		return MNL_CB_OK;
	mnl_attr_for_each(
		attr, h,
		sizeof(*rt)) if (mnl_attr_get_type(attr) ==
				 RTA_DST) if (lab_nets_add(arg, attr_addr(attr),
							   rt->rtm_dst_len)) return MNL_CB_ERROR;
	return MNL_CB_OK;
}

int lab_nets_machine(struct lab_nets *nets, struct lab_error *e)
{
	struct lab_nl nl;
	int ret = lab_nl_open(&nl, e);

	if (ret)
		return ret;
	ret = lab_nl_dump(&nl, RTM_GETADDR, sizeof(struct ifaddrmsg), AF_INET, add_address, nets,
			  "the machine's addresses", e);
	if (!ret)
		ret = lab_nl_dump(&nl, RTM_GETROUTE, sizeof(struct rtmsg), AF_INET, add_route, nets,
				  "the machine's routes", e);
	lab_nl_close(&nl);
	return ret;
}
