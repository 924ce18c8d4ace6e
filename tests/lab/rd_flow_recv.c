#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "rd_flow.h"
#include "rd_peer.h"

#define RECEIVES 512

struct flow {
	char name[32], notes[256];
	bool tcp, ended;
	int ctl, data; /* data: the TCP stream, or -1 */
	double seconds, delay;
	uint64_t from, to; /* what arrives between counts */
	uint64_t bytes, counted;
	uint64_t first, last;  /* arrivals */
	uint64_t gap, gap_end; /* the longest time without one */
	uint64_t want;         /* bytes that were sent, once the sender has said so */
	bool said;
};

struct receiver {
	const struct flow_opts *o;
	struct rd_node n;
	struct flow flow[FLOW_MAX];
	int n_flows, n_ended, listener;
	bool going;
};

/* ---- arrivals ---- */

static void arrived(struct receiver *r, uint32_t number, uint64_t bytes)
{
	uint64_t now = util_now_ns();
	struct flow *f;

	if (number >= (uint32_t)r->n_flows)
		die("bytes of a sender that there is not: %u", number);
	f = &r->flow[number];
	if (!f->first)
		f->first = now;
	else if (now - f->last > f->gap) {
		f->gap = now - f->last;
		f->gap_end = now;
	}
	f->last = now;
	f->bytes += bytes;
	if (now >= f->from && now < f->to)
		f->counted += bytes;
}

static void take_messages(struct receiver *r)
{
	struct ibv_wc wc;

	while (rd_poll(&r->n, &wc)) {
		if (!(wc.wc_flags & IBV_WC_WITH_IMM))
			die("a message without a number");
		arrived(r, ntohl(wc.imm_data), wc.byte_len);
		rd_recv(&r->n, 0, 0, FLOW_SIZE_MAX);
	}
}

