#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "rd_paths.h"
#include "rd_peer.h"

#define RECEIVES 256

uint32_t paths_length(uint64_t seed, uint32_t size, uint32_t i)
{
	struct util_rand r;

	util_rand_seed(&r, seed);
	util_rand_skip(&r, i);
	return size - (uint32_t)util_rand_below(&r, size / 16 + 1);
}

void paths_fill(uint64_t seed, uint32_t i, uint8_t *buf, size_t len)
{
	struct util_rand r;

	util_rand_seed(&r, ~seed + ((uint64_t)i << 32));
	util_rand_bytes(&r, buf, len);
}

/* ---- the receiver ---- */

struct receiver {
	struct rd_node n;
	int ctl;
	uint64_t seed, limit;
	uint32_t size, received, want;
	bool said; /* the sender has said how many it sent */
};

static void check_message(struct receiver *r, const struct ibv_wc *wc)
{
	static uint8_t right[PATHS_SIZE_MAX];
	uint32_t i = r->received++, len = paths_length(r->seed, r->size, i);
	const uint8_t *buf = r->n.buf + wc->wr_id * PATHS_SIZE_MAX;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != i)
		die("message %u came as number %u", ntohl(wc->imm_data), i);
	if (wc->byte_len != len)
		die("message %u has %u bytes instead of %u", i, wc->byte_len, len);
	paths_fill(r->seed, i, right, len);
	if (memcmp(buf, right, len) != 0)
		die("message %u has wrong bytes", i);
	rd_recv(&r->n, wc->wr_id, (size_t)wc->wr_id * PATHS_SIZE_MAX, PATHS_SIZE_MAX);
}

static void take_messages(struct receiver *r)
{
	struct ibv_wc wc;

	while (rd_poll(&r->n, &wc))
		check_message(r, &wc);
}

static void rest(struct receiver *r)
{
	struct pollfd p[2] = {{.fd = r->n.chan->fd, .events = POLLIN},
			      {.fd = r->said ? -1 : r->ctl, .events = POLLIN}};
	char line[64];

	poll(p, 2, 200);
	if (p[0].revents)
		rd_event(&r->n);
	if (p[1].revents) {
		if (!line_get(r->ctl, line, sizeof(line), 5000) ||
		    sscanf(line, "done %u", &r->want) != 1)
			die("the sender is gone after %u messages", r->received);
		r->said = true;
	}
	if (util_now_ns() > r->limit)
		die("hangs after %u messages of %u", r->received, r->want);
}

static void tell_addresses(struct receiver *r)
{
	char text[RD_WHERE_LEN];
	struct ibv_port_attr port;
	union ibv_gid gid;

	rd_where_print(&r->n, text);
	line_put(r->ctl, "%s", text);
	if (ibv_query_port(r->n.ctx, 1, &port))
		die("the device has no port");
	line_put(r->ctl, "%d", port.gid_tbl_len);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(r->n.ctx, 1, i, &gid))
			die("the device has no address %d", i);
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
		line_put(r->ctl, "%s", text);
	}
}

static void meet(struct receiver *r, const struct paths_opts *o)
{
	struct pollfd p = {.fd = tcp_listen(o->port), .events = POLLIN};
	unsigned long long seed;
	char line[64];

	if (poll(&p, 1, 20000) != 1)
		die("nobody sends");
	r->ctl = accept(p.fd, NULL, NULL);
	close(p.fd);
	if (!line_get(r->ctl, line, sizeof(line), 5000) ||
	    sscanf(line, "paths %u %llu", &r->size, &seed) != 2 || r->size > PATHS_SIZE_MAX)
		die("the sender does not say what it sends");
	r->seed = seed;
	tell_addresses(r);
}

static int paths_recv(const struct paths_opts *o)
{
	struct receiver r = {.limit = util_now_ns() + (uint64_t)(o->limit * 1e9)};

	rd_open(&r.n, (size_t)RECEIVES * PATHS_SIZE_MAX, 1, RECEIVES);
	for (uint64_t i = 0; i < RECEIVES; i++)
		rd_recv(&r.n, i, (size_t)i * PATHS_SIZE_MAX, PATHS_SIZE_MAX);
	meet(&r, o);
	while (!r.said || r.received < r.want) {
		take_messages(&r);
		if (!r.said || r.received < r.want)
			rest(&r);
	}
	take_messages(&r);
	if (r.received > r.want)
		die("%u messages instead of %u", r.received, r.want);
	line_put(r.ctl, "bye");
	close(r.ctl);
	rd_close(&r.n);
	return 0;
}

/* ---- options ---- */

static const char usage[] =
	"Usage: rd_paths recv [-p PORT] [-T LIMIT]\n"
	"       rd_paths send HOST [-p PORT] [-T LIMIT] [-S SEED] [-l LABELS | -a] [-1 PATH]\n"
	"                     [-n MESSAGES] [-t SECONDS] [-s SIZE] [-w WINDOW] [-x]";

static void option(struct paths_opts *o, int c)
{
	switch (c) {
	case 'p':
		o->port = (uint16_t)atoi(optarg);
		break;
	case 'T':
		o->limit = atof(optarg);
		break;
	case 'S':
		o->seed = strtoull(optarg, NULL, 0);
		break;
	case 'l':
		o->labels = (uint32_t)atoi(optarg);
		break;
	case 'a':
		o->addresses = true;
		break;
	case '1':
		o->only = atoi(optarg);
		break;
	case 'n':
		o->messages = (uint32_t)atol(optarg);
		break;
	case 't':
		o->seconds = atof(optarg);
		break;
	case 's':
		o->size = (uint32_t)atol(optarg);
		break;
	case 'w':
		o->window = (uint32_t)atol(optarg);
		break;
	case 'x':
		o->avoid = true;
		break;
	default:
		die("%s", usage);
	}
}

int main(int argc, char **argv)
{
	struct paths_opts o = {.port = 7473,
			       .limit = 40,
			       .seconds = 30,
			       .seed = 1,
			       .labels = 1,
			       .messages = UINT32_MAX,
			       .size = 16384,
			       .window = 8,
			       .only = -1};
	int c;

	while ((c = getopt(argc, argv, "p:T:S:l:a1:n:t:s:w:x")) >= 0)
		option(&o, c);
	argv += optind;
	argc -= optind;
	if (!o.size || o.size > PATHS_SIZE_MAX || !o.labels || o.labels > PATHS_MAX || !o.window ||
	    o.window > PATHS_WINDOW_MAX)
		die("%s", usage);
	if (argc == 1 && !strcmp(argv[0], "recv"))
		return paths_recv(&o);
	if (argc != 2 || strcmp(argv[0], "send") != 0)
		die("%s", usage);
	o.host = argv[1];
	return paths_send(&o);
}
