#include "rnic_tune.h"

const struct util_tunable rnic_tunables[] = {
	[RNIC_TUNE_DEVICE] = {.name = "WEFT_DEVICE",
			      .type = UTIL_TUNE_BOOL,
			      .def = "on",
			      .help = "Whether the software RNIC weft0 is there at all."},
	[RNIC_TUNE_ADDR] =
		{.name = "WEFT_ADDR",
		 .type = UTIL_TUNE_STR,
		 .help = "IPv4 addresses of this machine to use, separated by commas, in "
			 "the order of the GID table. Not set: those of all interfaces "
			 "that are up, loopback only if there is no other."},
	[RNIC_TUNE_NETDEV] = {.name = "WEFT_NETDEV",
			      .type = UTIL_TUNE_STR,
			      .help = "Use only the addresses of this network interface."},
	[RNIC_TUNE_PROGRESS] = {.name = "WEFT_PROGRESS",
				.type = UTIL_TUNE_BOOL,
				.def = "on",
				.help = "Whether a thread makes progress while the application "
					"does not poll. Off: nothing moves except inside "
					"ibv_poll_cq."},
	[RNIC_TUNE_CRC] = {.name = "WEFT_CRC",
			   .type = UTIL_TUNE_BOOL,
			   .def = "on",
			   .help = "Whether RC and UC streams carry a CRC32C. It is off only if "
				   "both peers switch it off."},
	[RNIC_TUNE_MARKERS] = {.name = "WEFT_MARKERS",
			       .type = UTIL_TUNE_BOOL,
			       .def = "off",
			       .help = "Ask the peer to put MPA markers into its stream. Slower; "
				       "for tests of the wire format."},
	[RNIC_TUNE_FPDU] = {.name = "WEFT_FPDU",
			    .type = UTIL_TUNE_UINT,
			    .def = "32k",
			    .min = 128,
			    .max = 64000,
			    .help = "Largest payload of one segment of an RC or UC stream, in "
				    "bytes."},
	[RNIC_TUNE_GUARD] = {.name = "WEFT_GUARD",
			     .type = UTIL_TUNE_BOOL,
			     .def = "on",
			     .help = "Catch faults in registered memory that the application has "
				     "unmapped (a handler for SIGSEGV and SIGBUS that passes on "
				     "every other fault), so that they become completion errors. A program that installs "
				     "a handler of its own after opening the device takes this over."},
	{0},
};
