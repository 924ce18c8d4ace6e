#include "ofi_tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "stripe.h"

void ofi_striping_whole(const char *text, uint32_t paths, uint32_t batch, char *whole, size_t len)
{
	if (batch > paths)
		batch = paths;
	if (!batch && !strcmp(text, "bss"))
		batch = paths < 4 ? 1 : paths / 4;
	if (strchr(text, ':'))
		snprintf(whole, len, "%s", text);
	else if (batch && (!strcmp(text, "bss") || !strcmp(text, "pull")))
		snprintf(whole, len, "%s:%u,%u", text, paths, batch);
	else
		snprintf(whole, len, "%s:%u", text, paths);
}

/* FI_WEFT_PATHS and FI_WEFT_BATCH have limits of their own; weights can come from nowhere else. */
static int check_striping(const char *text, uint64_t num, char *why, size_t why_len)
{
	char whole[STRIPE_NAME_MAX];
	struct stripe_conf conf;

	(void)num;
	if (!strcmp(text, "auto") || !strcmp(text, "single") || !strcmp(text, "original"))
		return 0;
	if (!strcmp(text, "weighted")) {
		snprintf(why, why_len, "which weights? For example weighted:4,2,1");
		return -EINVAL;
	}
	if (strlen(text) + 8 >= sizeof(whole)) {
		snprintf(why, why_len, "it is too long; expected something like hop:12");
		return -EINVAL;
	}
	ofi_striping_whole(text, 12, 0, whole, sizeof(whole));
	return stripe_parse(&conf, whole, why, why_len) ? -EINVAL : 0;
}

