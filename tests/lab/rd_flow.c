#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "util_clock.h"
#include "rd_flow.h"
#include "rd_peer.h"

/* Longest wait for anything that has no time of its own. */
#define PATIENCE_MS 60000

static void nap(double seconds)
{
	struct timespec ts = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&ts, NULL);
}

/* ---- RD ---- */

/* What the receiver prints beside its own measurements. */
static void note(struct rd_node *n, struct ibv_ah *ah, uint32_t qpn, char *out, size_t size)
{
	struct weftdv_path p = {0};
	struct weftdv_rd_stats s = {0};

	if (weftdv_query_path(n->qp, ah, qpn, &p) || weftdv_query_rd(n->qp, &s))
		die("the path is not known");
	if (p.state == WEFTDV_PATH_LOCAL)
		die("the path does not go over the network");
	snprintf(out, size,
		 "mtu %u, rtt %.1f ms, window %llu KB, sent %llu, lost %llu, again %llu, "
		 "timeouts %llu, RNR %llu",
		 p.mtu, (double)p.rtt / 1e6, (unsigned long long)p.window / 1000,
		 (unsigned long long)p.sent, (unsigned long long)p.lost,
		 (unsigned long long)s.resent, (unsigned long long)p.timeouts,
		 (unsigned long long)s.rnr_received);
}

static uint64_t rd_stream(const struct flow_opts *o, struct rd_node *n, const struct rd_where *to,
			  struct ibv_ah *ah, uint32_t number)
{
	enum ibv_wr_opcode op = o->writes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
	uint64_t end = util_now_ns() + (uint64_t)(o->seconds * 1e9), bytes = 0;
	unsigned int busy = 0;
	struct ibv_wc wc;

	for (;;) {
		bool more = util_now_ns() < end;

		for (; more && busy < FLOW_WINDOW; busy++, bytes += o->size)
			rd_post(n, to, ah, op, 0, number, 0, o->size, 0);
		while (rd_poll(n, &wc))
			busy--;
		if (!busy && !more)
			return bytes;
		if (busy && (busy == FLOW_WINDOW || !more) && !rd_wait(n, PATIENCE_MS))
			die("%u requests do not complete", busy);
	}
}

static void wait_for(int fd, const char *word)
{
	char line[64];

	if (!line_get(fd, line, sizeof(line), PATIENCE_MS) || strcmp(line, word) != 0)
		die("the receiver does not say '%s'", word);
}

static void send_rd(const struct flow_opts *o, int fd)
{
	struct rd_where to;
	struct rd_node n;
	struct ibv_ah *ah;
	char line[256], notes[256];
	uint64_t bytes;
	unsigned int number;
	int skip;

	rd_open(&n, FLOW_SIZE_MAX, FLOW_WINDOW, 1);
	line_put(fd, "rd %s %f %f %u", o->name, o->seconds, o->delay, o->size);
	if (!line_get(fd, line, sizeof(line), PATIENCE_MS) ||
	    sscanf(line, "%u %n", &number, &skip) != 1 || !rd_where_parse(&to, line + skip))
		die("the receiver does not say where it is");
	ah = rd_ah(&n, &to, o->label);
	wait_for(fd, "go");
	nap(o->delay);
	bytes = rd_stream(o, &n, &to, ah, number);
	note(&n, ah, to.qpn, notes, sizeof(notes));
	line_put(fd, "done %llu %s", (unsigned long long)bytes, notes);
	wait_for(fd, "bye");
	ibv_destroy_ah(ah);
	rd_close(&n);
}

/* ---- TCP ---- */

static int data_connection(const struct flow_opts *o, unsigned int number)
{
	struct timeval limit = {.tv_sec = 1};
	int fd = tcp_connect(o->host, o->port);

	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->tcp, (socklen_t)strlen(o->tcp)))
		die("TCP's congestion control '%s': %s", o->tcp, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	line_put(fd, "data %u", number);
	return fd;
}

