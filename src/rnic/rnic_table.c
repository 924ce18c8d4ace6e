#include <errno.h>
#include <stdlib.h>
#include "rnic_table.h"

struct entry {
	void *value; /* NULL: free */
	uint32_t key;
};

struct rnic_table {
	unsigned int bits, used;
	struct entry *slots;
};

static unsigned int home(const struct rnic_table *t, uint32_t key)
{
	return (key * UINT32_C(0x9e3779b1)) >> (32 - t->bits);
}

static unsigned int mask(const struct rnic_table *t)
{
	return (1u << t->bits) - 1;
}

struct rnic_table *rnic_table_new(void)
{
	struct rnic_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->bits = 6;
	t->slots = calloc(1u << t->bits, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return NULL;
	}
	return t;
}

void rnic_table_free(struct rnic_table *t)
{
	if (!t)
		return;
	free(t->slots);
	free(t);
}

static unsigned int find(const struct rnic_table *t, uint32_t key)
{
	unsigned int i = home(t, key);

	while (t->slots[i].value && t->slots[i].key != key)
		i = (i + 1) & mask(t);
	return i;
}

static int grow(struct rnic_table *t)
{
	struct entry *old = t->slots;
	unsigned int n = 1u << t->bits;

	t->slots = calloc(2 * (size_t)n, sizeof(*old));
	if (!t->slots) {
		t->slots = old;
		return -ENOMEM;
	}
	t->bits++;
	for (unsigned int i = 0; i < n; i++)
		if (old[i].value)
			t->slots[find(t, old[i].key)] = old[i];
	free(old);
	return 0;
}

int rnic_table_add(struct rnic_table *t, uint32_t key, void *value)
{
	unsigned int i;

	if (2 * (t->used + 1) > 1u << t->bits && grow(t))
		return -ENOMEM;
	i = find(t, key);
	if (t->slots[i].value)
		return -EEXIST;
	t->slots[i] = (struct entry){.key = key, .value = value};
	t->used++;
	return 0;
}

void *rnic_table_get(const struct rnic_table *t, uint32_t key)
{
	return t->slots[find(t, key)].value;
}

/* Closes the gap: every later entry of the run moves up if its home allows it. */
void rnic_table_del(struct rnic_table *t, uint32_t key)
{
	unsigned int gap = find(t, key), i;

	if (!t->slots[gap].value)
		return;
	for (i = (gap + 1) & mask(t); t->slots[i].value; i = (i + 1) & mask(t)) {
		unsigned int want = home(t, t->slots[i].key);

		if (((i - want) & mask(t)) >= ((i - gap) & mask(t))) {
			t->slots[gap] = t->slots[i];
			gap = i;
		}
	}
	t->slots[gap].value = NULL;
	t->used--;
}