/* One read at a time, so that a stream does not keep others waiting. */
static void take_stream(struct receiver *r, int number)
{
	struct flow *f = &r->flow[number];
	static char buf[1 << 16];
	ssize_t n = recv(f->data, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		arrived(r, (uint32_t)number, (uint64_t)n);
	else if (!n)
		die("%s: its stream ended too early", f->name);
}

/* ---- senders ---- */

static void begin_all(struct receiver *r)
{
	uint64_t now = util_now_ns();

	r->going = true;
	for (int i = 0; i < r->n_flows; i++) {
		struct flow *f = &r->flow[i];

		f->from = now + (uint64_t)((f->delay + r->o->omit) * 1e9);
		f->to = now + (uint64_t)((f->delay + f->seconds) * 1e9);
		line_put(f->ctl, "go");
	}
}

static bool all_here(const struct receiver *r)
{
	if (r->n_flows < r->o->senders)
		return false;
	for (int i = 0; i < r->n_flows; i++)
		if (r->flow[i].tcp && r->flow[i].data < 0)
			return false;
	return true;
}

static void new_flow(struct receiver *r, int fd, const char *kind, const char *rest)
{
	struct flow *f = &r->flow[r->n_flows];
	char where[RD_WHERE_LEN] = "";

	*f = (struct flow){.ctl = fd, .data = -1, .tcp = !strcmp(kind, "tcp")};
	if (r->n_flows == r->o->senders)
		die("more than %d senders", r->o->senders);
	if (sscanf(rest, "%31s %lf %lf", f->name, &f->seconds, &f->delay) != 3)
		die("what is '%s'?", rest);
	if (!f->tcp)
		rd_where_print(&r->n, where);
	line_put(fd, "%d %s", r->n_flows++, where);
}

static void take_connection(struct receiver *r)
{
	int fd = accept(r->listener, NULL, NULL), number, skip = 0;
	char line[256], kind[8];

	if (fd < 0 || !line_get(fd, line, sizeof(line), 5000) ||
	    sscanf(line, "%7s %n", kind, &skip) != 1)
		die("somebody connected and said nothing");
	if (strcmp(kind, "data") != 0)
		new_flow(r, fd, kind, line + skip);
	else if (sscanf(line + skip, "%d", &number) == 1 && number >= 0 && number < r->n_flows)
		r->flow[number].data = fd;
	if (all_here(r) && !r->going)
		begin_all(r);
}

static void take_line(struct flow *f)
{
	unsigned long long want;
	char line[400];
	int skip = 0;

	if (!line_get(f->ctl, line, sizeof(line), 5000))
		die("%s ended before its time, after %llu bytes", f->name,
		    (unsigned long long)f->bytes);
	if (sscanf(line, "done %llu %n", &want, &skip) != 1)
		die("what is '%s'?", line);
	snprintf(f->notes, sizeof(f->notes), "%.255s", line + skip);
	f->want = want;
	f->said = true;
}

static void end_some(struct receiver *r)
{
	for (int i = 0; i < r->n_flows; i++) {
		struct flow *f = &r->flow[i];

		if (!f->said || f->ended || f->bytes < f->want)
			continue;
		if (f->bytes > f->want)
			die("%s: %llu bytes more than were sent", f->name,
			    (unsigned long long)(f->bytes - f->want));
		f->ended = true;
		r->n_ended++;
		line_put(f->ctl, "bye");
	}
}

/* ---- the loop ---- */

static void watch(struct pollfd *p, int fd)
{
	*p = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void look(struct receiver *r)
{
	struct pollfd p[2 + 2 * FLOW_MAX];
	int n = r->n_flows;

	watch(&p[0], r->n.chan->fd);
	watch(&p[1], r->going ? -1 : r->listener);
	for (int i = 0; i < n; i++) {
		struct flow *f = &r->flow[i];

		watch(&p[2 + 2 * i], f->said ? -1 : f->ctl);
		watch(&p[3 + 2 * i], f->ended ? -1 : f->data);
	}
	poll(p, 2 + 2 * (nfds_t)n, 200);
	if (p[0].revents)
		rd_event(&r->n);
	take_messages(r);
	for (int i = 0; i < n; i++) {
		if (p[2 + 2 * i].revents)
			take_line(&r->flow[i]);
		if (p[3 + 2 * i].revents)
			take_stream(r, i);
	}
	if (p[1].revents)
		take_connection(r);
	end_some(r);
}

static double rate(const struct receiver *r, const struct flow *f)
{
	return (double)f->counted * 8 / (f->seconds - r->o->omit) / 1e6;
}

/* When the longest gap ended, by the clock on the wall. */
static double wall(uint64_t when)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9 - (double)(util_now_ns() - when) / 1e9;
}

static void print_json(const struct receiver *r)
{
	printf("[");
	for (int i = 0; i < r->n_flows; i++) {
		const struct flow *f = &r->flow[i];

		printf("%s\n {\"name\": \"%s\", \"bytes\": %llu, \"seconds\": %.3f, \"mbit\": "
		       "%.2f, "
		       "\"gap_ms\": %.1f, \"gap_end\": %.3f, \"notes\": \"%s\"}",
		       i ? "," : "", f->name, (unsigned long long)f->bytes,
		       (double)(f->last - f->first) / 1e9, rate(r, f), (double)f->gap / 1e6,
		       wall(f->gap_end), f->notes);
	}
	printf("\n]\n");
}

static void print_lines(const struct receiver *r)
{
	for (int i = 0; i < r->n_flows; i++) {
		const struct flow *f = &r->flow[i];

		printf("%-8s %10llu bytes in %.3f s, %.2f Mbit/s, longest gap %.1f ms; %s\n",
		       f->name, (unsigned long long)f->bytes, (double)(f->last - f->first) / 1e9,
		       rate(r, f), (double)f->gap / 1e6, f->notes);
	}
}

int flow_recv(const struct flow_opts *o)
{
	uint64_t end = util_now_ns() + (uint64_t)(o->limit * 1e9);
	static struct receiver r;

	r.o = o;
	rd_open(&r.n, FLOW_SIZE_MAX, 1, RECEIVES);
	for (int i = 0; i < RECEIVES; i++)
		rd_recv(&r.n, 0, 0, FLOW_SIZE_MAX);
	r.listener = tcp_listen(o->port);
	while (r.n_ended < o->senders) {
		look(&r);
		if (util_now_ns() > end)
			die("after %.0f s, %d of %d senders have come and %d have ended", o->limit,
			    r.n_flows, o->senders, r.n_ended);
	}
	if (o->json)
		print_json(&r);
	else
		print_lines(&r);
	for (int i = 0; i < r.n_flows; i++) {
		close(r.flow[i].ctl);
		if (r.flow[i].data >= 0)
			close(r.flow[i].data);
	}
	close(r.listener);
	rd_close(&r.n);
	return 0;
}
