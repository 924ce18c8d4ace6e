#include "coll_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const coll_op_names[COLL_OPS] = {
	[COLL_ALLTOALL] = "alltoall",   [COLL_ALLTOALLV] = "alltoallv",
	[COLL_ALLGATHER] = "allgather", [COLL_BCAST] = "bcast",
	[COLL_ALLREDUCE] = "allreduce", [COLL_REDUCE_SCATTER] = "reduce_scatter",
	[COLL_BARRIER] = "barrier",
};

const char *const coll_variant_names[COLL_VARIANTS] = {
	[COLL_AUTO] = "auto",
	[COLL_MPI] = "mpi",
	[COLL_DIRECT] = "direct",
	[COLL_PAP_DIRECT] = "pap_direct",
	[COLL_SHM_DIRECT] = "shm_direct",
	[COLL_PAP_SHM_DIRECT] = "pap_shm_direct",
	[COLL_DISSEM] = "dissem",
	[COLL_TREE] = "tree",
	[COLL_HALVING] = "halving",
};

#define V(v) (1u << (v))
#define ANY  (V(COLL_AUTO) | V(COLL_MPI))

static const unsigned int variants[COLL_OPS] = {
	[COLL_ALLTOALL] = ANY | V(COLL_DIRECT) | V(COLL_PAP_DIRECT) | V(COLL_SHM_DIRECT) |
			  V(COLL_PAP_SHM_DIRECT),
	[COLL_ALLTOALLV] = ANY | V(COLL_DIRECT) | V(COLL_PAP_DIRECT),
	[COLL_ALLGATHER] = ANY | V(COLL_TREE),
	[COLL_BCAST] = ANY | V(COLL_DIRECT) | V(COLL_TREE),
	[COLL_ALLREDUCE] = ANY | V(COLL_TREE) | V(COLL_HALVING),
	[COLL_REDUCE_SCATTER] = ANY | V(COLL_TREE) | V(COLL_HALVING),
	[COLL_BARRIER] = ANY | V(COLL_DISSEM),
};

bool coll_has(enum coll_op op, enum coll_variant v)
{
	return variants[op] & V(v);
}

static int find(const char *const *names, int n, const char *text, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(names[i]) == len && !strncmp(names[i], text, len))
			return i;
	return -1;
}

/* MPI_Reduce_scatter_block is done as MPI_Reduce_scatter. */
static int find_op(const char *text, size_t len)
{
	static const char *const block[] = {"reduce_scatter_block"};

	return find(block, 1, text, len) ? find(coll_op_names, COLL_OPS, text, len)
					 : COLL_REDUCE_SCATTER;
}

/* Appends names, with commas, of those whose bits are set. */
static void list(char *why, size_t size, const char *const *names, unsigned int bits)
{
	const char *comma = " ";

	for (int i = 0; bits >> i; i++) {
		size_t len = strlen(why);

		if (!(bits >> i & 1))
			continue;
		snprintf(why + len, size - len, "%s%s", comma, names[i]);
		comma = ", ";
	}
}

/* Of a word so many bytes are repeated that what would be right has room, too. */
static int word(long len)
{
	return len < 40 ? (int)len : 40;
}

static int parse_pair(struct coll_choice *c, const char *pair, int len, char *why, size_t size)
{
	const char *eq = memchr(pair, '=', (size_t)len), *end = pair + len;
	int op, v;

	if (!eq) {
		snprintf(why, size,
			 "'%.*s' is not OPERATION=VARIANT; auto, off, or for example "
			 "alltoall=pap_direct",
			 word(len), pair);
		return -EINVAL;
	}
	op = find_op(pair, (size_t)(eq - pair));
	if (op < 0) {
		snprintf(why, size, "there is no operation '%.*s'; there are", word(eq - pair),
			 pair);
		list(why, size, coll_op_names, V(COLL_OPS) - 1);
		return -EINVAL;
	}
	eq++;
	v = find(coll_variant_names, COLL_VARIANTS, eq, (size_t)(end - eq));
	if (v < 0 || !coll_has((enum coll_op)op, (enum coll_variant)v)) {
		snprintf(why, size, "%s has no variant '%.*s'; it has", coll_op_names[op],
			 word(end - eq), eq);
		list(why, size, coll_variant_names, variants[op]);
		return -EINVAL;
	}
	c->variant[op] = (enum coll_variant)v;
	return 0;
}

int coll_choice_parse(const char *text, struct coll_choice *c, char *why, size_t size)
{
	memset(c, 0, sizeof(*c));
	if (!text || !*text || !strcmp(text, "auto"))
		return 0;
	if (!strcmp(text, "off")) {
		c->off = true;
		return 0;
	}
	while (*text) {
		int len = (int)strcspn(text, ",");

		if (parse_pair(c, text, len, why, size)) {
			memset(c, 0, sizeof(*c));
			return -EINVAL;
		}
		text += len + (text[len] == ',');
		text += strspn(text, " ");
	}
	return 0;
}
