/* Virtual clusters: a fat tree of network namespaces on one machine.
 *
 * Every host and every switch is a network namespace, every cable a veth pair whose two ends
 * are shaped to the lab's rate. Hosts also have a host name (UTS namespace) and System V
 * shared memory (IPC namespace) of their own.
 * Nothing connects the lab to the machine: no packet gets out, whatever a program does.
 *
 * One process, the *holder*, is the lab: it has built the namespaces and keeps them open.
 * It is process 1 of a PID namespace in which everything that is started on the lab's hosts
 * runs, so a lab ends, wholly and at once, when the holder is killed: processes, then
 * namespaces, links, routes. What remains is a directory (lab_state.h), which `down`, and
 * the next `up` of that name, remove.
 *
 * As root the lab's namespaces belong to the machine's user namespace; anyone else's lab
 * has a user namespace of its own, in which its owner appears as root.
 *
 * Functions return 0 or -errno, and say in one sentence what was wrong (struct lab_error).
 * Single-threaded: entering a namespace changes the calling thread.
 */
#ifndef WEFT_LAB_H
#define WEFT_LAB_H

#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric_pgft.h"
#include "fabric_route.h"

struct lab_error {
	int code; /* errno */
	char text[320];
};

/* Fills in e; returns -code. */
int lab_fail(struct lab_error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define LAB_NAME_MAX      16 /* with the final zero; it becomes part of host names */
#define LAB_HOST_NAME_MAX (LAB_NAME_MAX + FABRIC_NAME_MAX)

/* ---- what a lab is like (lab_spec.c); pure ---- */

struct lab_spec {
	char name[LAB_NAME_MAX];
	struct fabric_pgft tree;
	struct fabric_routing routing;
	uint64_t rate; /* of each cable and direction, bits per second; 0: not limited */
	uint32_t mtu;
	uint32_t net;    /* the lab's addresses, host byte order: */
	uint32_t prefix; /* net/prefix */
};

int lab_name_check(const char *name, struct lab_error *e);
/* "100mbit", "2.5gbit", "unlimited". A unit is needed. */
int lab_rate_parse(const char *text, uint64_t *rate, struct lab_error *e);
void lab_rate_print(uint64_t rate, char text[32]);
/* "500ms", "10s", "2m", "10" (seconds): nanoseconds. */
int lab_time_parse(const char *text, uint64_t *ns, struct lab_error *e);

/* Address number a (0 … 2^lmc − 1) of a host; of a switch there is only number 0. */
struct in_addr lab_address(const struct lab_spec *s, struct fabric_node n, uint32_t a);
/* How many addresses the lab needs: its block has to be at least that large. */
uint64_t lab_address_count(const struct lab_spec *s);
/* Whose address this is: 0, or -ENOENT. */
int lab_find_address(const struct lab_spec *s, struct in_addr addr, struct fabric_node *n,
		     uint32_t *a);
/* A node by name ("h3", "s1.0"), host name ("fat-h3") or address; a is set for addresses. */
int lab_find_node(const struct lab_spec *s, const char *text, struct fabric_node *n, uint32_t *a,
		  struct lab_error *e);

/* "fat-h3": host names differ between labs, as MPI libraries name files after them. */
void lab_host_name(const struct lab_spec *s, struct fabric_node n, char name[LAB_HOST_NAME_MAX]);

/* Interfaces: a host has eth0 …, a switch has d0 … towards the hosts and u0 … away. */
#define LAB_PORT_MAX 16
void lab_port_name(struct fabric_node n, bool up, uint32_t port, char name[LAB_PORT_MAX]);

/* ---- labs that are there (lab_state.c) ---- */

struct lab {
	struct lab_spec spec;
	char dir[PATH_MAX]; /* where it is written down: that of all labs */
	bool user;          /* has a user namespace of its own */
	pid_t holder;       /* as seen from here */
	int64_t since;      /* when it came up, seconds of the epoch */
};

/* Finds a lab of ours that is alive; -ENOENT otherwise. */
int lab_open(struct lab *lab, const char *name, struct lab_error *e);
/* Calls fn for each lab of ours that is alive, by name. */
int lab_each(int (*fn)(const struct lab *lab, void *arg), void *arg, struct lab_error *e);

/* ---- up and down (lab_up.c, lab_down.c) ---- */

/* Hosts and switches. Each is a namespace, of half a megabyte in a large lab. */
#define LAB_NODES_MAX  4096
#define LAB_CABLES_MAX 16384
#define LAB_ROUTES_MAX 2000000
/* Ports that ECMP can choose from. The kernel lists only routes that fit into a page. */
#define LAB_ECMP_MAX 128

/* Builds the lab and leaves the holder behind. spec->net and prefix are chosen here. */
int lab_up(struct lab_spec *spec, struct lab *lab, struct lab_error *e);
/* In a new user namespace: uid and gid, which we were outside, are root. */
int lab_become_root(uid_t uid, gid_t gid, struct lab_error *e);
/* Ends the lab and removes what is left of it, alive or not, whole or not. -ENOENT when
 * there is nothing of that name. */
int lab_down(const char *name, struct lab_error *e);
/* The same for all labs of ours; *count: how many. */
int lab_down_all(uint32_t *count, struct lab_error *e);

/* ---- inside (lab_enter.c) ---- */

/* Forks a child onto a host or switch: network, host name, mounts, PID namespace are the
 * lab's, WEFT_LAB and WEFT_LAB_DIR in its environment name it, and WEFT_COLL_TOPOLOGY, if it was
 * not set, the file that says where its hosts are in the tree. As fork(2) it returns twice: the
 * child's process id, or 0 in the child; or -errno. The child dies with its parent. */
pid_t lab_fork(const struct lab *lab, struct fabric_node n, struct lab_error *e);

/* ---- watching and breaking (lab_watch.c, lab_cable.c) ---- */

/* One direction of a cable: what its sending end has counted since the lab came up. */
struct lab_flow {
	uint64_t bytes, packets, drops;
	uint64_t backlog; /* bytes waiting now */
	/* Since the sample before; 0 in the first. */
	double bits, losses; /* per second; losses: packets dropped */
	double utilisation;  /* of the rate (of the fastest cable, if not limited), 0 … 1 */
};

struct lab_load {
	struct lab_flow up, down;
	bool alive; /* not failed */
};

/* An eye on all cables; sockets into every namespace are opened once. */
struct lab_watch;
int lab_watch_open(struct lab_watch **w, const struct lab *lab, struct lab_error *e);
/* What is counted now. load has fabric_cables() elements, in the order of fabric_cable();
 * *seconds: since the sample before. -ESRCH when the lab has ended. */
int lab_watch_sample(struct lab_watch *w, struct lab_load *load, double *seconds,
		     struct lab_error *e);
void lab_watch_close(struct lab_watch *w);

/* A route of a node, as its kernel has it. */
struct lab_route {
	struct fabric_node node;
	struct in_addr dst;
	uint32_t prefix; /* 0: the default route, 32: one address */
	uint32_t count;  /* ports: one, or several that flows are hashed over */
	const char (*port)[LAB_PORT_MAX];
};

/* Calls fn for every route of every node; fn's value other than 0 ends it. */
int lab_routes(const struct lab *lab, int (*fn)(const struct lab_route *r, void *arg), void *arg,
	       struct lab_error *e);

/* Takes a cable away and puts it back. Doing so twice is no error. */
int lab_cable_fail(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e);
int lab_cable_heal(const struct lab *lab, const struct fabric_cable *c, struct lab_error *e);

/* ---- background traffic (lab_cross.c) ---- */

struct lab_cross {
	struct fabric_node from, to; /* hosts */
	uint32_t address;            /* which of the addresses of `to` */
	uint64_t rate;               /* bits per second on the wire, headers included */
	uint64_t duration;           /* nanoseconds */
	bool stop;                   /* may be set by a signal handler */
};

struct lab_cross_result {
	uint64_t sent, received; /* bytes on the wire */
	uint64_t packets_sent, packets_received;
	uint64_t ns, rx_ns; /* that sending took, and receiving */
};

/* One UDP flow, evenly paced, until the time is over or x->stop. */
int lab_cross(const struct lab *lab, volatile struct lab_cross *x, struct lab_cross_result *result,
	      struct lab_error *e);

#endif
