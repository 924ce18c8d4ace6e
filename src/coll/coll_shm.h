/* The memory that the ranks of a communicator on one host share.
 *
 * Made by one of them, attached by the others; the last of them to have it removes the file. Flags
 * are numbers of calls, one of each per bank, and compared for equality: whoever is ahead by one
 * call writes to the other bank. Every rank holds a lock of the system's on a byte of the file, so
 * that its death is seen, whatever name spaces there are.
 *
 *	head | words of each local rank, a cache line | flags of each host and bank | data
 */
#ifndef WEFT_COLL_SHM_H
#define WEFT_COLL_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLL_SHM_NAME  64
#define COLL_SHM_WORDS 16 /* of a local rank; 0 and 1 are MPI_Alltoall's, one per bank */
#define COLL_SHM_LEFT  15 /* it has ended the communicator, and nobody waits for it */

struct coll_shm_conf {
	uint32_t ranks; /* on this host */
	uint32_t hosts;
	size_t data; /* bytes */
};

struct coll_shm_head {
	_Atomic uint32_t events; /* what sleepers wait for */
	_Atomic uint32_t sleepers;
	_Atomic uint32_t broken; /* one of them has given the communicator up */
	_Atomic uint32_t have;   /* ranks that have it */
};

struct coll_shm {
	int fd;
	uint32_t ranks, me, hosts;
	size_t len;
	struct coll_shm_head *head;
	_Atomic uint32_t *words; /* COLL_SHM_WORDS per rank */
	_Atomic uint32_t *done;  /* [bank][host] */
	uint8_t *data;           /* on a page of its own */
};

/* Whether a segment of this size may be made in a file system of so many bytes, with so many free:
 * the MPI needs some of it, too, and may fail where there is none. all = 0: it has no limit. */
bool coll_shm_fits(uint64_t all, uint64_t free, uint64_t size);

/* The first of them: makes the segment, all zero, and gives it a name. me: the number on this
 * host. Both return 0 or -errno; -ENOSPC: it does not fit. */
int coll_shm_create(struct coll_shm *s, const struct coll_shm_conf *conf, uint32_t me,
		    char name[COLL_SHM_NAME]);
int coll_shm_attach(struct coll_shm *s, const struct coll_shm_conf *conf, uint32_t me,
		    const char *name);
/* For segments that not all could attach; of others there is no file any more. */
void coll_shm_unlink(const char *name);
void coll_shm_detach(struct coll_shm *s);
/* Removes files of jobs that were killed before all ranks had them. Done before a process has its
 * first segment, and not to be done while it has any. */
void coll_shm_sweep(void);

static inline _Atomic uint32_t *coll_shm_word(const struct coll_shm *s, uint32_t rank,
					      uint32_t word)
{
	return &s->words[rank * COLL_SHM_WORDS + word];
}

static inline _Atomic uint32_t *coll_shm_done(const struct coll_shm *s, uint32_t bank,
					      uint32_t host)
{
	return &s->done[bank * s->hosts + host];
}

/* Wakes those who sleep: something that they wait for may have changed. */
void coll_shm_event(struct coll_shm *s);
/* Sets a flag, after all that was written before; nobody is woken. It is one order with
 * coll_shm_is_by_now: of two who set a flag each, and then look at the other's, at least one sees
 * it. */
static inline void coll_shm_store(_Atomic uint32_t *flag, uint32_t value)
{
	atomic_store(flag, value);
}

static inline bool coll_shm_is_by_now(const _Atomic uint32_t *flag, uint32_t value)
{
	return atomic_load(flag) == value;
}

/* Sets a flag, after all that was written before, and wakes those who sleep. */
void coll_shm_set(struct coll_shm *s, _Atomic uint32_t *flag, uint32_t value);

static inline bool coll_shm_is(const _Atomic uint32_t *flag, uint32_t value)
{
	return atomic_load_explicit(flag, memory_order_acquire) == value;
}

/* Sleeps until somebody sets a flag, unless one was set since events was `seen`; not longer than
 * this. */
void coll_shm_sleep(struct coll_shm *s, uint32_t seen, uint64_t ns);

/* Says to all of them, and wakes them, that the communicator is broken; returns whether it was
 * before. */
bool coll_shm_break(struct coll_shm *s);

/* Whether the process of this rank is there, or has left in peace. */
bool coll_shm_alive(const struct coll_shm *s, uint32_t rank);

#endif
