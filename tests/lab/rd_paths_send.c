#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "util_clock.h"
#include "rd_paths.h"
#include "rd_peer.h"

#define SAMPLE_MS   20
#define SAMPLES_MAX 2000
/* How often a silent path is tried: whatever is posted after such a message waits for it. */
#define TRY_MS 500
/* Longest wait for a word of the receiver. */
#define PATIENCE_MS 20000

struct way {
	struct ibv_ah *ah;
	uint32_t posted, busy;
	uint64_t last;                   /* when something was posted */
	uint32_t free[PATHS_WINDOW_MAX]; /* slots; those of [0, window - busy) are */
};

struct sample {
	double when; /* seconds since 1970 */
	uint32_t done;
	struct weftdv_path path[PATHS_MAX];
};

struct sender {
	const struct paths_opts *o;
	struct rd_node n;
	struct rd_where to;
	struct way way[PATHS_MAX];
	uint32_t n_ways, posted, done;
	int ctl;
	uint64_t end, limit;
	uint64_t last, gap; /* the last completion, the longest time without one */
	uint64_t next_sample;
	uint32_t n_samples;
	struct sample sample[SAMPLES_MAX];
};

static struct sender s;

/* ---- what the device says of the paths ---- */

static uint32_t state_of(uint32_t way)
{
	struct weftdv_path p;

	return weftdv_query_path(s.n.qp, s.way[way].ah, s.to.qpn, &p) ? WEFTDV_PATH_NEW : p.state;
}

static void take_sample(void)
{
	struct sample *x = &s.sample[s.n_samples];
	struct timespec ts;

	if (s.n_samples == SAMPLES_MAX)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	x->when = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	x->done = s.done;
	for (uint32_t i = 0; i < s.n_ways; i++)
		if (weftdv_query_path(s.n.qp, s.way[i].ah, s.to.qpn, &x->path[i]))
			x->path[i] = (struct weftdv_path){.state = WEFTDV_PATH_NEW};
	s.n_samples++;
}

static void print_path(const struct weftdv_path *p, bool first)
{
	static const char *const state[] = {[WEFTDV_PATH_NEW] = "new",
					    [WEFTDV_PATH_ACTIVE] = "active",
					    [WEFTDV_PATH_SILENT] = "silent",
					    [WEFTDV_PATH_LOCAL] = "local"};

	printf("%s{\"state\": \"%s\", \"rtt_ms\": %.3f, \"least_ms\": %.3f, \"us_per_kb\": %.3f, "
	       "\"completions\": %llu, \"bytes\": %llu, \"window\": %llu, \"flight\": %llu, "
	       "\"sent\": %llu, \"lost\": %llu, \"timeouts\": %llu}",
	       first ? "" : ", ", state[p->state], (double)p->rtt / 1e6, (double)p->rtt_min / 1e6,
	       (double)p->completion / 1e3, (unsigned long long)p->completions,
	       (unsigned long long)p->bytes, (unsigned long long)p->window,
	       (unsigned long long)p->flight, (unsigned long long)p->sent,
	       (unsigned long long)p->lost, (unsigned long long)p->timeouts);
}

static void report(double seconds)
{
	struct weftdv_rd_stats st;

	if (weftdv_query_rd(s.n.qp, &st))
		die("the queue pair is not known");
	printf("{\"messages\": %u, \"seconds\": %.3f, \"gap_ms\": %.1f, \"peers\": %llu, "
	       "\"resent\": %llu, \"deaths\": %llu, \"samples\": [\n",
	       s.done, seconds, (double)s.gap / 1e6, (unsigned long long)st.peers,
	       (unsigned long long)st.resent, (unsigned long long)st.deaths);
	for (uint32_t i = 0; i < s.n_samples; i++) {
		printf("%s{\"when\": %.6f, \"done\": %u, \"paths\": [", i ? ",\n" : "",
		       s.sample[i].when, s.sample[i].done);
		for (uint32_t j = 0; j < s.n_ways; j++)
			print_path(&s.sample[i].path[j], !j);
		printf("]}");
	}
	printf("]}\n");
}

/* ---- sending ---- */

static bool wants(uint32_t i, bool more)
{
	const struct way *w = &s.way[i];

	if (!more || w->posted == s.o->messages || w->busy == s.o->window ||
	    (s.o->only >= 0 && i != (uint32_t)s.o->only))
		return false;
	return !s.o->avoid || state_of(i) != WEFTDV_PATH_SILENT ||
	       (!w->busy && util_now_ns() - w->last > TRY_MS * UTIL_NS_PER_MS);
}

