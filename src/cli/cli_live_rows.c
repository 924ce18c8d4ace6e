#include "cli_live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util_clock.h"

/* "fat-h3", or "h3" for short. */
static bool is_host(const char *name, const char *wanted)
{
	size_t len = strlen(name), end = strlen(wanted);

	if (!strcmp(name, wanted))
		return true;
	return len > end && name[len - end - 1] == '-' && !strcmp(name + len - end, wanted);
}

static bool is_wanted(const struct cli_live_rows *r, const struct msg_live_proc *p)
{
	return (!r->host || is_host(p->head.host, r->host)) &&
	       (!r->pid || r->pid == (uint64_t)p->pid);
}

/* The same peer at the look before; NULL: it was not there, so all that it has is new. */
static const struct msg_live_peer *before(const struct cli_live_rows *old,
					  const struct msg_live_proc *p, uint32_t peer)
{
	for (size_t i = 0; i < old->procs; i++) {
		const struct msg_live_proc *o = &old->proc[i];

		if (strcmp(o->name, p->name) != 0)
			continue;
		return peer < o->head.peers && o->peer[peer].paths == p->peer[peer].paths
			       ? &o->peer[peer]
			       : NULL;
	}
	return NULL;
}

/* Counters only grow. */
static double grown(uint64_t now, uint64_t then)
{
	return now > then ? (double)(now - then) : 0;
}

static void fill_row(struct cli_live_row *row, const struct msg_live_peer *then, double seconds)
{
	static const struct msg_live_peer none;

	if (!then)
		then = &none;
	for (uint32_t i = 0; i < row->peer->paths; i++) {
		const struct msg_live_path *a = &then->path[i], *b = &row->peer->path[i];
		double bytes = grown(b->bytes, a->bytes), busy = grown(b->busy, a->busy) / 1e9;

		row->path_rate[i] = seconds > 0 ? bytes / seconds : 0;
		row->busy_rate[i] = busy > 0 ? bytes / busy : 0;
		row->rate += row->path_rate[i];
	}
}

static int add_rows(struct cli_live_rows *r, const struct cli_live_rows *old)
{
	size_t most = 0;

	for (size_t i = 0; i < r->procs; i++)
		most += r->proc[i].head.peers;
	r->row = calloc(most + 1, sizeof(*r->row));
	if (!r->row)
		return -ENOMEM;
	for (size_t i = 0; i < r->procs; i++) {
		const struct msg_live_proc *p = &r->proc[i];

		for (uint32_t k = 0; is_wanted(r, p) && k < p->head.peers; k++) {
			if (!p->peer[k].paths)
				continue;
			r->row[r->rows] = (struct cli_live_row){.proc = p, .peer = &p->peer[k]};
			fill_row(&r->row[r->rows++], before(old, p, k), r->seconds);
		}
	}
	return 0;
}

int cli_live_look(struct cli_live_rows *r, char *why, size_t why_size)
{
	struct cli_live_rows old = *r;
	char path[PATH_MAX] = "";
	int err;

	*r = (struct cli_live_rows){.host = old.host, .pid = old.pid};
	err = msg_live_read(&r->proc, &r->procs, path);
	r->when = util_now_ns();
	r->seconds = old.when ? (double)(r->when - old.when) / 1e9 : 0;
	if (!err)
		err = add_rows(r, &old);
	cli_live_free(&old);
	if (err == -EPERM)
		snprintf(why, why_size,
			 "the directory %.200s, or that above it, can be used by somebody else; "
			 "WEFT_LIVE_DIR can name another one, also to those that are watched",
			 path);
	else if (err)
		snprintf(why, why_size, "cannot read %.200s: %s", path, strerror(-err));
	return err;
}

void cli_live_free(struct cli_live_rows *r)
{
	msg_live_free(r->proc, r->procs);
	free(r->row);
	r->proc = NULL;
	r->row = NULL;
	r->procs = r->rows = 0;
}

/* ---- order ---- */

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_name(const void *a, const void *b)
{
	const struct cli_live_row *x = a, *y = b;
	/* h10 is behind h9 */
	int order = strverscmp(x->proc->head.host, y->proc->head.host);

	if (!order)
		order = by_number((uint64_t)x->proc->pid, (uint64_t)y->proc->pid);
	if (!order)
		order = strcmp(x->proc->name, y->proc->name);
	if (!order)
		order = by_number(ntohl(x->peer->ip), ntohl(y->peer->ip));
	return order ? order : by_number((uintptr_t)x->peer, (uintptr_t)y->peer);
}

/* As it is shown: what carries the same stays where it is. */
static int by_rate(const void *a, const void *b)
{
	const struct cli_live_row *x = a, *y = b;
	int order = by_number((uint64_t)(y->rate / 1e5 + 0.5), (uint64_t)(x->rate / 1e5 + 0.5));

	return order ? order : by_name(a, b);
}

void cli_live_sort(struct cli_live_rows *r, bool busiest)
{
	qsort(r->row, r->rows, sizeof(*r->row), busiest ? by_rate : by_name);
}
