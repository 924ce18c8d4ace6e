/* What the files of fabric_lft_read share among themselves. */
#ifndef WEFT_FABRIC_LFT_IN_H
#define WEFT_FABRIC_LFT_IN_H

#include "fabric_lft.h"
#include "fabric_text.h"

#define LFT_NO_PORT  255
#define LINE_MAX_LEN 1000 /* descriptions have 64 characters at most */

struct lft_known {
	uint64_t guid;
	uint32_t node;
};

/* Whose a LID is; GUID 0: nobody said yet. */
struct lft_owner {
	uint64_t guid;
	uint32_t node;
};

/* Of a switch: ports by LID, below room, and the line where it begins; 0: not seen yet. */
struct lft_table {
	uint8_t *ports;
	uint32_t room, line, node;
};

struct lft_reader {
	const struct fabric_tree *tree;
	const struct fabric_pgft *t;
	struct lft_known *known; /* by port GUID, ascending */
	uint32_t n_known;
	struct lft_owner *owners; /* by LID, below n_owners */
	uint32_t n_owners;
	struct lft_table *tables; /* by switch */
	struct lft_table *table;  /* that is being read */
	bool skip;                /* it is of a switch beside the tree: nobody asks for it */
	const char *file;
	uint32_t line;
	char text[LINE_MAX_LEN + 1];
	char *why;
	size_t why_size;
};

#define lft_refuse(x, fmt, ...)                                                                    \
	fabric_refuse((x)->why, (x)->why_size, "%s:%u: " fmt, (x)->file, (x)->line, ##__VA_ARGS__)

/* Of a switch's table; LFT_NO_PORT: it has none for this LID. */
static inline uint32_t lft_port_at(const struct lft_table *t, uint32_t lid)
{
	return lid < t->room ? t->ports[lid] : LFT_NO_PORT;
}

/* What sentences call a node. Good until the next call of the same thread. */
const char *lft_name(const struct lft_reader *x, uint32_t node);

/* ---- fabric_lft_mean.c: what was read, as routes ---- */

/* The first LID of each host, and how many they have. 0, -ENOMEM, or -EINVAL with a sentence. */
int lft_find_runs(const struct lft_reader *x, uint32_t *first, uint32_t *lmc);
/* The tables by host; on an error *r is empty. */
int lft_convert(struct lft_reader *x, struct fabric_routes *r, const uint32_t *first, uint32_t lmc);

#endif
