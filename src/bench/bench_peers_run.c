/* The client's part of `weft-perf peers`: goes up in powers of two and makes the table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_json.h"
#include "bench_peers.h"
#include "bench_proc.h"
#include "bench_time.h"

#define MAX_LEVELS 16
#define SETTLE_NS  (2 * BENCH_S)
#define IDLE_US    500000 /* after traffic; long against every timer of a living peer */

/* Client's and server's holdings at one number of peers. */
struct level {
	unsigned int n;
	struct bench_holding connected[2], used[2], idle[2];
};

static int ask(struct bench_env *env, uint32_t op)
{
	struct bench_msg msg = {.op = op};

	return bench_ctl_send(&env->ctl, &msg);
}

static int answer(struct bench_env *env)
{
	return bench_ctl_expect(&env->ctl, BENCH_OP_RESULT, NULL, 60000);
}

static int snap(struct bench_env *env, struct bench_holding h[2])
{
	int ret = ask(env, BENCH_OP_SNAP);

	if (!ret)
		ret = answer(env);
	if (!ret)
		ret = bench_ctl_read(&env->ctl, &h[1], sizeof(h[1]), 5000);
	bench_holding_take(&h[0]);
	return ret;
}

/* A device may make its connections in the background: wait until nothing changes. */
static int settle(struct bench_env *env, struct bench_holding h[2])
{
	uint64_t deadline = bench_now() + SETTLE_NS;
	struct bench_holding last[2];
	int ret = snap(env, h);

	do {
		memcpy(last, h, sizeof(last));
		usleep(50000);
		ret = ret ? ret : snap(env, h);
	} while (!ret && bench_now() < deadline &&
		 (h[0].tcp != last[0].tcp || h[1].tcp != last[1].tcp || h[0].fds != last[0].fds ||
		  h[1].fds != last[1].fds));
	return ret;
}

static bool is_rd(const struct bench_opts *opts)
{
	for (int i = 0; opts->kinds[i]; i++)
		if (opts->kinds[i] == &bench_kind_rd)
			return true;
	return false;
}

static int grow(struct bench_env *env, struct bench_peers *p, unsigned int n,
		const struct bench_opts *opts)
{
	struct bench_msg msg = {.op = BENCH_OP_PEERS, .arg = {n, opts->max_peers, is_rd(opts)}};
	int ret = bench_ctl_send(&env->ctl, &msg), theirs;

	if (!ret)
		ret = answer(env);
	if (ret)
		return ret;
	ret = bench_peers_grow(p, n);
	theirs = answer(env);
	return ret ? ret : theirs;
}

static int touch(struct bench_env *env, struct bench_peers *p)
{
	int ret = ask(env, BENCH_OP_TOUCH), theirs;

	if (ret)
		return ret;
	ret = bench_peers_touch(p);
	theirs = answer(env);
	return ret ? ret : theirs;
}

static int measure(struct bench_env *env, struct bench_peers *p, struct level *l,
		   const struct bench_opts *opts)
{
	int ret = grow(env, p, l->n, opts);

	if (!ret)
		ret = settle(env, l->connected);
	if (!ret && l->n)
		ret = touch(env, p);
	if (!ret)
		ret = snap(env, l->used);
	if (!ret && l->n)
		usleep(IDLE_US);
	if (!ret)
		ret = snap(env, l->idle);
	return ret;
}

static json_t *holding_json(const struct bench_holding *h)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "rss", (json_int_t)h->rss, "pss", (json_int_t)h->pss, "private_dirty",
			 (json_int_t)h->private_dirty, "heap", (json_int_t)h->heap, "fds",
			 (json_int_t)h->fds, "socket_fds", (json_int_t)h->socket_fds, "tcp",
			 (json_int_t)h->tcp, "udp", (json_int_t)h->udp, "kernel_queued",
			 (json_int_t)h->queued, "rcvbuf", (json_int_t)h->rcvbuf, "sndbuf",
			 (json_int_t)h->sndbuf, "ns_tcp", (json_int_t)h->ns_tcp, "ns_udp",
			 (json_int_t)h->ns_udp, "tcp_mem_pages", (json_int_t)h->tcp_mem_pages);
}

static json_t *both_json(const struct bench_holding h[2])
{
	return json_pack("{s:o, s:o}", "client", holding_json(&h[0]), "server",
			 holding_json(&h[1]));
}

