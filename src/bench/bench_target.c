#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bench_target.h"

static const struct bench_target targets[] = {
	{"lat", "rc", "tcp", 8, 8, true, 1.30},
	{"lat", "ud", "udp", 8, 8, true, 1.20},
	{"bw", "rc", "tcp", 65536, SIZE_MAX, false, 0.85},
	{"bw", "rc-write", "tcp", 65536, SIZE_MAX, false, 0.85},
	{"lat", "rd", "udp", 8, 8, true, 1.15},
	{"lat", "rd", "rc", 8, 8, true, 1.00},
	{"bw", "rd", "rc", 1 << 20, 1 << 20, false, 1.30},
	{"bw", "rd", "udp-gso", 1 << 20, 1 << 20, false, 0.60},
	/* What the process needs in any case is small beside so many of them. */
	{"peers", "rd", "", 1024, SIZE_MAX, true, 1024},
	{"idle", "", "", 0, 0, true, 0},
	/* MPI (bench_mpi.h). Percent of a transfer that computation hides, thesis 3.6.1: */
	{"overlap:receiver", "weft", "", 65536, SIZE_MAX, false, 95},
	{"overlap:sender", "weft", "", 65536, SIZE_MAX, false, 90},
	/* Figure 4.19 of the thesis: eager messages (FI_WEFT_EAGER_REMOTE), and longer ones. */
	{"speculation:ping-pong", "weft", "weft-nospec", 0, 65536, true, 1.01},
	{"speculation:ping-pong", "weft", "weft-nospec", 65537, SIZE_MAX, true, 1.03},
	{"speculation:crossing", "weft", "weft-nospec", 0, 65536, true, 1.01},
	{"speculation:crossing", "weft", "weft-nospec", 65537, SIZE_MAX, true, 1.03},
	{"wire-latency", "weft", "best", 8, 8, true, 0.90},
	{"wire-bandwidth", "weft", "tcp", 65536, 4 << 20, false, 1.00},
	{"host-latency", "weft", "sm", 8, 8, true, 1.50},
	{"alltoall", "weft", "sm", 0, SIZE_MAX, true, 1.00},
};

const struct bench_target *bench_target_find(const char *test, const char *kind, const char *base,
					     size_t size)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		const struct bench_target *t = &targets[i];

		if (!strcmp(t->test, test) && !strcmp(t->kind, kind) && !strcmp(t->base, base) &&
		    size >= t->min_size && size <= t->max_size)
			return t;
	}
	return NULL;
}

bool bench_target_met(const struct bench_target *target, double value)
{
	if (isnan(value))
		return false;
	return target->at_most ? value <= target->limit : value >= target->limit;
}
