/* How labs are written: for people and as JSON. */
#include "cli_lab.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "cli_output.h"

void cli_lab_address(const struct lab_spec *s, struct fabric_node n, uint32_t a, char text[16])
{
	struct in_addr addr = lab_address(s, n, a);

	inet_ntop(AF_INET, &addr, text, INET_ADDRSTRLEN);
}

const char *cli_lab_owner(const struct lab *lab)
{
	return lab->user ? "user" : "root";
}

void cli_lab_texts(const struct lab *lab, struct cli_lab_texts *t)
{
	struct in_addr net = {.s_addr = htonl(lab->spec.net)};
	time_t since = (time_t)lab->since;
	char addr[INET_ADDRSTRLEN];
	struct tm tm;

	fabric_pgft_print(&lab->spec.tree, t->tree);
	fabric_routing_print(&lab->spec.routing, t->routing);
	lab_rate_print(lab->spec.rate, t->rate);
	inet_ntop(AF_INET, &net, addr, sizeof(addr));
	snprintf(t->net, sizeof(t->net), "%s/%u", addr, lab->spec.prefix);
	if (!localtime_r(&since, &tm) || !strftime(t->since, sizeof(t->since), "%F %T", &tm))
		strcpy(t->since, "-");
}

json_t *cli_lab_head(const struct lab *lab)
{
	const struct fabric_pgft *tree = &lab->spec.tree;
	struct cli_lab_texts t;

	cli_lab_texts(lab, &t);
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name",
			 lab->spec.name, "pgft", t.tree, "rate", (json_int_t)lab->spec.rate, "mtu",
			 (json_int_t)lab->spec.mtu, "routing", t.routing, "net", t.net, "owner",
			 cli_lab_owner(lab), "pid", (json_int_t)lab->holder, "since",
			 (json_int_t)lab->since, "host_count", (json_int_t)fabric_hosts(tree),
			 "switch_count", (json_int_t)cli_lab_switches(lab), "link_count",
			 (json_int_t)fabric_cables(tree));
}

void cli_lab_print_json(json_t *value, bool one_line)
{
	cli_print_json(value, (one_line ? JSON_COMPACT : 0) | JSON_REAL_PRECISION(6));
}

void cli_lab_amount(double value, char text[16])
{
	static const char units[] = " kMGTPE";
	const char *u = units;

	/* 999.95 would be written as 1000.0 */
	while (value >= (u == units ? 999.5 : 999.95) && u[1]) {
		value /= 1000;
		u++;
	}
	if (u == units)
		snprintf(text, 16, "%.0f", value);
	else
		snprintf(text, 16, "%.1f%c", value, *u);
}
