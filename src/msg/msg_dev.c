/* Devices: opened, and how they reach each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "msg_ep.h"

#define MAX_READS 16 /* of one peer, at once */

static bool is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

struct msg_addr msg_addr_v4(uint32_t ip, uint32_t qpn, uint32_t qkey)
{
	struct msg_addr a = {.prefix = {[10] = 0xff, [11] = 0xff}, .qpn = qpn, .qkey = qkey};

	a.ip = ip;
	return a;
}

struct ibv_ah_attr msg_dev_ah(const struct msg_dev *dev, const struct msg_addr *a)
{
	struct ibv_ah_attr attr = {.port_num = dev->port,
				   .dlid = a->lid,
				   .is_global = dev->global,
				   .grh = {.sgid_index = dev->gid_index, .hop_limit = 64}};

	memcpy(attr.grh.dgid.raw, a->gid, sizeof(a->gid));
	return attr;
}

/* ---- ports ---- */

/* RoCE version 2 with an IPv4 address is routed and needs nothing that is not there anyway; the
 * first GID is that of the port where there is no choice. */
static int choose_gid(struct msg_dev *dev, struct msg_way_port *p, int n)
{
	struct ibv_gid_entry e;

	for (int i = 0; i < n && i <= UINT8_MAX; i++)
		if (!ibv_query_gid_ex(dev->ctx, p->port, (uint32_t)i, &e, 0) &&
		    e.gid_type == IBV_GID_TYPE_ROCE_V2 && is_v4(&e.gid)) {
			p->gid_index = (uint8_t)i;
			memcpy(p->at.gid, e.gid.raw, sizeof(e.gid.raw));
			return 0;
		}
	p->gid_index = 0;
	if (ibv_query_gid(dev->ctx, p->port, 0, &e.gid))
		return -ENODEV;
	memcpy(p->at.gid, e.gid.raw, sizeof(e.gid.raw));
	return 0;
}

/* Further ones serve further paths, if they are named in the same way. */
static void take_port(struct msg_dev *dev, uint8_t num, const struct ibv_port_attr *attr)
{
	struct msg_way_ports *ports = &dev->ports;
	bool global = attr->link_layer == IBV_LINK_LAYER_ETHERNET || !attr->lid;
	struct msg_way_port p = {.port = num,
				 .at = {.lid = global ? 0 : attr->lid,
					.lmc = global || attr->lmc > 7 ? 0 : attr->lmc}};

	if (ports->n == MSG_WAY_PORTS || (ports->n && ports->global != global) ||
	    choose_gid(dev, &p, attr->gid_tbl_len))
		return;
	ports->global = global;
	ports->port[ports->n++] = p;
	if (!dev->mtu || attr->active_mtu < dev->mtu)
		dev->mtu = (uint8_t)attr->active_mtu;
}

static int choose_port(struct msg_dev *dev)
{
	const struct msg_way_port *first;
	struct ibv_device_attr all;
	struct ibv_port_attr port;
	int reads;

	if (ibv_query_device(dev->ctx, &all))
		return -ENODEV;
	reads = all.max_qp_rd_atom < all.max_qp_init_rd_atom ? all.max_qp_rd_atom
							     : all.max_qp_init_rd_atom;
	dev->max_reads = (uint8_t)(reads < 1 ? 1 : reads < MAX_READS ? reads : MAX_READS);
	for (uint8_t i = 1; i <= all.phys_port_cnt; i++) {
		if (ibv_query_port(dev->ctx, i, &port) || port.state != IBV_PORT_ACTIVE)
			continue;
		take_port(dev, i, &port);
	}
	if (!dev->ports.n)
		return -ENODEV;
	first = &dev->ports.port[0];
	dev->port = first->port;
	dev->gid_index = first->gid_index;
	dev->global = dev->ports.global;
	dev->addr.lid = first->at.lid;
	memcpy(dev->addr.gid, first->at.gid, sizeof(first->at.gid));
	return 0;
}

/* ---- devices ---- */

static int open_device(struct msg_dev *dev, struct ibv_device *d, enum msg_transport transport)
{
	bool own = msg_verbs_dv()->is_device(d);
	int err;

	if (transport == MSG_RD && !own)
		return -ENODEV;
	dev->own = own;
	dev->transport = transport == MSG_AUTO ? (own ? MSG_RD : MSG_RC) : transport;
	dev->ctx = ibv_open_device(d);
	if (!dev->ctx)
		return -errno;
	err = choose_port(dev);
	if (err) {
		ibv_close_device(dev->ctx);
		dev->ctx = NULL;
	}
	return err;
}

static int open_named(struct msg_dev *dev, const char *name, enum msg_transport transport)
{
	struct ibv_device **list;
	int n = 0, err = -ENODEV;

	list = ibv_get_device_list(&n);
	if (!list)
		return -errno;
	for (int own = 1; own >= 0 && !dev->ctx; own--)
		for (int i = 0; i < n && !dev->ctx; i++)
			if (msg_verbs_dv()->is_device(list[i]) == (bool)own &&
			    (!name || !strcmp(name, ibv_get_device_name(list[i]))))
				err = open_device(dev, list[i], transport);
	ibv_free_device_list(list);
	return err;
}

/* Only for what this process does with its own memory: no peer gets a key for all of it. Devices
 * without on-demand paging have no such thing. */
static struct ibv_mr *reg_all(struct msg_dev *dev)
{
	return ibv_reg_mr_iova2(dev->pd, NULL, SIZE_MAX, 0,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

int msg_dev_open_conf(const struct msg_dev_conf *conf, struct msg_dev **out)
{
	struct msg_dev *dev;
	int err = msg_verbs_load();

	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	err = open_named(dev, conf->name, conf->transport);
	if (!err) {
		dev->pd = ibv_alloc_pd(dev->ctx);
		err = dev->pd ? 0 : -errno;
	}
	if (!err) {
		dev->all = conf->piecewise ? NULL : reg_all(dev);
		msg_mem_open(dev, conf->cache);
	}
	if (err) {
		msg_dev_close(dev);
		return err;
	}
	*out = dev;
	return 0;
}

int msg_dev_open(const char *name, struct msg_dev **out)
{
	return msg_dev_open_conf(&(struct msg_dev_conf){.name = name}, out);
}

void msg_dev_close(struct msg_dev *dev)
{
	msg_mem_close(dev);
	if (dev->all)
		ibv_dereg_mr(dev->all);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	free(dev);
}

const char *msg_dev_name(const struct msg_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

struct msg_addr msg_dev_addr(const struct msg_dev *dev)
{
	return dev->addr;
}

bool msg_dev_takes_all(const struct msg_dev *dev)
{
	return dev->all;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Tried, since only the device knows whether it has a thread. */
bool msg_dev_moves(const struct msg_dev *dev)
{
	const struct verbs_dv_ops *dv = msg_verbs_dv();
	struct ibv_cq *cq;
	bool yes;

	if (dev->transport != MSG_RD || !verbs_dv_has(dv, serve_cq))
		return false;
	cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	yes = cq && !dv->serve_cq(cq, nothing, NULL);
	if (yes)
		dv->serve_cq(cq, NULL, NULL);
	if (cq)
		ibv_destroy_cq(cq);
	return yes;
}

enum msg_transport msg_dev_transport(const struct msg_dev *dev)
{
	return dev->transport;
}
