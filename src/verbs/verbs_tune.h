/* The tunables of this layer. They stand apart from the library so that others can
 * print them without linking it. */
#ifndef WEFT_VERBS_TUNE_H
#define WEFT_VERBS_TUNE_H

#include "util_tune.h"

enum {
	VERBS_TUNE_ONLY,
	VERBS_TUNE_REAL,
};
extern const struct util_tunable verbs_tunables[]; /* ends with a NULL name */

#endif
