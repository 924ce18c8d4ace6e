#include <errno.h>
#include <stdio.h>

#include "wire_rd.h"
#include "rnic_fault.h"
#include "rnic_tune.h"

static int check_fault(const char *text, uint64_t num, char *why, size_t why_len)
{
	(void)num;
	return rnic_fault_check(text, why, why_len);
}

static int check_mtu(const char *text, uint64_t num, char *why, size_t why_len)
{
	(void)text;
	if (!num || num >= WIRE_RD_MTU_MIN)
		return 0;
	snprintf(why, why_len, "too small: expected 0, or a number from %d on", WIRE_RD_MTU_MIN);
	return -EINVAL;
}

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
	[RNIC_TUNE_GUARD] =
		{.name = "WEFT_GUARD",
		 .type = UTIL_TUNE_BOOL,
		 .def = "on",
		 .help = "Catch faults in registered memory that the application has "
			 "unmapped (a handler for SIGSEGV and SIGBUS that passes on "
			 "every other fault), so that they become completion errors. A program "
			 "that installs "
			 "a handler of its own after opening the device takes this over."},
	[RNIC_TUNE_FAULT] = {.name = "WEFT_FAULT",
			     .type = UTIL_TUNE_STR,
			     .check = check_fault,
			     .help = "Faults to make on purpose in the datagrams of reliable "
				     "datagram queue pairs, as loss=0.05,dup=1%,corrupt=0.01,"
				     "reorder=0.02,delay=2ms,seed=42: probabilities from 0 to 1 or "
				     "percentages, the longest delay (ns, us, ms or s), and a seed "
				     "that makes the same choices again. Not set: none."},
	[RNIC_TUNE_RD_TIMEOUT] = {.name = "WEFT_RD_TIMEOUT",
				  .type = UTIL_TUNE_UINT,
				  .def = "10000",
				  .min = 100,
				  .max = 600000,
				  .help = "After how many milliseconds a silent peer of a reliable "
					  "datagram queue pair is given up."},
	[RNIC_TUNE_RD_SHM] = {.name = "WEFT_RD_SHM",
			      .type = UTIL_TUNE_BOOL,
			      .def = "on",
			      .help = "Whether peers of reliable datagram queue pairs that are on "
				      "the same host are reached through shared memory."},
	[RNIC_TUNE_RD_PEERS] = {.name = "WEFT_RD_PEERS",
				.type = UTIL_TUNE_UINT,
				.def = "65536",
				.min = 1,
				.max = 1048576,
				.help = "How many peers one reliable datagram queue pair may "
					"have."},
	[RNIC_TUNE_RD_MTU] = {.name = "WEFT_RD_MTU",
			      .type = UTIL_TUNE_UINT,
			      .def = "0",
			      .max = 65507,
			      .check = check_mtu,
			      .help = "Largest UDP payload that reliable datagram queue pairs send "
				      "and ask for, in bytes, at least 256. 0: what the network "
				      "interfaces carry in one packet."},
	{0},
};
