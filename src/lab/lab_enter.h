/* The way into a lab, for its own parts (for all others: lab_fork in lab.h). */
#ifndef WEFT_LAB_ENTER_H
#define WEFT_LAB_ENTER_H

#include "lab.h"

/* Puts the calling process into a node's network namespace, and before that into the lab's
 * user namespace; nothing else changes. There is no way back. */
int lab_enter_net(const struct lab *lab, struct fabric_node n, struct lab_error *e);

#endif
