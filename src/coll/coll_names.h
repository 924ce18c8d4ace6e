/* What an endpoint's name is for the network: a name that was met before is not put into its table
 * again, so communicators that come and go do not fill it. Nothing is ever forgotten: there are no
 * more names than processes that were met. Not locked.
 */
#ifndef WEFT_COLL_NAMES_H
#define WEFT_COLL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLL_NAME_MAX 64 /* of an endpoint; the rest is zero */

struct coll_name {
	uint8_t name[COLL_NAME_MAX];
	uint64_t addr;
	bool used;
};

struct coll_names {
	struct coll_name *slot; /* open addressing, half of them free at least */
	size_t slots, n;
};

bool coll_names_find(const struct coll_names *s, const uint8_t name[COLL_NAME_MAX], uint64_t *addr);
/* One that is not there. 0 or -ENOMEM. */
int coll_names_add(struct coll_names *s, const uint8_t name[COLL_NAME_MAX], uint64_t addr);
void coll_names_free(struct coll_names *s);

#endif
