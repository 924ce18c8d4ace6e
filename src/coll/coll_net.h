/* The network below collectives: one libfabric endpoint per process, registered memory, writes
 * that tell the receiver of themselves, and completions.
 *
 * Callable from any thread once opened; one of them at a time makes progress for all. What arrives
 * is handed to one function, with the lock of progress held: it must not call back.
 */
#ifndef WEFT_COLL_NET_H
#define WEFT_COLL_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "coll_names.h"

/* What peers need to write into memory of ours: they add the offset to addr. */
struct coll_key {
	uint64_t addr, key;
};

struct coll_mem {
	struct fid_mr *mr;
	void *desc;
	struct coll_key key;
};

/* A write on its way. It stays where it is until done is called, once, and belongs to that. */
struct coll_tx {
	struct fi_context2 context; /* the provider's */
	void (*done)(struct coll_tx *tx, int err);
	void *owner;
	uint32_t peer;
	atomic_bool busy;   /* for the owner's use */
	atomic_uint *group; /* likewise */
};

struct coll_to {
	fi_addr_t addr;
	uint64_t remote, key;
};

typedef void (*coll_net_arrived)(uint32_t word);

/* Opens the endpoint, the first time. provider: a libfabric provider, "weft" for our own, which is
 * also found if libfabric does not know of it. Returns 0 or -errno, the same every time. */
int coll_net_open(const char *provider, coll_net_arrived arrived);
/* Nobody else may be calling. */
void coll_net_close(void);

/* The endpoint's name; its length. */
size_t coll_net_name(uint8_t name[COLL_NAME_MAX]);
/* Whom to write to; the same for a name that was met before. 0 or -errno. */
int coll_net_peer(const uint8_t *name, fi_addr_t *addr);

/* For peers to write to, and for writes of our own from it. */
int coll_net_reg(void *buf, size_t len, struct coll_mem *mem);
void coll_net_dereg(struct coll_mem *mem);
/* Whether writes need a desc, that is, come from registered memory only. */
bool coll_net_local(void);

/* The longest write. */
size_t coll_net_longest(void);

/* Whether writes reach the other side while nobody here makes progress. */
bool coll_net_moves(void);

/* A word of ours that anybody may write to, to see whether we are there. */
struct coll_key coll_net_ping_key(void);

/* A word that is registered as long as there is an endpoint, to write from. */
const uint64_t *coll_net_word(void **desc);

/* Starts a write of len bytes, also of none, and tells the receiver by `word` when it is there.
 * Returns 0, -EAGAIN: make progress first; or another -errno. */
int coll_net_write(struct coll_tx *tx, const void *buf, size_t len, void *desc,
		   const struct coll_to *to, uint32_t word);
/* The same, and nobody is told: whoever wants to know looks at the memory. */
int coll_net_store(struct coll_tx *tx, const void *buf, size_t len, void *desc,
		   const struct coll_to *to);
/* A write to the word of a peer's that anybody may write to. */
int coll_net_ping(struct coll_tx *tx, const struct coll_to *to);

/* How many completions there were; 0 also while another thread makes progress. */
int coll_net_progress(void);
/* The same, but waits for one, a millisecond at most. */
int coll_net_nap(void);
/* Returns when no thread is in the middle of handing out what it could see before. */
void coll_net_fence(void);

#endif
