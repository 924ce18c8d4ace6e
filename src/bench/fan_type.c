#include <string.h>

#include "fan_type.h"

#define ECHO      "each peer sends the message back; both sides poll their CQ"
#define LAST_BYTE "each peer writes back; both sides poll the last byte of their buffer"
#define ONE_SIDED                                                                                  \
	"until the last completion, the whole trip; the peers' programs have no part in it"

const struct fan_type fan_types[] = {
	{"rc-send", FAN_RC, FAN_SEND, FAN_BY_RECV, ECHO, NULL},
	{"uc-send", FAN_UC, FAN_SEND, FAN_BY_RECV, ECHO, NULL},
	{"ud-send", FAN_UD, FAN_SEND, FAN_BY_RECV, ECHO "; up to the MTU", NULL},
	{"rd-send", FAN_RD, FAN_SEND, FAN_BY_RECV, ECHO, NULL},
	{"rc-write", FAN_RC, FAN_WRITE, FAN_BY_MEMORY, LAST_BYTE, NULL},
	{"uc-write", FAN_UC, FAN_WRITE, FAN_BY_MEMORY, LAST_BYTE, NULL},
	{"ud-write", FAN_UD, FAN_WRITE, FAN_BY_MEMORY, NULL, "UD has no remote memory access"},
	{"rd-write", FAN_RD, FAN_WRITE, FAN_BY_RECV,
	 "with immediate data, which completes a receive: data may be placed out of order, so the "
	 "last byte says nothing",
	 NULL},
	{"rc-read", FAN_RC, FAN_READ, FAN_BY_SEND,
	 ONE_SIDED "; stage 2: all peers read from node 0", NULL},
	{"uc-read", FAN_UC, FAN_READ, FAN_BY_SEND, NULL,
	 "a read needs an answer that is sure to come, and UC has none"},
	{"ud-read", FAN_UD, FAN_READ, FAN_BY_SEND, NULL, "UD has no remote memory access"},
	{"rd-read", FAN_RD, FAN_READ, FAN_BY_SEND,
	 ONE_SIDED "; stage 2: all peers read from node 0", NULL},
	{"rc-mcast", FAN_RC, FAN_MCAST, FAN_BY_RECV, NULL, "a connection has one peer"},
	{"uc-mcast", FAN_UC, FAN_MCAST, FAN_BY_RECV, NULL, "a connection has one peer"},
	{"ud-mcast", FAN_UD, FAN_MCAST, FAN_BY_RECV,
	 "one multicast to all; each peer answers with a unicast UD send", NULL},
	{"rd-mcast", FAN_RD, FAN_MCAST, FAN_BY_RECV, NULL,
	 "no group can acknowledge; multicast is for UD only"},
	{"rc-atomic", FAN_RC, FAN_ATOMIC, FAN_BY_SEND, "fetch and add of 8 bytes, " ONE_SIDED,
	 NULL},
	{"uc-atomic", FAN_UC, FAN_ATOMIC, FAN_BY_SEND, NULL,
	 "an atomic needs an answer that is sure to come, and UC has none"},
	{"ud-atomic", FAN_UD, FAN_ATOMIC, FAN_BY_SEND, NULL, "UD has no remote memory access"},
	{"rd-atomic", FAN_RD, FAN_ATOMIC, FAN_BY_SEND, "fetch and add of 8 bytes, " ONE_SIDED,
	 NULL},
	{0},
};

const struct fan_type *fan_type_find(const char *name)
{
	for (const struct fan_type *t = fan_types; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

const char *fan_service_name(enum fan_service service)
{
	static const char *const names[] = {"RC", "UC", "UD", "RD"};

	return names[service];
}

const char *fan_func_name(enum fan_func func)
{
	static const char *const names[] = {"send", "RDMA write", "RDMA read", "multicast",
					    "atomic"};

	return names[func];
}
