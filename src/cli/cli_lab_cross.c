/* weft lab cross: background traffic. */
#include "cli.h"

#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include "cli_lab.h"
#include "util_clock.h"

static const char help[] =
	"Usage: weft lab cross NAME --from HOST --to HOST --rate RATE --for TIME [OPTIONS]\n"
	"\n"
	"Sends one evenly paced UDP flow from one host to another, to make a hot spot on\n"
	"purpose, and says what arrived. Ctrl-C ends it early, with the result so far.\n"
	"\n"
	"Options:\n"
	"  -f, --from HOST  h3, fat-h3 or an address\n"
	"  -t, --to HOST    the same; an address chooses the way where hosts have several\n"
	"  -r, --rate RATE  50mbit, 2.5gbit, ...: on the wire, headers included\n"
	"  -d, --for TIME   10 or 10s, 500ms, 2m\n"
	"  -j, --json       print the result as JSON\n"
	"  -h, --help       this text\n"
	"\n"
	"Examples:\n"
	"  weft lab cross fat --from h1 --to h13 --rate 80mbit --for 20s &\n"
	"  weft lab top fat\n"
	"\n"
	"Exit codes: 0 when something arrived, 1 when nothing did, 2 for wrong usage.\n";

static volatile struct lab_cross x;

static void on_signal(int sig)
{
	(void)sig;
	x.stop = true;
}

struct cross {
	struct lab lab;
	const char *from, *to;
	uint64_t rate, duration;
	bool json;
};

static int find_host(const struct cross *o, const char *text, struct fabric_node *n, uint32_t *a)
{
	struct lab_error e;

	if (lab_find_node(&o->lab.spec, text, n, a, &e))
		return cli_error("%s", e.text);
	if (n->level)
		return cli_error("%s is a switch; traffic goes from a host to a host", text);
	return CLI_OK;
}

static int fill(const struct cross *o)
{
	struct fabric_node from, to;
	uint32_t address;
	int code = find_host(o, o->from, &from, &address);

	if (!code)
		code = find_host(o, o->to, &to, &address);
	if (code)
		return code;
	if (from.index == to.index)
		return cli_error("from %s to %s is no traffic: the hosts must be different",
				 o->from, o->to);
	x.from.level = x.to.level = 0;
	x.from.index = from.index;
	x.to.index = to.index;
	x.address = address;
	x.rate = o->rate;
	x.duration = o->duration;
	return CLI_OK;
}

static double mbit(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes * 8e3 / (double)ns : 0;
}

static uint64_t lost(const struct lab_cross_result *r)
{
	return r->packets_sent > r->packets_received ? r->packets_sent - r->packets_received : 0;
}

static double lost_share(const struct lab_cross_result *r)
{
	return r->packets_sent ? (double)lost(r) / (double)r->packets_sent : 0;
}

static void print_text(const struct lab_cross_result *r)
{
	char sent[16], received[16];

	cli_lab_amount((double)r->sent, sent);
	cli_lab_amount((double)r->received, received);
	printf("sent      %7sB  %9llu datagrams  %9.2f Mbit/s over %.2f s\n", sent,
	       (unsigned long long)r->packets_sent, mbit(r->sent, r->ns),
	       (double)r->ns / UTIL_NS_PER_S);
	printf("received  %7sB  %9llu datagrams  %9.2f Mbit/s\n", received,
	       (unsigned long long)r->packets_received, mbit(r->received, r->rx_ns));
	printf("lost                %9llu datagrams  %8.2f %%\n", (unsigned long long)lost(r),
	       100 * lost_share(r));
}

static void print_json(const struct cross *o, const struct lab_cross_result *r)
{
	char from[FABRIC_NAME_MAX], to[FABRIC_NAME_MAX], addr[16];
	struct fabric_node n = {.level = 0, .index = x.to.index};

	fabric_name(n, to);
	cli_lab_address(&o->lab.spec, n, x.address, addr);
	n.index = x.from.index;
	fabric_name(n, from);
	cli_lab_print_json(
		json_pack("{s:s, s:s, s:s, s:I, s:f, s:{s:I, s:I, s:f}, s:{s:I, s:I, s:f}, "
			  "s:{s:I, s:f}}",
			  "from", from, "to", to, "address", addr, "rate", (json_int_t)o->rate,
			  "seconds", (double)r->ns / UTIL_NS_PER_S, "sent", "bytes",
			  (json_int_t)r->sent, "datagrams", (json_int_t)r->packets_sent, "mbit",
			  mbit(r->sent, r->ns), "received", "bytes", (json_int_t)r->received,
			  "datagrams", (json_int_t)r->packets_received, "mbit",
			  mbit(r->received, r->rx_ns), "lost", "datagrams", (json_int_t)lost(r),
			  "share", lost_share(r)),
		false);
}

static int run(const struct cross *o)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct lab_cross_result r = {0};
	struct lab_error e;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (!o->json && isatty(STDERR_FILENO))
		fprintf(stderr, "From %s to %s; Ctrl-C ends it.\n", o->from, o->to);
	if (lab_cross(&o->lab, &x, &r, &e)) {
		cli_error("%s", e.text);
		return CLI_FAILED;
	}
	if (o->json)
		print_json(o, &r);
	else
		print_text(&r);
	return cli_finish(r.packets_received ? CLI_OK : CLI_FAILED);
}

static int check(const struct cross *o)
{
	const char *missing = NULL;

	if (!o->from)
		missing = "--from HOST";
	else if (!o->to)
		missing = "--to HOST";
	else if (!o->rate)
		missing = "--rate RATE, for example --rate 50mbit";
	else if (!o->duration)
		missing = "--for TIME, for example --for 10s";
	if (!missing)
		return CLI_OK;
	cli_error("it needs %s", missing);
	return cli_try_help();
}

int cli_lab_cross(int argc, char **argv)
{
	static const struct option options[] = {
		{"from", required_argument, NULL, 'f'},
		{"to", required_argument, NULL, 't'},
		{"rate", required_argument, NULL, 'r'},
		{"for", required_argument, NULL, 'd'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct cross o = {0};
	int opt, code = CLI_OK;

	while (!code && (opt = getopt_long(argc, argv, "f:t:r:d:jh", options, NULL)) != -1) {
		switch (opt) {
		case 'f':
			o.from = optarg;
			break;
		case 't':
			o.to = optarg;
			break;
		case 'r':
			code = cli_lab_rate("--rate", optarg, &o.rate);
			if (!code && !o.rate)
				code = cli_error("--rate unlimited: a flow needs a rate");
			break;
		case 'd':
			code = cli_lab_time("--for", optarg, &o.duration);
			break;
		case 'j':
			o.json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (!code)
		code = cli_lab_open_only(&o.lab, argc, argv);
	if (!code)
		code = check(&o);
	if (!code)
		code = fill(&o);
	return code ? code : run(&o);
}
