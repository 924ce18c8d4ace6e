/* weft lab show --json; weft-lab(1) documents the format. */
#include "cli_lab_show.h"

#include <arpa/inet.h>

static json_t *node_name(struct fabric_node n)
{
	char name[FABRIC_NAME_MAX];

	fabric_name(n, name);
	return json_string(name);
}

static json_t *cable_name(const struct fabric_pgft *t, const struct fabric_cable *c)
{
	char name[FABRIC_CABLE_NAME_MAX];

	fabric_cable_name(t, c, name);
	return json_string(name);
}

static json_t *host(const struct lab_spec *s, struct fabric_node n)
{
	json_t *addresses = json_array(), *uplinks = json_array();
	char hostname[LAB_HOST_NAME_MAX], addr[16];

	for (uint32_t a = 0; a < 1u << s->routing.lmc; a++) {
		cli_lab_address(s, n, a, addr);
		json_array_append_new(addresses, json_string(addr));
	}
	for (uint32_t q = 0; q < fabric_up_ports(&s->tree, 0); q++) {
		struct fabric_cable c = fabric_cable_up(&s->tree, n, q);

		json_array_append_new(uplinks, cable_name(&s->tree, &c));
	}
	lab_host_name(s, n, hostname);
	return json_pack("{s:o, s:s, s:o, s:o}", "name", node_name(n), "hostname", hostname,
			 "addresses", addresses, "uplinks", uplinks);
}

static json_t *hosts(const struct lab_spec *s)
{
	json_t *list = json_array();

	for (uint32_t j = 0; j < fabric_hosts(&s->tree); j++)
		json_array_append_new(list, host(s, fabric_node(&s->tree, j)));
	return list;
}

static json_t *switches(const struct lab_spec *s)
{
	json_t *list = json_array();
	char addr[16];

	for (uint32_t i = fabric_hosts(&s->tree); i < fabric_nodes(&s->tree); i++) {
		struct fabric_node n = fabric_node(&s->tree, i);

		cli_lab_address(s, n, 0, addr);
		json_array_append_new(list,
				      json_pack("{s:o, s:I, s:s}", "name", node_name(n), "level",
						(json_int_t)n.level, "address", addr));
	}
	return list;
}

static json_t *end(struct fabric_node n, bool up, uint32_t port)
{
	char name[LAB_PORT_MAX];

	lab_port_name(n, up, port, name);
	return json_pack("{s:o, s:s}", "node", node_name(n), "port", name);
}

static json_t *flow(const struct lab_flow *f)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f}", "bytes", (json_int_t)f->bytes, "packets",
			 (json_int_t)f->packets, "drops", (json_int_t)f->drops, "backlog",
			 (json_int_t)f->backlog, "utilisation", f->utilisation);
}

static json_t *links(const struct cli_lab_measure *m)
{
	const struct fabric_pgft *t = &m->lab->spec.tree;
	json_t *list = json_array();

	for (uint32_t i = 0; i < m->cables; i++) {
		struct fabric_cable c = fabric_cable(t, i);

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "name", cable_name(t, &c),
					"lower", end(c.lower, true, c.q), "upper",
					end(c.upper, false, c.r), "alive", (int)m->now[i].alive,
					"up", flow(&m->now[i].up), "down", flow(&m->now[i].down)));
	}
	return list;
}

static json_t *destination(const struct lab_route *r)
{
	char addr[INET_ADDRSTRLEN], text[32];

	if (r->prefix == 0)
		return json_string("default");
	inet_ntop(AF_INET, &r->dst, addr, sizeof(addr));
	if (r->prefix == 32)
		return json_string(addr);
	snprintf(text, sizeof(text), "%s/%u", addr, r->prefix);
	return json_string(text);
}

static int add_route(const struct lab_route *r, void *arg)
{
	json_t *ports = json_array();

	for (uint32_t i = 0; i < r->count; i++)
		json_array_append_new(ports, json_string(r->port[i]));
	json_array_append_new(arg, json_pack("{s:o, s:o, s:o}", "node", node_name(r->node),
					     "destination", destination(r), "ports", ports));
	return 0;
}

json_t *cli_lab_all(const struct cli_lab_measure *m, struct lab_error *e)
{
	json_t *all, *routes = json_array();

	if (lab_routes(m->lab, add_route, routes, e)) {
		json_decref(routes);
		return NULL;
	}
	all = cli_lab_head(m->lab);
	json_object_set_new(all, "seconds", json_real(m->seconds));
	json_object_set_new(all, "hosts", hosts(&m->lab->spec));
	json_object_set_new(all, "switches", switches(&m->lab->spec));
	json_object_set_new(all, "links", links(m));
	json_object_set_new(all, "routes", routes);
	return all;
}
