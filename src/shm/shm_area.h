/* The memory that two processes share: a memfd with a control page and two rings.
 *
 * Whoever gets a file from somebody else and maps it can be killed by SIGBUS when the
 * other makes the file shorter. So an area is mapped only if the file is sealed against
 * shrinking and growing, has exactly the expected size, and is ordinary shared memory:
 * pages of a hugetlbfs can be punched out and then be missing, and another file system
 * may do what it wants.
 *
 * Side 0 is the process that made the area. Side s writes ring s and reads ring 1 - s.
 */
#ifndef WEFT_SHM_AREA_H
#define WEFT_SHM_AREA_H

#include <stddef.h>
#include <stdint.h>
#include "shm_ring.h"

/* Two lines: adjacent lines are fetched in pairs by some processors. */
#define SHM_AREA_APART 128

/* Permissions to copy from the memory of a side, see shm_link.h. */
#define SHM_GRANTS 64

struct shm_control {
	struct {
		_Alignas(SHM_AREA_APART) shm_word head;
	} ring[2];
	struct {
		_Alignas(SHM_AREA_APART) _Atomic(uint32_t) asleep;
	} side[2];
	struct {
		_Alignas(SHM_AREA_APART) _Atomic(uint32_t) word[SHM_GRANTS];
	} grants[2];
};

#define SHM_AREA_CONTROL 4096 /* bytes before the rings: a page, so that these are aligned */

struct shm_area {
	uint8_t *map; /* NULL: none */
	size_t bytes;
	uint32_t ring; /* bytes of each ring */
};

static inline struct shm_control *shm_area_control(const struct shm_area *a)
{
	return (struct shm_control *)(void *)a->map;
}

static inline uint8_t *shm_area_ring(const struct shm_area *a, int side)
{
	return a->map + SHM_AREA_CONTROL + (size_t)side * a->ring;
}

static inline size_t shm_area_bytes(uint32_t ring)
{
	return SHM_AREA_CONTROL + 2 * (size_t)ring;
}

/* Makes and maps a new one, all zero. Returns its descriptor, or -errno. */
int shm_area_make(struct shm_area *a, uint32_t ring);

/* Maps what somebody else says is one; fd stays the caller's. 0, -EPROTO when it is not
 * what it should be, or what mmap says. */
int shm_area_map(struct shm_area *a, int fd, uint32_t ring);

void shm_area_unmap(struct shm_area *a);

#endif