static json_t *level_json(const struct level *l)
{
	return json_pack("{s:I, s:o, s:o, s:o}", "peers", (json_int_t)l->n, "connected",
			 both_json(l->connected), "used", both_json(l->used), "idle",
			 both_json(l->idle));
}

static double per(uint64_t now, uint64_t then, unsigned int n)
{
	return ((double)now - (double)then) / (n ? n : 1);
}

static void print_row(const char *state, unsigned int n, const struct bench_holding *h,
		      const struct bench_holding *zero)
{
	printf("%6u %-9s %6llu %6llu %6llu %10.0f %10.0f %10.0f %10.0f %10.0f %10.0f\n", n, state,
	       (unsigned long long)h->fds, (unsigned long long)h->tcp, (unsigned long long)h->udp,
	       (double)h->rss / 1024, (double)h->heap / 1024, per(h->heap, zero->heap, n),
	       per(h->pss, zero->pss, n), per(h->private_dirty, zero->private_dirty, n),
	       per(h->queued, zero->queued, n));
}

static void print_side(const char *what, int side, const struct level *l, size_t n)
{
	printf("# %s; the last four columns are bytes per peer beyond the first row\n", what);
	printf("#%5s %-9s %6s %6s %6s %10s %10s %10s %10s %10s %10s\n", "peers", "after", "fds",
	       "tcp", "udp", "rss[KiB]", "heap[KiB]", "heap", "pss", "dirty", "kernel");
	for (size_t i = 0; i < n; i++) {
		print_row(i ? "connect" : "open", l[i].n, &l[i].connected[side],
			  &l[0].connected[side]);
		if (!i)
			continue;
		print_row("traffic", l[i].n, &l[i].used[side], &l[0].connected[side]);
		print_row("idleness", l[i].n, &l[i].idle[side], &l[0].connected[side]);
	}
}

/* What an idle peer may cost is asked at every number of peers that has a target. */
static json_t *targets_json(const char *kind, const struct level *l, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct bench_target *t = bench_target_find("peers", kind, "", l[i].n);
		double heap = per(l[i].idle[0].heap, l[0].connected[0].heap, l[i].n);
		char what[64];

		if (!t)
			continue;
		snprintf(what, sizeof(what), "heap per idle peer, %u peers [bytes]: %s", l[i].n,
			 kind);
		json_array_append_new(list, bench_json_target(what, t, heap, NULL));
	}
	return list;
}

static int report(struct bench_env *env, const struct bench_opts *opts, const struct level *l,
		  size_t n)
{
	json_t *doc = bench_json_document(env, opts), *list = json_array();
	bool rd = is_rd(opts);
	uint64_t objects = rd ? 0 : bench_socket_objects();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, level_json(&l[i]));
	json_object_set_new(doc, "results", list);
	json_object_set_new(doc, "targets", targets_json(rd ? "rd" : "rc", l, n));
	json_object_set_new(doc, "type", json_string(rd ? "rd" : "rc"));
	if (!rd)
		json_object_set_new(doc, "kernel_objects_per_socket",
				    json_integer((json_int_t)objects));
	if (bench_json_is_table(opts)) {
		print_side(rd ? "client: peers of one RD queue pair" : "client: RC connections", 0,
			   l, n);
		print_side(rd ? "server: RD queue pairs with one peer" : "server: RC connections",
			   1, l, n);
		printf("# kernel: data queued and reserved by the process's sockets (sock_diag)");
		if (objects)
			printf("; beside it %llu bytes of\n# kernel objects per socket "
			       "(/proc/slabinfo)",
			       (unsigned long long)objects);
		printf("\n\n");
	}
	return bench_json_write(opts, doc);
}

int bench_peers_run(struct bench_env *env, const struct bench_opts *opts)
{
	struct bench_peers *p = bench_peers_make(env, opts->max_peers, is_rd(opts));
	static struct level level[MAX_LEVELS];
	size_t n = 0;
	int ret = p ? 0 : -ENODEV;

	for (unsigned int peers = 0; !ret && peers <= opts->max_peers && n < MAX_LEVELS;
	     peers = peers ? peers * 2 : 1) {
		bench_progress(opts, "peers: %u", peers);
		level[n].n = peers;
		ret = measure(env, p, &level[n], opts);
		if (!ret)
			n++;
		else
			fprintf(stderr, "weft-perf: peers: stopped at %u: %s\n", peers,
				strerror(-ret));
	}
	if (n) {
		int err = report(env, opts, level, n);

		ret = ret ? ret : err;
	}
	bench_peers_free(p);
	return ret;
}
