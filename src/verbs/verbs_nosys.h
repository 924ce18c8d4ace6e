/* Answers for the time when there is no real library: verbs_nosys_<kind> per kind of
 * symbol, where <kind> is the third column of verbs_symbols.txt. Helpers that need no
 * hardware (names of codes, fork preparation) answer properly; the rest refuse with
 * ENOSYS in the manner of the function that they stand for.
 *
 * They are called in place of functions with any argument list; only addresses are
 * ever taken. */
#ifndef WEFT_VERBS_NOSYS_H
#define WEFT_VERBS_NOSYS_H

#include <infiniband/verbs.h>

int verbs_nosys_code(void);      /* errno, positive */
int verbs_nosys_fail(void);      /* -1 and errno */
long verbs_nosys_negative(void); /* -errno */
void *verbs_nosys_null(void);    /* NULL and errno */
long verbs_nosys_zero(void);     /* nothing to do, or nothing to return */

int verbs_nosys_fork_status(void);
const char *verbs_nosys_sysfs_path(void);
const char *verbs_nosys_unknown_str(void);
const char *verbs_nosys_node_type_str(enum ibv_node_type type);
const char *verbs_nosys_port_state_str(enum ibv_port_state state);
const char *verbs_nosys_event_type_str(enum ibv_event_type type);
const char *verbs_nosys_wc_status_str(enum ibv_wc_status status);

#endif
