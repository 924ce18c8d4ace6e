/* weft-msg-perf: short messages of the layer below MPI and libfabric, and what they are made of. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "bench_msg.h"
#include "bench_search.h"
#include "util_number.h"

static const char usage[] =
	"Usage: weft-msg-perf latency|search [OPTION]...\n"
	"\n"
	"  latency  half a round trip of short messages, with a copy of each (off) and without "
	"(on),\n"
	"           in one process, in turn; and what the copy costs\n"
	"  search   finding a buffer among 10 to 1,000,000, in a hash table and in a tree\n"
	"\n"
	"  -r N     rounds (40)\n"
	"  -n N     messages, or look-ups, in a block (500)\n"
	"  -s LIST  sizes, up to 64K (64,128,...,8K)\n"
	"  -L       as on a device that needs local memory registered\n"
	"  -C       and keep registrations\n"
	"  -z       both with a copy: what the method itself makes of no difference\n"
	"  -T N     give up after so many seconds (120)\n"
	"  -l PATH  be the second side, and wait for the first at this socket\n"
	"  -c PATH  be the first side, which prints, and meet the second there; without these, "
	"the\n"
	"           second side is a child\n"
	"  -h       this text\n"
	"\n"
	"Exit status: 0 measured, 1 not, 2 wrong usage.\n";

/* ---- the command line ---- */

static int parse_sizes(struct bench_msg_conf *c, char *list)
{
	uint64_t v;

	c->n_sizes = 0;
	for (char *save, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (c->n_sizes == sizeof(c->sizes) / sizeof(c->sizes[0]) || util_size(w, &v) ||
		    v < 1 || v > BENCH_MSG_LONGEST)
			return 1;
		c->sizes[c->n_sizes++] = (size_t)v;
	}
	return !c->n_sizes;
}

static int parse_number(const char *text, uint64_t most, uint64_t *out)
{
	return util_decimal(text, out) || *out < 1 || *out > most;
}

static int parse_one(struct bench_msg_conf *c, int option)
{
	switch (option) {
	case 'r':
		return parse_number(optarg, 100000, &c->rounds);
	case 'n':
		return parse_number(optarg, 1000000, &c->block);
	case 'T':
		return parse_number(optarg, 86400, &c->seconds);
	case 's':
		return parse_sizes(c, optarg);
	case 'L':
		c->pieces = true;
		return 0;
	case 'C':
		c->cached = true;
		return 0;
	case 'z':
		c->same = true;
		return 0;
	case 'l':
	case 'c':
		c->meet = optarg;
		c->first = option == 'c';
		return 0;
	default:
		return 1;
	}
}

int main(int argc, char **argv)
{
	struct bench_msg_conf c = {.rounds = 40, .block = 500, .seconds = 120};
	int option, err = 0;

	for (size_t s = 64; s <= 8192; s *= 2)
		c.sizes[c.n_sizes++] = s;
	while (!err && (option = getopt(argc, argv, "r:n:s:T:LCzl:c:h")) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		err = parse_one(&c, option);
		if (err && option != '?')
			fprintf(stderr, "weft-msg-perf: -%c %s is not possible; try -h\n", option,
				optarg);
	}
	if (err || optind != argc - 1 ||
	    (strcmp(argv[optind], "latency") != 0 && strcmp(argv[optind], "search") != 0)) {
		if (!err)
			fputs("weft-msg-perf: latency or search? Try -h.\n", stderr);
		return 2;
	}
	if (!strcmp(argv[optind], "latency"))
		return bench_msg_latency(&c);
	err = bench_search(c.rounds, c.block);
	if (err)
		fprintf(stderr, "weft-msg-perf: search: %s\n", strerror(-err));
	return err ? 1 : 0;
}
