/* Shows paths as an endpoint that divides messages does: path i of each peer carries i + 1 MB/s and
 * weighs as much, path 1 is down and carries nothing.
 *
 *	live_owner POLICY PEERS
 *
 * Says "ready" when it does, and ends when standard input does, or after a minute. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include "msg_live.h"
#include "util_clock.h"

static void show(struct msg_live *l, uint32_t peer, uint32_t paths, uint64_t ns)
{
	struct msg_live_path path[STRIPE_PATHS_MAX] = {0};

	for (uint32_t i = 0; i < paths; i++) {
		path[i].weight = i + 1;
		if (i == 1)
			continue;
		path[i].bytes = ns / 1000 * (i + 1); /* a byte per µs is an MB per second */
		path[i].pieces = path[i].bytes / 1024;
		path[i].busy = ns / 2;
	}
	msg_live_write(l, peer, path, 1 << 1);
}

int main(int argc, char **argv)
{
	uint64_t began = util_now_ns(), now = began;
	struct pollfd in = {.fd = 0, .events = POLLIN};
	struct msg_live *l = msg_live_open();
	struct stripe_conf conf;
	uint32_t peers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
	char why[256];

	if (argc < 2 || !l || stripe_parse(&conf, argv[1], why, sizeof(why)))
		return 1;
	for (uint32_t i = 0; i < peers; i++)
		msg_live_add(l, htonl(0x0a000001 + i), &conf);
	puts("ready");
	fflush(stdout);
	while (now - began < 60 * UTIL_NS_PER_S && !poll(&in, 1, 2)) {
		now = util_now_ns();
		for (uint32_t i = 0; i < peers; i++)
			show(l, i, conf.paths, now - began);
	}
	msg_live_close(l);
	return 0;
}
