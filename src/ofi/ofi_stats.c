/* What endpoints have done, for people to read: when one is closed, and when a signal asks for it.
 * A signal may come at any time, so its handler only leaves word; the next call of the application
 * that looks for completions finds it. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "ofi.h"

static atomic_bool asked;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&asked, true);
}

/* A signal that the application uses stays the application's. */
static void listen_to(int number)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

	if (sigaction(number, NULL, &old) || old.sa_flags & SA_SIGINFO ||
	    old.sa_handler != SIG_DFL || sigaction(number, &sa, NULL))
		OFI_WARN(CORE, "FI_WEFT_STATS: the signal is in use, and prints nothing\n");
}

void ofi_stats_init(void)
{
	if (ofi_conf.stats == OFI_STATS_USR1)
		listen_to(SIGUSR1);
	if (ofi_conf.stats == OFI_STATS_USR2)
		listen_to(SIGUSR2);
}

bool ofi_stats_asked(void)
{
	/* relaxed: the exchange below decides */
	return atomic_load_explicit(&asked, memory_order_relaxed) && atomic_exchange(&asked, false);
}

static int print_ip(char *to, size_t room, const char *before, uint32_t ip)
{
	char text[INET_ADDRSTRLEN];

	return snprintf(to, room, "%s%s", before, inet_ntop(AF_INET, &ip, text, sizeof(text)));
}

static const char *what_paths_are(const struct msg_path_stats *s)
{
	if (s->addresses == s->paths && s->paths > 1)
		return "addresses";
	return s->addresses > 1 ? "addresses and ports" : "ports";
}

/* "weft[1]: with 10.0.0.3 over addresses, 1.5 MB before, by path: 12.0 MB at 95.1 MB/s (0.25), ...
 * to 10.0.0.4, ...": all at once, or lines of several processes would be mixed. */
static void print_paths(struct ofi_ep *ep)
{
	struct msg_path_stats s;
	uint32_t peer = 0;

	while (msg_ep_paths(ep->msg, &peer, &s)) {
		char text[STRIPE_PATHS_MAX * 112] = "", ip[16], before[48] = "";
		size_t at = 0;

		for (uint32_t i = 0; i < s.paths; i++) {
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%.1f MB at %.1f MB/s (%.3g)",
				i ? ", " : "", (double)s.bytes[i] / 1e6,
				s.busy[i] ? (double)s.bytes[i] * 1e3 / (double)s.busy[i] : 0,
				s.weight[i]);
			if (s.to[i] && s.to[i] != s.ip)
				at += (size_t)print_ip(text + at, sizeof(text) - at, " to ",
						       s.to[i]);
		}
		if (s.before)
			snprintf(before, sizeof(before), ", %.1f MB before",
				 (double)s.before / 1e6);
		print_ip(ip, sizeof(ip), "", s.ip);
		fprintf(stderr, "weft[%d]: with %s over %s%s, by path: %s\n", (int)getpid(), ip,
			what_paths_are(&s), before, text);
	}
}

/* "weft[1]: 12 buffers, 3 of them frequent, in a table of 17920 bytes, which grows (stopped 0
 * times, rested 0); 2000 copies of 8192000 bytes saved". */
static void print_reuse(const struct msg_stats *s)
{
	static const char *const does[] = {[MSG_REUSE_GROWS] = "grows",
					   [MSG_REUSE_STOPPED] = "has stopped growing",
					   [MSG_REUSE_RESTS] = "rests"};

	if (s->late)
		fprintf(stderr,
			"weft[%d]: %" PRIu64 " messages went from the application's memory, "
			"and were copied afterwards or not at all\n",
			(int)getpid(), s->late);
	if (s->reuse == MSG_REUSE_OFF)
		return;
	fprintf(stderr,
		"weft[%d]: %u buffers, %u of them frequent, in a table of %" PRIu64
		" bytes, which %s (stopped %" PRIu64 " times, rested %" PRIu64 "); %" PRIu64
		" copies of %" PRIu64 " bytes saved\n",
		(int)getpid(), s->reuse_buffers, s->reuse_frequent, s->reuse_bytes, does[s->reuse],
		s->reuse_stops, s->reuse_rests, s->direct, s->direct_bytes);
}

void ofi_stats_print(struct ofi_ep *ep)
{
	struct msg_stats s;
	uint64_t yields, sleeps;

	msg_ep_stats(ep->msg, &s);
	ofi_idle_stats(&yields, &sleeps);
	fprintf(stderr,
		"weft[%d]: sent %" PRIu64 " eager, %" PRIu64 " read, %" PRIu64 " written, %" PRIu64
		" put, %" PRIu64 " bytes; received %" PRIu64 ", %" PRIu64 " unexpected, %" PRIu64
		" bytes; RTRs sent %" PRIu64 ", hit %" PRIu64 ", came %" PRIu64 ", used %" PRIu64
		", dropped %" PRIu64 ", stale %" PRIu64 "; reads %" PRIu64 ", writes %" PRIu64
		", atomics %" PRIu64 "; packets %" PRIu64 ", sent again %" PRIu64
		"; registrations cached %" PRIu64 ", made %" PRIu64 "; yields %" PRIu64
		", sleeps %" PRIu64 "\n",
		(int)getpid(), s.eager, s.read, s.written, s.put, s.bytes_sent, s.received,
		s.unexpected, s.bytes_received, s.rtr_sent, s.rtr_hit, s.rtr_came, s.rtr_used,
		s.rtr_dropped, s.rtr_stale, s.reads, s.writes, s.atomics, s.packets, s.resent,
		s.cache_hits, s.cache_misses, yields, sleeps);
	print_reuse(&s);
	print_paths(ep);
}
