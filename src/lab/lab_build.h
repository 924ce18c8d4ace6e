/* What the holder of a lab does: makes it and keeps it. */
#ifndef WEFT_LAB_BUILD_H
#define WEFT_LAB_BUILD_H

#include "lab.h"

/* The holder keeps its namespaces open under these numbers. */
int lab_net_fd(const struct lab_spec *s, struct fabric_node n);
int lab_uts_fd(const struct lab_spec *s, struct fabric_node n); /* of hosts only, */
int lab_ipc_fd(const struct lab_spec *s, struct fabric_node n); /* this as well */

/* Makes all namespaces and everything in them; the caller is a process of its own, which ends
 * up in the last of them. hosts is a file that stands in for /etc/hosts, or NULL. */
int lab_build(const struct lab_spec *s, const char *hosts, struct lab_error *e);

#endif
