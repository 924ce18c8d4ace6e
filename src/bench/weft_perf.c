/* weft-perf: raw sockets and verbs, measured side by side. See --help. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench_idle.h"
#include "bench_json.h"
#include "bench_mpi.h"
#include "bench_opts.h"
#include "bench_peers.h"
#include "bench_reg.h"
#include "bench_rounds.h"
#include "bench_step.h"
#include "bench_verbs.h"

#define PROTOCOL        "weft-perf 1"
#define HELLO_MS        10000
#define FIRST_CLIENT_MS (600 * 1000)

/* The n-th CPU that this process may use; with only one, everything shares it. Done
 * before any device is opened, so that a device's threads inherit it. */
static void pin(const struct bench_opts *opts, int nth)
{
	cpu_set_t may, set;
	int cpu = opts->cpu;

	if (!opts->pin || sched_getaffinity(0, sizeof(may), &may))
		return;
	for (int i = 0; cpu < 0 && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &may) && (nth-- == 0 || CPU_COUNT(&may) == 1))
			cpu = i;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "weft-perf: cannot run on CPU %d: %s\n", cpu, strerror(errno));
}

static int hello(struct bench_env *env)
{
	struct bench_msg msg = {.op = BENCH_OP_HELLO, .kind = PROTOCOL};
	int ret;

	_Static_assert(sizeof(env->conf) <= sizeof(msg.arg), "the configuration fits");
	memcpy(msg.arg, &env->conf, sizeof(env->conf));
	ret = bench_ctl_send(&env->ctl, &msg);
	if (!ret)
		ret = bench_ctl_expect(&env->ctl, BENCH_OP_HELLO, &msg, HELLO_MS);
	if (!ret && strcmp(msg.kind, PROTOCOL) != 0) {
		fprintf(stderr, "weft-perf: the server speaks `%s`, not `%s`\n", msg.kind,
			PROTOCOL);
		ret = -EPROTO;
	}
	return ret;
}

static int run_client(const struct bench_opts *opts, struct bench_env *env,
		      struct bench_watch *watch)
{
	if (!strcmp(opts->command, "lat"))
		return bench_rounds_run(env, opts, BENCH_LAT);
	if (!strcmp(opts->command, "bw"))
		return bench_rounds_run(env, opts, BENCH_BW);
	if (!strcmp(opts->command, "peers"))
		return bench_peers_run(env, opts);
	return bench_idle_run(env, opts, watch);
}

static struct bench_env make_env(const struct bench_opts *opts, enum bench_role role)
{
	return (struct bench_env){
		.role = role,
		.ctl = {.fd = -1},
		.conf = opts->conf,
		.dev_name = opts->dev,
		.ib_port = opts->ib_port,
		.gid_index = opts->gid_index,
	};
}

/* 0, or -errno after a word on what is wrong. */
static int reach(struct bench_env *env, const struct bench_opts *opts)
{
	const char *host = opts->args[0];
	int ret = bench_ctl_connect(&env->ctl, host, opts->port, opts->wait_ms);

	if (!ret)
		return hello(env);
	if (ret == -ECONNREFUSED)
		fprintf(stderr,
			"weft-perf: nobody listens on port %d of %s; "
			"start `weft-perf server` there first\n",
			opts->port, host);
	return ret;
}

static int client(const struct bench_opts *opts)
{
	struct bench_env env = make_env(opts, BENCH_CLIENT);
	struct bench_msg bye = {.op = BENCH_OP_BYE};
	struct bench_watch watch;
	int ret;

	if (opts->n_args != 1) {
		fprintf(stderr, "weft-perf: %s: which host? Try `weft-perf --help`.\n",
			opts->command);
		return 2;
	}
	ret = bench_watch_start(&watch);
	if (ret)
		goto out;
	pin(opts, 0);
	ret = reach(&env, opts);
	if (!ret) {
		ret = run_client(opts, &env, &watch);
		bench_ctl_send(&env.ctl, &bye);
	}
	bench_dev_close(env.dev);
	bench_ctl_close(&env.ctl);
	bench_watch_stop(&watch);
out:
	if (ret)
		fprintf(stderr, "weft-perf: %s: %s\n", opts->command, strerror(-ret));
	return ret ? 1 : 0;
}

/* One client at a time, each with a device of its own. */
static int server(const struct bench_opts *opts)
{
	struct bench_watch watch;
	int listener, ret = bench_watch_start(&watch);

	if (!ret)
		pin(opts, 1);
	listener = ret ? ret : bench_ctl_listen(opts->bind, opts->port);
	if (listener < 0) {
		fprintf(stderr, "weft-perf: cannot listen on port %d: %s\n", opts->port,
			strerror(-listener));
		return 1;
	}
	do {
		struct bench_env env = make_env(opts, BENCH_SERVER);

		ret = bench_ctl_accept(&env.ctl, listener, opts->keep ? -1 : FIRST_CLIENT_MS);
		if (!ret)
			ret = bench_serve(&env, &watch);
		if (ret)
			fprintf(stderr, "weft-perf: server: %s\n", strerror(-ret));
		bench_dev_close(env.dev);
		bench_ctl_close(&env.ctl);
	} while (opts->keep);
	close(listener);
	bench_watch_stop(&watch);
	return ret ? 1 : 0;
}

/* Commands that need no server. */
static int alone(const struct bench_opts *opts,
		 int (*run)(struct bench_env *env, const struct bench_opts *opts))
{
	struct bench_env env = make_env(opts, BENCH_CLIENT);
	int ret;

	if (opts->n_args) {
		fprintf(stderr, "weft-perf: %s: takes no arguments, and not `%s`\n", opts->command,
			opts->args[0]);
		return 2;
	}
	pin(opts, 0);
	ret = run(&env, opts);
	bench_dev_close(env.dev);
	if (ret)
		fprintf(stderr, "weft-perf: %s: %s\n", opts->command, strerror(-ret));
	return ret ? 1 : 0;
}

static int list_kinds(void)
{
	for (int i = 0; bench_kinds[i]; i++)
		printf("%-16s %s\n", bench_kinds[i]->name, bench_kinds[i]->help);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const clients[] = {"lat", "bw", "peers", "idle"};
	struct bench_opts opts;
	int ret = bench_opts_parse(&opts, argc, argv);

	if (ret)
		return ret > 0 ? 0 : 2;
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(opts.command, "server"))
		return server(&opts);
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		if (!strcmp(opts.command, clients[i]))
			return client(&opts);
	if (!strcmp(opts.command, "reg"))
		return alone(&opts, bench_reg_run);
	if (!strcmp(opts.command, "kinds"))
		return list_kinds();
	if (!strcmp(opts.command, "mpi"))
		return bench_mpi_report(&opts);
	if (!strcmp(opts.command, "report"))
		return bench_summary_report(&opts);
	if (!strcmp(opts.command, "plot"))
		return bench_summary_plot(&opts);
	fprintf(stderr, "weft-perf: `%s` is not a command; try `weft-perf --help`.\n",
		opts.command);
	return 2;
}
