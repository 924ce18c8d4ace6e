/* Transport types: a transport service with a function on it, as Hoefler et al. ("Assessing
 * Single-Message and Multi-Node Communication Performance of InfiniBand") call the combination.
 * Pure: which of them exist, and what a measurement of each is made of. */
#ifndef WEFT_BENCH_FAN_TYPE_H
#define WEFT_BENCH_FAN_TYPE_H

#include <stdbool.h>
#include <stddef.h>

enum fan_service { FAN_RC, FAN_UC, FAN_UD, FAN_RD, FAN_SERVICES };
enum fan_func { FAN_SEND, FAN_WRITE, FAN_READ, FAN_MCAST, FAN_ATOMIC, FAN_FUNCS };

/* How node 0, and for the first two the peers, too, know that something has come. */
enum fan_notice {
	FAN_BY_RECV,   /* a receive completes */
	FAN_BY_MEMORY, /* the last byte of the buffer changes */
	FAN_BY_SEND,   /* the own request completes: nobody answers */
};

struct fan_type {
	const char *name; /* "rc-send" */
	enum fan_service service;
	enum fan_func func;
	enum fan_notice notice;
	const char *how; /* what is measured, in a few words */
	const char *why; /* not NULL: there is no such thing, and why not */
};

/* All combinations, the missing ones too; ends with a NULL name. */
extern const struct fan_type fan_types[];
const struct fan_type *fan_type_find(const char *name); /* NULL: no such name */

const char *fan_service_name(enum fan_service service);
const char *fan_func_name(enum fan_func func);

/* Requests name their peer: node 0 has one queue pair for all. */
static inline bool fan_is_datagram(const struct fan_type *type)
{
	return type->service == FAN_UD || type->service == FAN_RD;
}

/* Messages may vanish. */
static inline bool fan_is_lossy(const struct fan_type *type)
{
	return type->service == FAN_UD || type->service == FAN_UC;
}

/* The time is that of the whole trip: only one side of it is ours to halve. */
static inline bool fan_is_full_trip(const struct fan_type *type)
{
	return type->notice == FAN_BY_SEND;
}

#endif
