/* What a short transfer from the application's memory costs on a device, and from how many uses of
 * a buffer on it is worth registering (chapter 5 of the thesis).
 *
 * A device that can not use memory unless that is registered gets short messages from buffers that
 * were registered beforehand, into which they are copied. Without the copy, of cost C, each use
 * costs V: the look into the table of buffers (msg_reuse.h) and into the registration cache; and
 * the first of them R: registering, watching, and undoing all that one day. So a buffer has to be
 * used n > R / (C - V) times (inequality 5.3), and where C <= V it never pays.
 *
 * They depend on the device, the kernel and the processor, so they are measured, by size, when they
 * are first needed. Where the device keeps no registrations (registering is faster than a look into
 * the cache), each use registers: R is 0, and V what that takes.
 */
#ifndef WEFT_MSG_COSTS_H
#define WEFT_MSG_COSTS_H

#include <stdbool.h>
#include <stdint.h>

struct msg_dev;

/* Size classes: [64, 128), [128, 256), ... bytes; the last, from 64 KB on, has no end. What is
 * shorter is not worth the look. */
#define MSG_COSTS_LEAST   64
#define MSG_COSTS_CLASSES 11

#define MSG_COSTS_NEVER UINT32_MAX

struct msg_cost {
	double reg, copy, over; /* R, C, V: ns, of the shortest message of the class */
	uint32_t n;             /* uses that are worth it; MSG_COSTS_NEVER: none are */
};

struct msg_costs {
	bool needed; /* else the device may use all memory of the process anyway */
	bool cached; /* registrations are kept */
	struct msg_cost of[MSG_COSTS_CLASSES];
};

/* Of how many bytes. */
static inline uint64_t msg_costs_size(uint32_t class)
{
	return (uint64_t)MSG_COSTS_LEAST << class;
}

/* Of a message; MSG_COSTS_CLASSES: it is too short. */
static inline uint32_t msg_costs_class(uint64_t len)
{
	uint32_t class;

	if (len < MSG_COSTS_LEAST)
		return MSG_COSTS_CLASSES;
	class = 63 - (uint32_t)__builtin_clzll(len / MSG_COSTS_LEAST);
	return class < MSG_COSTS_CLASSES ? class : MSG_COSTS_CLASSES - 1;
}

/* n by inequality 5.3. */
uint32_t msg_costs_uses(double reg, double copy, double over);
/* From which use on a buffer is taken to be a frequent one: so many percent of n, since it will
 * be used again. */
uint32_t msg_costs_frequent(uint32_t n, uint32_t percent);

/* Of a device; measured by the first who asks. That takes a millisecond or two, and no attempt is
 * repeated after five. 0 or -errno. Called from any thread. */
int msg_dev_costs(struct msg_dev *dev, struct msg_costs *out);

#endif
