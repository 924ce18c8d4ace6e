#include "verbs_tune.h"

const struct util_tunable verbs_tunables[] = {
	[VERBS_TUNE_ONLY] =
		{
			.name = "WEFT_ONLY",
			.type = UTIL_TUNE_BOOL,
			.def = "no",
			.help = "Hide RDMA hardware, so that programs see Weft's device alone.",
		},
	[VERBS_TUNE_REAL] =
		{
			.name = "WEFT_REAL_IBVERBS",
			.type = UTIL_TUNE_STR,
			.help = "Path of the libibverbs that serves RDMA hardware; "
				"found by itself unless given.",
		},
	{0},
};
