/* weft-verbs-perf: verbs devices, measured as 1:n n:1 ping-pong and otherwise. `weft bench verbs`
 * becomes this program, on the software RNIC. See --help. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fan_hosts.h"
#include "fan_out.h"
#include "fan_stop.h"

static const struct kind {
	const char *name;
	int (*run)(struct fan_root *root, struct fan_out *out);
	bool alone; /* needs no peers */
} kinds[] = {
	{"pingpong", fan_pingpong, false},
	{"conns", fan_conns, false},
	{"overhead", fan_overhead, false},
	{"reg", fan_reg, true},
	{0},
};

static int list_types(void)
{
	for (const struct fan_type *t = fan_types; t->name; t++)
		printf("%-10s %s %-10s  %s%s\n", t->name, fan_service_name(t->service),
		       fan_func_name(t->func), t->why ? "none: " : "", t->why ? t->why : t->how);
	return 0;
}

/* Whether the device can do what is asked for at all; says so if not. */
static int open_device(struct fan_root *root, const struct fan_opts *o)
{
	root->env = (struct bench_env){.role = BENCH_CLIENT,
				       .ctl = {.fd = -1},
				       .dev_name = o->dev,
				       .ib_port = o->ib_port,
				       .gid_index = o->gid_index};
	return bench_dev_get(&root->env);
}

static int run(const struct kind *kind, const struct fan_opts *o)
{
	static struct fan_root root;
	unsigned int cores = fan_cores();
	const char *link = "none";
	struct fan_out out;
	int ret = 0, err;

	if (!kind->alone)
		ret = fan_hosts_start(o, &root, &link);
	else
		fan_pin(o, 0);
	if (!ret)
		ret = open_device(&root, o);
	if (!ret) {
		fan_stop_catch();
		fan_out_begin(&out, o, cores, &root, link);
		ret = kind->run(&root, &out);
		err = fan_out_keep(&out, true);
		if (!ret)
			ret = err;
		fan_out_end(&out);
	}
	fan_root_bye(&root);
	fan_hosts_stop();
	if (ret)
		fprintf(stderr, "weft bench verbs: %s: %s\n", o->kind, strerror(-ret));
	if (fan_stop_told())
		return 128 + fan_stop_told();
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct fan_opts o;
	int ret = fan_opts_parse(&o, argc, argv);

	if (ret)
		return ret > 0 ? 0 : 2;
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(o.kind, "list"))
		return list_types();
	if (!strcmp(o.kind, "serve"))
		return fan_server(&o, -1) ? 1 : 0;
	for (const struct kind *k = kinds; k->name; k++)
		if (!strcmp(o.kind, k->name))
			return run(k, &o);
	fprintf(stderr, "weft bench verbs: `%s` is not a kind; try `weft bench verbs --help`.\n",
		o.kind);
	return 2;
}
