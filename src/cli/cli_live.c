/* weft paths: what the paths of processes that divide messages carry, while they run. */
#include "cli_live.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "cli_output.h"
#include "cli_watch.h"
#include "util_list.h"
#include "util_number.h"

static const char help[] =
	"Usage: weft paths [OPTIONS]\n"
	"\n"
	"Watches processes that divide long messages over several paths (FI_WEFT_STRIPING): for\n"
	"each process and peer the policy, and for each path its part of the bytes, its weight,\n"
	"and the bandwidth while something was under way on it; the busiest peers first. In a\n"
	"terminal it fills the screen until q or Ctrl-C; otherwise it prints what it sees once,\n"
	"or --count times. All processes of yours on this machine are seen, those in labs, too.\n"
	"\n"
	"Options:\n"
	"  -H, --host HOST      only processes on this host: fat-h3, or h3 of any lab\n"
	"  -p, --pid PID        only this process\n"
	"  -b, --brief          one line for each peer\n" CLI_WATCH_HELP "\n"
	"A weight is what the policy goes by: of hsam, bss and fixed weights a share, of pull\n"
	"and hop the GB/s that it expects of the path. Over a path that is 'down' nothing comes\n"
	"back. Nothing is asked of the processes: they write what they know to a\n"
	"file in memory, unless FI_WEFT_LIVE=no.\n"
	"\n"
	"Examples:\n"
	"  FI_WEFT_STRIPING=hop weft run --lab fat -n 24 ./program </dev/null &\n"
	"  weft paths                                    all of them, live\n"
	"  weft paths --host h0 --count 1                what h0 did within a second\n"
	"  weft paths --json --interval 100ms --count 0 >watch.json\n"
	"  jq -r '.time as $t | .processes[].peers[] | [$t, .peer, .paths[].weight] | @tsv' \\\n"
	"      watch.json                                weights over time, to be plotted\n"
	"\n"
	"Exit codes: 0 done, also if there was nobody to watch; 1 it can not be read; 2 wrong\n"
	"usage. Manual page: weft-paths(1).\n";

struct live {
	struct cli_watch watch;
	struct cli_live_rows rows;
	bool brief;
};

static int look(struct cli_watch *w)
{
	struct live *l = container_of(w, struct live, watch);
	int err = cli_live_look(&l->rows, w->why, sizeof(w->why));

	if (!err)
		cli_live_sort(&l->rows, !w->json);
	return err;
}

static const char *address(uint32_t ip, char text[INET_ADDRSTRLEN])
{
	return inet_ntop(AF_INET, &ip, text, INET_ADDRSTRLEN);
}

static bool is_down(const struct cli_live_row *r, uint32_t path)
{
	return r->peer->down >> path & 1;
}

static double share(const struct cli_live_row *r, uint32_t path)
{
	return r->rate > 0 ? r->path_rate[path] / r->rate : 0;
}

/* ---- text ---- */

#define BAR_MAX 40
/* Columns of a line of a path besides the bar. */
#define NUMBERS_WIDTH 48

static int bar_width(int columns)
{
	int width = columns - NUMBERS_WIDTH;

	return width > BAR_MAX ? BAR_MAX : width < 5 ? 0 : width;
}

static void print_path(const struct live *l, const struct cli_live_row *r, uint32_t i, int bar,
		       FILE *to)
{
	fprintf(to, "  %4u %9.1f %6.1f%% ", i, r->path_rate[i] / 1e6, 100 * share(r, i));
	if (bar)
		cli_watch_bar(&l->watch, share(r, i), bar, "\033[32m", to);
	fprintf(to, "%10.1f %9.3g%s\n", r->busy_rate[i] / 1e6, r->peer->path[i].weight,
		is_down(r, i) ? " down" : "");
}

static void print_whole(const struct live *l, const struct cli_live_row *r, int bar, FILE *to)
{
	const struct msg_live_head *h = &r->proc->head;
	bool bold = l->watch.colour;
	char ip[INET_ADDRSTRLEN];

	fprintf(to, "%s%s %d %s with %s, %s: %.1f MB/s%s\n", bold ? "\033[1m" : "", h->host,
		(int)r->proc->pid, h->program, address(r->peer->ip, ip), r->peer->policy,
		r->rate / 1e6, bold ? "\033[0m" : "");
	for (uint32_t i = 0; i < r->peer->paths; i++)
		print_path(l, r, i, bar, to);
}

/* One character for each path: how much it carries, the busiest being full. */
static void print_brief(const struct live *l, const struct cli_live_row *r, FILE *to)
{
	static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const digits[] = {".", "1", "2", "3", "4", "5", "6", "7", "8"};
	char ip[INET_ADDRSTRLEN];
	double most = 0;

	for (uint32_t i = 0; i < r->peer->paths; i++)
		most = r->path_rate[i] > most ? r->path_rate[i] : most;
	fprintf(to, "%-16s %8d %-15s %-16.16s %9.1f  ", r->proc->head.host, (int)r->proc->pid,
		address(r->peer->ip, ip), r->peer->policy, r->rate / 1e6);
	for (uint32_t i = 0; i < r->peer->paths; i++) {
		int level = most > 0 ? (int)(r->path_rate[i] / most * 8 + 0.5) : 0;

		if (is_down(r, i))
			fputc('x', to);
		else
			fputs(l->watch.utf8 ? blocks[level] : digits[level], to);
	}
	fputc('\n', to);
}

