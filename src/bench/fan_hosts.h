/* Where the peers are: processes that are started here, or servers elsewhere.
 *
 * Started here they are on a second host, a network namespace joined with ours by a veth pair, or
 * on this one, over loopback. Whatever way this process ends, they end with it, and the namespaces
 * with them: nothing has a name in the system. */
#ifndef WEFT_BENCH_FAN_HOSTS_H
#define WEFT_BENCH_FAN_HOSTS_H

#include "fan_opts.h"

/* Connects root->ctl to all peers. *link says in a word what lies between; may print. */
int fan_hosts_start(const struct fan_opts *o, struct fan_root *root, const char **link);
void fan_hosts_stop(void);

/* The n-th CPU that this process may use, counted round; before a device is opened, so that its
 * threads inherit it. */
void fan_pin(const struct fan_opts *o, unsigned int nth);
unsigned int fan_cores(void); /* that this process may use */

/* fan_server.c: a process for each connection. ready >= 0: the port is written there as text. */
int fan_server(const struct fan_opts *o, int ready);

#endif
