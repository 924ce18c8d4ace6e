/* What weft-mpi-perf measures, and the stacks that it can be run on. */
#include "cli_bench.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

#define OFI                                                                                        \
	"--net stock --mpi-args '--mca pml cm --mca mtl ofi --mca btl self --mca "                 \
	"opal_common_ofi_provider_include "

const struct bench_mpi_kind bench_mpi_kinds[] = {
	{"latency", "p50_us", "us", "half a round trip", false, 2, {"size"}, {0}},
	{"put", "p50_us", "us", "MPI_Put and a fence", false, 2, {"size"}, {0}},
	{"get", "p50_us", "us", "MPI_Get and a fence", false, 2, {"size"}, {0}},
	{"bw", "p50_MBps", "MB/s", "windows of messages, one way", true, 2, {"size"}, {0}},
	{"bibw", "p50_MBps", "MB/s", "windows of messages, both ways", true, 2, {"size"}, {0}},
	{"bidir", "p50_MBps", "MB/s", "windows of messages there and back", true, 2, {"size"}, {0}},
	{"multi-lat",
	 "p50_us",
	 "us",
	 "ping-pong of several pairs at once",
	 false,
	 4,
	 {"size", "pairs"},
	 {0}},
	{"multi-bw",
	 "p50_MBps",
	 "MB/s",
	 "what several pairs carry at once",
	 true,
	 4,
	 {"size", "pairs"},
	 {0}},
	{"regcache",
	 "p50_us",
	 "us",
	 "buffers that are new, known, or replaced",
	 false,
	 2,
	 {"size", "use"},
	 {0}},
	{"usage",
	 "p50_us",
	 "us",
	 "rendezvous, receives first in so many percent",
	 false,
	 2,
	 {"size", "early_pct"},
	 {0}},
	{"reuse",
	 "p50_us",
	 "us",
	 "ping-pong from new and known buffers",
	 false,
	 2,
	 {"size", "reuse_pct"},
	 {0}},
	{"spectrum",
	 "p50_us",
	 "us",
	 "buffers that are used more and less often",
	 false,
	 2,
	 {"size", "by", "layout"},
	 {0}},
	{"pingpong-late",
	 "p50_us",
	 "us",
	 "receives that come after the send",
	 false,
	 2,
	 {"size", "timing"},
	 {0}},
	{"overlap",
	 "overlap_pct",
	 "%",
	 "how much of a transfer computation hides",
	 true,
	 2,
	 {"size", "scenario", "side"},
	 {0}},
	{"progress",
	 "left_pct",
	 "%",
	 "what is left of the latency after a delay",
	 false,
	 2,
	 {"size", "scenario", "side", "delay_x"},
	 {0}},
	{"exchange",
	 "T_iter_us",
	 "us",
	 "programs that compute and exchange",
	 false,
	 2,
	 {"size", "model", "ratio"},
	 {0}},
	{"drc",
	 "MBps",
	 "MB/s",
	 "displaced ring, bandwidth per rank",
	 true,
	 4,
	 {"step", "size"},
	 {0}},
	{"alltoall", "p50_us", "us", "MPI_Alltoall in a loop", false, 4, {"size"}, {0}},
	{"allgather", "p50_us", "us", "MPI_Allgather in a loop", false, 4, {"size"}, {0}},
	{"allreduce", "p50_us", "us", "MPI_Allreduce in a loop", false, 4, {"size"}, {0}},
	{"bcast", "p50_us", "us", "MPI_Bcast, a barrier behind each", false, 4, {"size"}, {0}},
	{"scatter", "p50_us", "us", "MPI_Scatter, a barrier behind each", false, 4, {"size"}, {0}},
	{"barrier", "p50_us", "us", "MPI_Barrier in a loop", false, 4, {"size"}, {0}},
	{"arrival",
	 "beyond_us",
	 "us",
	 "a collective whose processes arrive late",
	 false,
	 4,
	 {"op", "size", "mif", "by"},
	 {0}},
	{"memory",
	 "mean_MiB",
	 "MiB",
	 "of a process after a message to everyone",
	 false,
	 4,
	 {"what"},
	 {"when", "all"}},
	{0},
};

const struct bench_mpi_kind *bench_mpi_kind_find(const char *name)
{
	for (const struct bench_mpi_kind *k = bench_mpi_kinds; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

static const struct {
	const char *name, *how, *summary;
} known[] = {
	{"weft", "", "Weft as it is"},
	{"weft-nospec", "FI_WEFT_SPECULATE=no", "Weft without speculation"},
	{"weft-always", "FI_WEFT_USAGE=0", "Weft, its speculation does not adapt"},
	{"weft-off", "FI_WEFT_SPECULATE=no WEFT_PROGRESS=off",
	 "Weft without speculation and progress thread"},
	{"weft-rc", "FI_WEFT_TRANSPORT=rc", "Weft by connections instead of datagrams"},
	{"weft-coll", "--coll", "Weft with its collective operations"},
	{"stock", "--net stock", "what the MPI itself would take"},
	{"sm", "--net stock --mpi-args '--mca pml ob1 --mca btl vader,self'",
	 "Open MPI's shared memory"},
	{"tcp", "--net stock --mpi-args '--mca pml ob1 --mca btl tcp,self'", "Open MPI's TCP"},
	{"net", OFI "net'", "libfabric's net"},
	{"rxm", OFI "\"tcp;ofi_rxm\"'", "libfabric's tcp;ofi_rxm"},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

void bench_stack_list(void)
{
	for (int i = 0; i < KNOWN; i++)
		printf("  %-14s %s\n", known[i].name, known[i].summary);
}

/* Variables come first; options take the rest, with their values. */
static int take_words(struct bench_stack *s, const char *text)
{
	struct cli_words words = {0};
	int ret = cli_words_split(&words, text);
	bool options = false;

	for (size_t i = 0; !ret && i < words.n; i++) {
		options = options || words.word[i][0] == '-' || !strchr(words.word[i], '=');
		cli_words_add(options ? &s->options : &s->env, words.word[i]);
	}
	cli_words_free(&words);
	return ret ? cli_error("a quote is not closed: %s", text) : 0;
}

int bench_stack_known(struct bench_stack *s, const char *name)
{
	for (int i = 0; i < KNOWN; i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		snprintf(s->name, sizeof(s->name), "%s", name);
		return take_words(s, known[i].how);
	}
	return cli_error("there is no stack '%s'; see weft bench --list, or use --a and --b", name);
}

int bench_stack_parse(struct bench_stack *s, const char *text)
{
	size_t n = strcspn(text, ":");

	if (!text[n] || !n || n >= sizeof(s->name) || strcspn(text, " =\"\\") < n)
		return cli_error(
			"'%s' is not understood; expected 'NAME: VAR=value ... --option ...', "
			"with a name below %zu characters",
			text, sizeof(s->name));
	memcpy(s->name, text, n);
	s->name[n] = '\0';
	return take_words(s, text + n + 1);
}

void bench_stack_free(struct bench_stack *s)
{
	cli_words_free(&s->env);
	cli_words_free(&s->options);
}
