/* Cables that fail and heal. Failing takes both ends down, as pulling it out does: the
 * kernels of both nodes forget the routes through it, and a switch without a route to a host
 * of the lab drops its packets. ECMP goes on with the ports that are left, but only where
 * there is a choice: nobody tells the other switches, which is what routing protocols and
 * subnet managers are for. Healing brings back what lab_node.h says.
 */
#include <sys/socket.h>
#include <linux/netlink.h>

#include "lab.h"
#include "lab_nl.h"
#include "lab_node.h"

static int open_node(const struct lab *lab, struct fabric_node n, struct lab_nl *nl,
		     struct lab_error *e)
{
	int fd = lab_socket(lab, n, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, e);

	if (fd < 0)
		return fd;
	lab_nl_init(nl, fd);
	return 0;
}

static int fail_end(const struct lab *lab, struct lab_port p, struct lab_error *e)
{
	struct lab_nl nl;
	int ret = open_node(lab, p.node, &nl, e);

	if (ret)
		return ret;
	ret = lab_node_port_down(&nl, &lab->spec, p, e);
	if (!ret)
		ret = lab_nl_flush(&nl, e);
	lab_nl_close(&nl);
	return ret;
}

static int heal_end(const struct lab *lab, struct lab_port p, struct lab_error *e)
{
	struct lab_nl nl;
	int ret = open_node(lab, p.node, &nl, e);

	if (ret)
		return ret;
	ret = lab_node_port(&nl, &lab->spec, p, e);
	if (!ret)
		ret = lab_node_routes(&nl, &lab->spec, p.node, e);
	if (!ret)
		ret = lab_nl_flush(&nl, e);
	lab_nl_close(&nl);
	return ret;
}

static struct lab_port lower_end(const struct fabric_cable *c)
{
	return (struct lab_port){.node = c->lower, .up = true, .port = c->q};
}

int lab_cable_fail(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e)
{
	struct lab_port lower = lower_end(c);
	int ret = fail_end(lab, lower, e);

	return ret ? ret : fail_end(lab, lab_port_peer(&lab->spec, lower), e);
}

int lab_cable_heal(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e)
{
	struct lab_port lower = lower_end(c);
	int ret = heal_end(lab, lower, e);

	return ret ? ret : heal_end(lab, lab_port_peer(&lab->spec, lower), e);
}
