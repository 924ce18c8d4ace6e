/* What to do when there is nothing to do: spin, yield, or sleep.
 *
 * An application that waits reads its completion queue again and again. As long as a core is free
 * for it that is the fastest way. When there are more processes than cores it takes the time of
 * those that it waits for. So a read that finds nothing gives the core away, at first for a moment
 * (sched_yield), then until something comes, but at most for a short time: the application may
 * have other things to look after.
 *
 * An application that works, and looks for completions now and then, must not be delayed: reads
 * count only if they follow one another closely. That is a matter of the thread's CPU time. Where
 * cores are few, others run between two reads, and a clock on the wall would see work.
 *
 * Who has a core to spare spins, because to be woken takes time. That is worth it if what it waits
 * for comes soon. It is taken to come as late as last time: after a long sleep the next wait spins
 * for a short time only.
 *
 * It may also wait for something else, and look here only in passing. Who slept and was not woken
 * is left alone for a number of reads, twice as many each time up to a limit, before it sleeps
 * again: then it does not lose much, and who really waits for us sleeps for most of the time.
 *
 * Pure: time is an argument.
 */
#ifndef WEFT_OFI_WAIT_H
#define WEFT_OFI_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum ofi_wait_mode { OFI_WAIT_AUTO, OFI_WAIT_SPINS, OFI_WAIT_YIELDS, OFI_WAIT_BLOCKS };

struct ofi_wait_conf {
	enum ofi_wait_mode mode; /* in the order of the choices of FI_WEFT_WAIT */
	uint32_t spin;           /* empty reads before the first yield */
	uint32_t yield;          /* and further ones before the first sleep */
	bool crowd;              /* cores are few */
	uint64_t gap_ns;         /* CPU time; reads further apart than that are not waiting */
	uint64_t sleep_ns;       /* the longest sleep; 0: none */
};

/* All zero: nothing was waited for. */
struct ofi_wait {
	uint32_t empty;   /* reads in a row */
	uint64_t last_ns; /* CPU time when it was last looked at */
	uint32_t vain;    /* sleeps in a row, up to a limit, that nothing has ended */
	uint32_t awake;   /* reads before the next sleep */
	bool soon;        /* the last sleep was long: this one may begin sooner */
};

enum ofi_wait_step { OFI_STEP_RETURN, OFI_STEP_YIELD, OFI_STEP_SLEEP };

/* Fills in what mode and place mean: `ranks` processes of the job on this machine (0: unknown),
 * `cores` to run on. `spin` and `yield` that are not 0 stay. */
void ofi_wait_defaults(struct ofi_wait_conf *conf, uint32_t ranks, uint32_t cores);

/* Whether the next call of ofi_wait_empty needs the time: looking at the clock is not free. */
bool ofi_wait_wants_time(const struct ofi_wait *w);
/* A read found nothing. now_ns: CPU time of the thread. */
enum ofi_wait_step ofi_wait_empty(const struct ofi_wait_conf *conf, struct ofi_wait *w,
				  uint64_t now_ns);
/* It has slept for so long. woken: by something that came. */
void ofi_wait_slept(const struct ofi_wait_conf *conf, struct ofi_wait *w, bool woken, uint64_t ns);
/* Something came. */
void ofi_wait_came(struct ofi_wait *w);

#endif