static uint64_t tcp_stream(const struct flow_opts *o, int fd)
{
	uint64_t end = util_now_ns() + (uint64_t)(o->seconds * 1e9), bytes = 0;
	static char buf[FLOW_SIZE_MAX];

	while (util_now_ns() < end) {
		ssize_t n = send(fd, buf, o->size, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			die("TCP: %s", strerror(errno));
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	return bytes;
}

static void send_tcp(const struct flow_opts *o, int fd)
{
	unsigned int number;
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	uint64_t bytes;
	char line[64];
	int data;

	line_put(fd, "tcp %s %f %f %u", o->name, o->seconds, o->delay, o->size);
	if (!line_get(fd, line, sizeof(line), PATIENCE_MS) || sscanf(line, "%u", &number) != 1)
		die("the receiver does not answer");
	data = data_connection(o, number);
	wait_for(fd, "go");
	nap(o->delay);
	bytes = tcp_stream(o, data);
	getsockopt(data, IPPROTO_TCP, TCP_INFO, &info, &len);
	line_put(fd, "done %llu %s, rtt %.1f ms, window %u KB, again %u", (unsigned long long)bytes,
		 o->tcp, (double)info.tcpi_rtt / 1e3, info.tcpi_snd_cwnd * info.tcpi_snd_mss / 1000,
		 info.tcpi_total_retrans);
	wait_for(fd, "bye");
	close(data);
}

int flow_send(const struct flow_opts *o)
{
	int fd = tcp_connect(o->host, o->port);

	if (o->tcp)
		send_tcp(o, fd);
	else
		send_rd(o, fd);
	close(fd);
	return 0;
}

/* ---- options ---- */

static const char usage[] =
	"Usage: rd_flow recv [-p PORT] [-n SENDERS] [-O OMIT] [-T LIMIT] [--json]\n"
	"       rd_flow send HOST [-p PORT] [-t SECONDS] [-d DELAY] [-s SIZE] [-w] [-l LABEL]\n"
	"                    [-N NAME] [-c TCP-CONGESTION-CONTROL]";

static void option(struct flow_opts *o, int c)
{
	switch (c) {
	case 'p':
		o->port = (uint16_t)atoi(optarg);
		break;
	case 'n':
		o->senders = atoi(optarg);
		break;
	case 'O':
		o->omit = atof(optarg);
		break;
	case 'T':
		o->limit = atof(optarg);
		break;
	case 't':
		o->seconds = atof(optarg);
		break;
	case 'd':
		o->delay = atof(optarg);
		break;
	case 's':
		o->size = (uint32_t)atol(optarg);
		break;
	case 'l':
		o->label = (uint32_t)atol(optarg);
		break;
	case 'N':
		o->name = optarg;
		break;
	case 'c':
		o->tcp = optarg;
		break;
	case 'w':
		o->writes = true;
		break;
	case 'j':
		o->json = true;
		break;
	default:
		die("%s", usage);
	}
}

int main(int argc, char **argv)
{
	static const struct option lengthy[] = {{"json", no_argument, NULL, 'j'}, {0}};
	struct flow_opts o = {
		.port = 7471, .size = 65536, .seconds = 4, .limit = 60, .senders = 1, .name = "-"};
	int c;

	while ((c = getopt_long(argc, argv, "p:n:O:T:t:d:s:l:N:c:wj", lengthy, NULL)) >= 0)
		option(&o, c);
	argv += optind;
	argc -= optind;
	if (!o.size || o.size > FLOW_SIZE_MAX || o.senders < 1 || o.senders > FLOW_MAX)
		die("%s", usage);
	if (argc == 1 && !strcmp(argv[0], "recv"))
		return flow_recv(&o);
	if (argc != 2 || strcmp(argv[0], "send") != 0)
		die("%s", usage);
	o.host = argv[1];
	return flow_send(&o);
}