static void print_head(const struct live *l, int bar, FILE *to)
{
	const struct cli_live_rows *r = &l->rows;
	double rate = 0;

	for (size_t i = 0; i < r->rows; i++)
		rate += r->row[i].rate;
	fprintf(to, "%zu %s over several paths, %.1f MB/s, over %.2g s\n", r->rows,
		r->rows == 1 ? "peer" : "peers", rate / 1e6, r->seconds);
	if (!r->rows)
		fputs("Nobody that is watched divides messages now. FI_WEFT_STRIPING=hop, for "
		      "example, lets\na program do that; see fi_weft(7).\n",
		      to);
	else if (l->brief)
		fprintf(to, "%-16s %8s %-15s %-16s %9s  %s\n", "HOST", "PID", "PEER", "POLICY",
			"MB/S", "PATHS");
	else
		fprintf(to, "  %4s %9s %7s %*s%10s %9s\n", "PATH", "MB/S", "SHARE",
			bar ? bar + 1 : 0, "", "BANDWIDTH", "WEIGHT");
}

static void print_page(const struct cli_watch *w, int columns, size_t lines, FILE *to)
{
	const struct live *l = container_of(w, const struct live, watch);
	int bar = bar_width(columns);
	size_t used = 2, i;

	print_head(l, bar, to);
	for (i = 0; i < l->rows.rows; i++) {
		const struct cli_live_row *r = &l->rows.row[i];

		used += l->brief ? 1 : 1 + r->peer->paths;
		if (lines && used > lines)
			break;
		if (l->brief)
			print_brief(l, r, to);
		else
			print_whole(l, r, bar, to);
	}
	if (i < l->rows.rows)
		fprintf(to, "%zu peers with less do not fit%s. ", l->rows.rows - i,
			l->brief ? "" : "; --brief shows more of them");
}

/* ---- JSON ---- */

static json_t *path_json(const struct cli_live_row *r, uint32_t i)
{
	const struct msg_live_path *p = &r->peer->path[i];

	return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:b}", "mb_per_s", r->path_rate[i] / 1e6,
			 "share", share(r, i), "mb_per_s_busy", r->busy_rate[i] / 1e6, "weight",
			 p->weight, "bytes", (json_int_t)p->bytes, "pieces", (json_int_t)p->pieces,
			 "down", (int)is_down(r, i));
}

static json_t *peer_json(const struct cli_live_row *r)
{
	json_t *paths = json_array();
	char ip[INET_ADDRSTRLEN];

	for (uint32_t i = 0; i < r->peer->paths; i++)
		json_array_append_new(paths, path_json(r, i));
	return json_pack("{s:s, s:s, s:f, s:o}", "peer", address(r->peer->ip, ip), "policy",
			 r->peer->policy, "mb_per_s", r->rate / 1e6, "paths", paths);
}

static void print_json(const struct cli_watch *w)
{
	const struct live *l = container_of(w, const struct live, watch);
	const struct msg_live_proc *last = NULL;
	json_t *procs = json_array(), *peers = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < l->rows.rows; i++) {
		const struct cli_live_row *r = &l->rows.row[i];

		/* sorted: those of one process are together */
		if (r->proc != last) {
			last = r->proc;
			peers = json_array();
			json_array_append_new(procs, json_pack("{s:s, s:I, s:s, s:o}", "host",
							       last->head.host, "pid",
							       (json_int_t)last->pid, "program",
							       last->head.program, "peers", peers));
		}
		json_array_append_new(peers, peer_json(r));
	}
	/* 13 digits: the time in milliseconds */
	cli_print_json(json_pack("{s:f, s:f, s:o}", "time",
				 (double)now.tv_sec + (double)now.tv_nsec / 1e9, "seconds",
				 l->rows.seconds, "processes", procs),
		       JSON_COMPACT | JSON_REAL_PRECISION(13));
}

/* ---- the command ---- */

static int parse_pid(const char *text, uint64_t *pid)
{
	if (util_decimal(text, pid) || !*pid)
		return cli_error("--pid %s is not understood; expected the number of a process",
				 text);
	return CLI_OK;
}

static int run(struct live *l)
{
	int code = CLI_FAILED;

	cli_watch_prepare(&l->watch);
	/* What was before does not count. */
	if (look(&l->watch))
		cli_error("%s", l->watch.why);
	else
		code = cli_watch_run(&l->watch);
	cli_live_free(&l->rows);
	return code;
}

int cli_paths_watch(int argc, char **argv)
{
	static const struct option options[] = {
		{"host", required_argument, NULL, 'H'},
		{"pid", required_argument, NULL, 'p'},
		{"brief", no_argument, NULL, 'b'},
		CLI_WATCH_OPTIONS,
		{0},
	};
	struct live l = {
		.watch = {.look = look, .page = print_page, .print_json = print_json},
	};
	int opt, code = CLI_OK;

	while (!code &&
	       (opt = getopt_long(argc, argv, "H:p:b" CLI_WATCH_SHORT, options, NULL)) != -1) {
		switch (opt) {
		case 'H':
			l.rows.host = optarg;
			break;
		case 'p':
			code = parse_pid(optarg, &l.rows.pid);
			break;
		case 'b':
			l.brief = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			code = cli_watch_option(&l.watch, opt, optarg);
		}
	}
	if (!code && optind < argc) {
		cli_error("unexpected argument '%s'", argv[optind]);
		code = cli_try_help();
	}
	return code ? code : run(&l);
}
