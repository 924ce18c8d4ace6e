/* The devices: Weft's own from the layer below, hardware from rdma-core. */
#include "cli_facts.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "util_tune.h"
#include "rnic.h"

static json_t *guid_string(__be64 guid)
{
	uint64_t g = be64toh(guid);
	char text[20];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(g >> 48) & 0xffff,
		 (unsigned int)(g >> 32) & 0xffff, (unsigned int)(g >> 16) & 0xffff,
		 (unsigned int)g & 0xffff);
	return json_string(text);
}

static const char *state_string(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_ACTIVE:
		return "active";
	case IBV_PORT_DOWN:
		return "down";
	default:
		return "not ready";
	}
}

static json_t *gids(const struct rnic_device *dev)
{
	json_t *list = json_array();

	for (int i = 0; i < dev->n_addr; i++) {
		char addr[INET_ADDRSTRLEN], gid[INET6_ADDRSTRLEN];

		inet_ntop(AF_INET, &dev->addr[i].addr, addr, sizeof(addr));
		snprintf(gid, sizeof(gid), "::ffff:%s", addr);
		json_array_append_new(list,
				      json_pack("{s:i, s:s, s:s, s:s, s:i}", "index", i, "gid", gid,
						"address", addr, "netdev", dev->addr[i].netdev,
						"mtu", (int)dev->addr[i].mtu));
	}
	return list;
}

/* Opens the device as a program would, so that "active" is not a guess. */
static void add_port(json_t *entry, const struct rnic_device *dev)
{
	struct ibv_port_attr port = {0};
	struct ibv_context *ctx = rnic_open_device((struct ibv_device *)&dev->ibv);
	int err = ctx ? rnic_query_port(ctx, 1, &port) : errno;

	if (err)
		json_object_set_new(entry, "error", json_string(strerror(err)));
	json_object_set_new(entry, "state",
			    json_string(err ? "unusable" : state_string(port.state)));
	if (!err)
		json_object_set_new(entry, "lid", json_integer(port.lid));
	if (ctx)
		rnic_close_device(ctx);
}

static void add_software(json_t *list)
{
	const struct rnic_device *dev = rnic_device_get();
	json_t *entry;

	if (!dev)
		return;
	entry = json_pack("{s:s, s:s, s:o, s:o}", "name", dev->ibv.name, "kind", "software", "guid",
			  guid_string(rnic_device_guid(&dev->ibv)), "gids", gids(dev));
	add_port(entry, dev);
	json_object_set_new(entry, "costs", cli_facts_costs(dev->ibv.name));
	json_array_append_new(list, entry);
}

/* rdma-core's library, loaded by its own path: it is optional, and in an
 * environment made by `weft env` the name alone would give Weft's. */
struct real_verbs {
	void *handle;
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	__be64 (*get_device_guid)(struct ibv_device *);
};

static int real_verbs_open(struct real_verbs *v)
{
	char *path = cli_real_verbs();

	v->handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	free(path);
	if (!v->handle)
		return -ENOENT;
	*(void **)&v->get_device_list = dlsym(v->handle, "ibv_get_device_list");
	*(void **)&v->free_device_list = dlsym(v->handle, "ibv_free_device_list");
	*(void **)&v->get_device_guid = dlsym(v->handle, "ibv_get_device_guid");
	if (v->get_device_list && v->free_device_list && v->get_device_guid)
		return 0;
	dlclose(v->handle);
	return -ENOSYS;
}

static void add_hardware(json_t *list)
{
	struct real_verbs v;
	struct ibv_device **devices;
	int n = 0;

	if (real_verbs_open(&v))
		return;
	devices = v.get_device_list(&n);
	for (int i = 0; devices && i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name",
						      devices[i]->name, "kind", "hardware", "guid",
						      guid_string(v.get_device_guid(devices[i])),
						      "costs", cli_facts_costs(devices[i]->name)));
	if (devices)
		v.free_device_list(devices);
	dlclose(v.handle);
}

json_t *cli_facts_devices(void)
{
	json_t *list = json_array();

	add_software(list);
	add_hardware(list);
	return list;
}
