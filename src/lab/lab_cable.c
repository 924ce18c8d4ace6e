/* Cables that fail and heal. Failing takes both ends down, as pulling it out does: the
 * kernels of both nodes forget the routes through it, and a switch without a route to a host
 * of the lab drops its packets. ECMP goes on with the ports that are left, but only where
 * there is a choice: nobody tells the other switches, which is what routing protocols and
 * subnet managers are for. Healing brings back what lab_node.h says.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lab.h"
#include "lab_nl.h"
#include "lab_node.h"
#include "lab_state.h"

static int fail_end(const struct lab *lab, struct lab_port p, struct lab_error *e)
{
	struct lab_nl nl;
	int ret = lab_nl_open_on(&nl, lab, p.node, e);

	if (ret)
		return ret;
	ret = lab_node_port_down(&nl, &lab->spec, p, e);
	if (!ret)
		ret = lab_nl_flush(&nl, e);
	lab_nl_close(&nl);
	return ret;
}

struct living {
	const struct lab_spec *spec;
	struct fabric_node node;
	bool *alive; /* of each port */
};

static int note_living(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
	struct living *l = arg;
	struct lab_port p;

	if (ifi->ifi_index > 0 && lab_port_of(l->spec, l->node, (uint32_t)ifi->ifi_index, &p))
		l->alive[lab_port_number(l->spec, p)] = ifi->ifi_flags & IFF_UP;
	return MNL_CB_OK;
}

/* Brings the port up, then the routes through all ports that are. */
static int restore(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p, bool *alive,
		   struct lab_error *e)
{
	struct living l = {s, p.node, alive};
	int ret = lab_node_port(nl, s, p, e);

	if (!ret)
		ret = lab_nl_flush(nl, e);
	if (ret)
		return ret;
	ret = lab_nl_dump(nl, RTM_GETLINK, sizeof(struct ifinfomsg), AF_UNSPEC, note_living, &l,
			  "interfaces", e);
	if (!ret)
		ret = lab_node_routes(nl, s, p.node, alive, e);
	return ret ? ret : lab_nl_flush(nl, e);
}

static int heal_end(const struct lab *lab, struct lab_port p, struct lab_error *e)
{
	bool *alive = calloc(lab_port_count(&lab->spec, p.node), sizeof(*alive));
	struct lab_nl nl;
	int ret;

	if (!alive)
		return lab_fail(e, ENOMEM, "out of memory");
	ret = lab_nl_open_on(&nl, lab, p.node, e);
	if (!ret) {
		ret = restore(&nl, &lab->spec, p, alive, e);
		lab_nl_close(&nl);
	}
	free(alive);
	return ret;
}

static struct lab_port lower_end(const struct fabric_cable *c)
{
	return (struct lab_port){.node = c->lower, .up = true, .port = c->q};
}

/* Which ports are up, and routes that follow from it: one at a time, or the last to write
 * would write what was true a moment ago. */
static int both_ends(const struct lab *lab, const struct fabric_cable *c,
		     int (*each)(const struct lab *lab, struct lab_port p, struct lab_error *e),
		     struct lab_error *e)
{
	struct lab_port lower = lower_end(c);
	struct lab_dir dir;
	int ret = lab_dir_open_of(&dir, lab, e);

	if (ret)
		return ret;
	ret = each(lab, lower, e);
	if (!ret)
		ret = each(lab, lab_port_peer(&lab->spec, lower), e);
	lab_dir_close(&dir);
	return ret;
}

int lab_cable_fail(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e)
{
	return both_ends(lab, c, fail_end, e);
}

int lab_cable_heal(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e)
{
	return both_ends(lab, c, heal_end, e);
}
