#include "coll_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 64

/* FNV-1a: names are of processes of one job, not of an adversary's choice. */
static size_t hash(const uint8_t name[COLL_NAME_MAX])
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < COLL_NAME_MAX; i++)
		h = (h ^ name[i]) * UINT64_C(0x100000001b3);
	return (size_t)(h ^ h >> 32);
}

/* Where it is, or would be. There is always a free place. */
static struct coll_name *place(struct coll_name *slot, size_t slots, const uint8_t *name)
{
	size_t i = hash(name) & (slots - 1);

	while (slot[i].used && memcmp(slot[i].name, name, COLL_NAME_MAX) != 0)
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

static int grow(struct coll_names *s)
{
	size_t slots = s->slots ? 2 * s->slots : FIRST;
	struct coll_name *all = calloc(slots, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots; i++)
		if (s->slot[i].used)
			*place(all, slots, s->slot[i].name) = s->slot[i];
	free(s->slot);
	s->slot = all;
	s->slots = slots;
	return 0;
}

bool coll_names_find(const struct coll_names *s, const uint8_t name[COLL_NAME_MAX], uint64_t *addr)
{
	const struct coll_name *at = s->slots ? place(s->slot, s->slots, name) : NULL;

	if (!at || !at->used)
		return false;
	*addr = at->addr;
	return true;
}

int coll_names_add(struct coll_names *s, const uint8_t name[COLL_NAME_MAX], uint64_t addr)
{
	struct coll_name *at;

	if (2 * (s->n + 1) > s->slots && grow(s))
		return -ENOMEM;
	at = place(s->slot, s->slots, name);
	memcpy(at->name, name, COLL_NAME_MAX);
	at->addr = addr;
	at->used = true;
	s->n++;
	return 0;
}

void coll_names_free(struct coll_names *s)
{
	free(s->slot);
	memset(s, 0, sizeof(*s));
}