static void post_one(uint32_t i)
{
	struct way *w = &s.way[i];
	uint32_t slot = w->free[s.o->window - ++w->busy];
	uint32_t len = paths_length(s.o->seed, s.o->size, s.posted);
	size_t at = (size_t)slot * PATHS_SIZE_MAX;

	paths_fill(s.o->seed, s.posted, s.n.buf + at, len);
	rd_post(&s.n, &s.to, w->ah, IBV_WR_SEND_WITH_IMM, slot, s.posted, at, len, 0);
	w->last = util_now_ns();
	w->posted++;
	s.posted++;
}

/* In turn, so that neighbours in the order of messages go different ways. */
static bool post_all(bool more)
{
	bool any, ever = false;

	do {
		any = false;
		for (uint32_t i = 0; i < s.n_ways; i++)
			if (wants(i, more)) {
				post_one(i);
				any = ever = true;
			}
	} while (any);
	return ever;
}

static void take_completions(void)
{
	uint64_t now = util_now_ns();
	struct ibv_wc wc;

	while (rd_poll(&s.n, &wc)) {
		struct way *w = &s.way[wc.wr_id / s.o->window];

		w->free[s.o->window - w->busy--] = (uint32_t)wc.wr_id;
		s.done++;
		if (now - s.last > s.gap)
			s.gap = now - s.last;
		s.last = now;
	}
}

static void stream(void)
{
	uint64_t now = util_now_ns();
	bool more = true;

	s.last = s.next_sample = now;
	s.end = now + (uint64_t)(s.o->seconds * 1e9);
	s.limit = now + (uint64_t)(s.o->limit * 1e9);
	while (more || s.done < s.posted) {
		now = util_now_ns();
		if (now >= s.next_sample) {
			take_sample();
			s.next_sample = now + SAMPLE_MS * UTIL_NS_PER_MS;
		}
		take_completions();
		more = more && now < s.end && (post_all(more) || s.done < s.posted);
		if (now > s.limit)
			die("hangs: %u posted, %u done", s.posted, s.done);
		if (more || s.done < s.posted)
			rd_wait(&s.n, SAMPLE_MS);
	}
	take_sample();
}

/* ---- the paths ---- */

static void get_line(char *line, size_t size)
{
	if (!line_get(s.ctl, line, size, PATIENCE_MS))
		die("the receiver does not say where it is");
}

static void meet(void)
{
	char line[RD_WHERE_LEN];
	uint32_t there;

	s.ctl = tcp_connect(s.o->host, s.o->port);
	line_put(s.ctl, "paths %u %llu", s.o->size, (unsigned long long)s.o->seed);
	get_line(line, sizeof(line));
	if (!rd_where_parse(&s.to, line))
		die("where is '%s'?", line);
	get_line(line, sizeof(line));
	there = (uint32_t)atol(line);
	s.n_ways = s.o->addresses ? there : s.o->labels;
	if (!s.n_ways || s.n_ways > PATHS_MAX)
		die("%u paths are too many, or none", s.n_ways);
	for (uint32_t i = 0; i < there; i++) {
		union ibv_gid gid;

		get_line(line, sizeof(line));
		if (inet_pton(AF_INET6, line, gid.raw) != 1)
			die("what is '%s'?", line);
		if (s.o->addresses)
			s.way[i].ah = rd_ah_from(&s.n, (uint8_t)i, &gid, 0);
	}
	for (uint32_t i = 0; i < s.n_ways && !s.o->addresses; i++)
		s.way[i].ah = rd_ah(&s.n, &s.to, i + 1);
}

int paths_send(const struct paths_opts *o)
{
	uint32_t slots = PATHS_MAX * o->window;
	char line[64];
	uint64_t begin;

	s.o = o;
	rd_open(&s.n, (size_t)slots * PATHS_SIZE_MAX, slots, 1);
	meet();
	for (uint32_t i = 0; i < s.n_ways; i++)
		for (uint32_t j = 0; j < o->window; j++)
			s.way[i].free[j] = i * o->window + j;
	fprintf(stderr, "going\n");
	begin = util_now_ns();
	stream();
	report((double)(util_now_ns() - begin) / 1e9);
	line_put(s.ctl, "done %u", s.posted);
	if (!line_get(s.ctl, line, sizeof(line), PATIENCE_MS) || strcmp(line, "bye") != 0)
		die("the receiver has not got everything");
	for (uint32_t i = 0; i < s.n_ways; i++)
		ibv_destroy_ah(s.way[i].ah);
	close(s.ctl);
	rd_close(&s.n);
	return 0;
}