const struct util_tunable ofi_tunables[] = {
	[OFI_TUNE_DEVICE] = {.name = "FI_WEFT_DEVICE",
			     .type = UTIL_TUNE_STR,
			     .help = "Name of the verbs device to use. Not set: Weft's own, or "
				     "else the first that can do it."},
	[OFI_TUNE_TRANSPORT] =
		{.name = "FI_WEFT_TRANSPORT",
		 .type = UTIL_TUNE_ENUM,
		 .def = "auto",
		 .choices = "auto|rd|rc",
		 .help = "Queue pairs to use: one for all peers (rd), or one for each "
			 "path to each peer, connected when it is needed (rc). auto: rd where the "
			 "device has it."},
	[OFI_TUNE_CACHE] = {.name = "FI_WEFT_CACHE",
			    .type = UTIL_TUNE_ENUM,
			    .def = "auto",
			    .choices = "auto|on|off",
			    .help = "Whether registrations of memory are kept for later transfers. "
				    "auto: where registering takes longer than looking it up."},
	[OFI_TUNE_LOCAL] =
		{.name = "FI_WEFT_LOCAL",
		 .type = UTIL_TUNE_ENUM,
		 .def = "auto",
		 .choices = "auto|pieces",
		 .help = "What the device may use of the process' own memory. auto: all of it, "
			 "where one registration can cover that (Weft's own device), else what is "
			 "registered piece by piece. pieces: always so; to measure and to test."},
	[OFI_TUNE_REUSE] =
		{.name = "FI_WEFT_REUSE",
		 .type = UTIL_TUNE_ENUM,
		 .def = "auto",
		 .choices = "auto|yes|no",
		 .help = "Where memory has to be registered piece by piece: whether short "
			 "messages, "
			 "reads and writes use the application's buffer directly, rather than "
			 "copies. auto: buffers that are used so often that it pays, as measured "
			 "('weft info' shows it); programs that do not reuse buffers are left "
			 "alone. yes: all buffers. no: none. Weft's own device can use all memory; "
			 "from there messages are copied when they are under way, or not at all, "
			 "with no before that."},
	[OFI_TUNE_REUSE_PART] =
		{.name = "FI_WEFT_REUSE_PART",
		 .type = UTIL_TUNE_UINT,
		 .def = "25",
		 .min = 1,
		 .max = 100,
		 .help = "How many percent of the uses that make it pay a buffer must have had "
			 "until it is used directly."},
	[OFI_TUNE_EAGER] = {.name = "FI_WEFT_EAGER",
			    .type = UTIL_TUNE_UINT,
			    .def = "8k",
			    .min = 256,
			    .max = 1 << 20,
			    .help = "Longest message, in bytes, that is sent before its receive is "
				    "known. Longer ones are announced, and moved by RDMA. Also the "
				    "most that can be injected. The same in all processes."},
	[OFI_TUNE_EAGER_REMOTE] =
		{.name = "FI_WEFT_EAGER_REMOTE",
		 .type = UTIL_TUNE_UINT,
		 .def = "64k",
		 .min = 0,
		 .max = 1 << 20,
		 .help = "The same for peers on other hosts, where the device is Weft's own and a "
			 "trip takes longer than copying; no less than FI_WEFT_EAGER, and the same "
			 "in all processes."},
	[OFI_TUNE_RX_BUFFERS] =
		{.name = "FI_WEFT_RX_BUFFERS",
		 .type = UTIL_TUNE_UINT,
		 .def = "128",
		 .min = 8,
		 .max = 65536,
		 .help = "Buffers of one endpoint for messages that arrive, each as large as "
			 "FI_WEFT_EAGER_REMOTE; they take memory as far as messages fill them. All "
			 "peers share them."},
	[OFI_TUNE_DEPTH] = {.name = "FI_WEFT_DEPTH",
			    .type = UTIL_TUNE_UINT,
			    .def = "256",
			    .min = 8,
			    .max = 65536,
			    .help = "Work requests that one endpoint can have under way; further "
				    "operations wait, or are refused with FI_EAGAIN."},
	[OFI_TUNE_LINGER] =
		{.name = "FI_WEFT_LINGER",
		 .type = UTIL_TUNE_DURATION,
		 .def = "1s",
		 .max = UINT64_C(60000000000),
		 .help = "Longest time that closing an endpoint, or the end of a process that does "
			 "not, waits for peers to have what was sent. 0: not at all; what was "
			 "sent last may be lost."},
	[OFI_TUNE_ALIVE] =
		{.name = "FI_WEFT_ALIVE",
		 .type = UTIL_TUNE_DURATION,
		 .def = "1s",
		 .max = UINT64_C(3600000000000),
		 .help = "Who has waited so long asks the device of each peer that a message or an "
			 "answer is awaited of whether it is still there. 0: nobody is asked; a "
			 "receive from a process that was killed waits for ever."},
	[OFI_TUNE_RENDEZVOUS] = {.name = "FI_WEFT_RENDEZVOUS",
				 .type = UTIL_TUNE_ENUM,
				 .def = "read",
				 .choices = "read|write",
				 .help = "Who moves a long message: the receiver reads it, or the "
					 "sender writes it when the receiver says where."},
	[OFI_TUNE_SPECULATE] = {.name = "FI_WEFT_SPECULATE",
				.type = UTIL_TUNE_BOOL,
				.def = "yes",
				.help = "Whether a receive of a long message tells the sender in "
					"advance where it goes, so that the message moves without "
					"either of the two asking again."},
	[OFI_TUNE_USAGE] = {.name = "FI_WEFT_USAGE",
			    .type = UTIL_TUNE_UINT,
			    .def = "80",
			    .max = 100,
			    .help = "How many percent of what receives tell in advance must be "
				    "used; below that, receives of the same kind stop telling it. "
				    "0: they never stop."},
	[OFI_TUNE_STRIPING] =
		{.name = "FI_WEFT_STRIPING",
		 .type = UTIL_TUNE_STR,
		 .def = "auto",
		 .check = check_striping,
		 .help = "How long messages to other hosts are divided over paths. auto: not at "
			 "all until packets are lost on the way, then by pull; with rc, where "
			 "nothing tells of that, never. single: never. Always: even, roundrobin, "
			 "hsam, bss, pull or hop, over as many paths as FI_WEFT_PATHS and "
			 "FI_WEFT_BATCH say, or as hop:12 or bss:12,3 does; weighted:4,2,1 with "
			 "weights."},
	[OFI_TUNE_PATHS] =
		{.name = "FI_WEFT_PATHS",
		 .type = UTIL_TUNE_UINT,
		 .def = "12",
		 .min = 1,
		 .max = STRIPE_PATHS_MAX,
		 .help = "Paths to a peer: one for each pair of addresses, if hosts have "
			 "several; the others have UDP source ports of their own, which "
			 "switches that hash flows may send another way. With rc, each is a "
			 "connection of its own."},
	[OFI_TUNE_BATCH] =
		{.name = "FI_WEFT_BATCH",
		 .type = UTIL_TUNE_UINT,
		 .def = "0",
		 .max = STRIPE_PATHS_MAX,
		 .help = "How many of the paths one message takes, with bss and pull. 0: "
			 "a quarter of them with bss, half with auto, all with pull."},
	[OFI_TUNE_STRIPE_MIN] = {.name = "FI_WEFT_STRIPE_MIN",
				 .type = UTIL_TUNE_UINT,
				 .def = "128k",
				 .min = 4096,
				 .max = UINT64_C(1) << 40,
				 .help = "Messages of so many bytes and more are divided."},
	[OFI_TUNE_LIVE] = {.name = "FI_WEFT_LIVE",
			   .type = UTIL_TUNE_BOOL,
			   .def = "yes",
			   .help = "Whether what the paths carry, and how much each weighs, can be "
				   "watched with 'weft paths' while messages are divided."},
	[OFI_TUNE_WAIT] =
		{.name = "FI_WEFT_WAIT",
		 .type = UTIL_TUNE_ENUM,
		 .def = "auto",
		 .choices = "auto|spin|yield|block",
		 .help = "What a read of a completion queue that finds nothing does. auto: "
			 "returns at once, after many such reads gives the core to others, "
			 "then sleeps until something comes (FI_WEFT_SLEEP at most); soon "
			 "if there are more processes of the job than cores, late if not. "
			 "spin: always returns at once. yield: as auto, but never sleeps. "
			 "block: sleeps right away."},
	[OFI_TUNE_SPIN] =
		{.name = "FI_WEFT_SPIN",
		 .type = UTIL_TUNE_UINT,
		 .def = "0",
		 .max = 1 << 30,
		 .help = "Reads in a row that find nothing before the core is given away. "
			 "0: as many as fit the number of processes and cores."},
	[OFI_TUNE_YIELD] = {.name = "FI_WEFT_YIELD",
			    .type = UTIL_TUNE_UINT,
			    .def = "0",
			    .max = 1 << 30,
			    .help = "Times that the core is given away before the first sleep. 0: "
				    "as many as fit the number of processes and cores."},
	[OFI_TUNE_SLEEP] = {.name = "FI_WEFT_SLEEP",
			    .type = UTIL_TUNE_DURATION,
			    .def = "500us",
			    .max = UINT64_C(1000000000),
			    .help = "Longest sleep of one read of a completion queue. 0: none."},
	[OFI_TUNE_STATS] =
		{.name = "FI_WEFT_STATS",
		 .type = UTIL_TUNE_ENUM,
		 .def = "no",
		 .choices = "no|yes|usr1|usr2",
		 .help = "Print what an endpoint has done, to standard error: messages "
			 "by protocol, what became of those that receives had announced, "
			 "packets sent again, registrations, copies that were saved "
			 "(FI_WEFT_REUSE), and if messages are divided for each path the bytes, "
			 "the "
			 "bandwidth while something was under way on it, and the weight. "
			 "yes: when it is closed. "
			 "usr1, usr2: then, and whenever the process gets SIGUSR1 or "
			 "SIGUSR2, when it next looks for completions."},
	{0},
};
