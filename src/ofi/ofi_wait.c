#include "ofi_wait.h"

/* The clock is looked at once in so many reads, and not before: that of the processor's time is a
 * system call, and most waits are shorter. */
#define STRIDE 64

/* With a core for everybody: some ten times what it takes to be woken, a read takes some hundred
 * nanoseconds. Who waits longer loses little by sleeping, and its core is free for the progress of
 * those that compute. */
#define CALM_SPIN  1000
#define CALM_YIELD 300
/* So much less after a sleep that was longer than that: more than spinning would have taken. */
#define SOONER  8
#define LONG_NS 200000
/* Too few cores: whoever is waited for is probably not running. */
#define CROWD_SPIN  2
#define CROWD_YIELD 200
/* Reads after the first sleep in vain, and how often that is doubled. */
#define AWAKE     25
#define AWAKE_MAX 2

void ofi_wait_defaults(struct ofi_wait_conf *conf, uint32_t ranks, uint32_t cores)
{
	conf->crowd = ranks > cores;
	if (!conf->spin)
		conf->spin = conf->crowd ? CROWD_SPIN : CALM_SPIN;
	if (!conf->yield)
		conf->yield = conf->crowd ? CROWD_YIELD : CALM_YIELD;
	if (conf->mode == OFI_WAIT_SPINS)
		conf->spin = UINT32_MAX;
	if (conf->mode == OFI_WAIT_YIELDS)
		conf->sleep_ns = 0;
	if (conf->mode == OFI_WAIT_BLOCKS)
		conf->spin = conf->yield = 0;
}

bool ofi_wait_wants_time(const struct ofi_wait *w)
{
	return w->empty && w->empty % STRIDE == 0;
}

enum ofi_wait_step ofi_wait_empty(const struct ofi_wait_conf *conf, struct ofi_wait *w,
				  uint64_t now_ns)
{
	uint32_t sooner = w->soon && !conf->crowd ? SOONER : 1;
	uint32_t spin = conf->spin / sooner, yield = conf->yield / sooner;

	if (ofi_wait_wants_time(w)) {
		if (w->last_ns && now_ns - w->last_ns > STRIDE * conf->gap_ns)
			w->empty = 0;
		w->last_ns = now_ns;
	}
	/* does not wrap: stays within the last stride */
	if (w->empty >= UINT32_MAX - STRIDE)
		w->empty -= STRIDE;
	w->empty++;
	if (w->empty <= spin)
		return OFI_STEP_RETURN;
	if (w->empty - spin <= yield || !conf->sleep_ns)
		return OFI_STEP_YIELD;
	if (w->awake) {
		w->awake--;
		return OFI_STEP_YIELD;
	}
	return OFI_STEP_SLEEP;
}

void ofi_wait_came(struct ofi_wait *w)
{
	*w = (struct ofi_wait){.soon = w->soon};
}

void ofi_wait_slept(const struct ofi_wait_conf *conf, struct ofi_wait *w, bool woken, uint64_t ns)
{
	w->soon = ns > LONG_NS;
	if (woken || conf->mode == OFI_WAIT_BLOCKS) {
		w->vain = w->awake = 0;
		return;
	}
	w->awake = AWAKE << w->vain;
	if (w->vain < AWAKE_MAX)
		w->vain++;
}
