#include "shm_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

_Static_assert(sizeof(struct shm_control) <= SHM_AREA_CONTROL, "control page");

/* 0 if nobody can ever take pages of this file away. Seals are looked at first: once they
 * are on, the size that is read next is final. */
static int check(int fd, size_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPROTO;
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return -EPROTO;
	if (fstat(fd, &st) || st.st_size < 0 || (size_t)st.st_size != bytes)
		return -EPROTO;
	return 0;
}

int shm_area_map(struct shm_area *a, int fd, uint32_t ring)
{
	size_t bytes = shm_area_bytes(ring);
	void *map;
	int err;

	if (!shm_ring_size_ok(ring))
		return -EPROTO;
	err = check(fd, bytes);
	if (err)
		return err;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		/* EPERM: sealed against writing, too, or open for reading only. */
		return errno == EPERM || errno == EACCES ? -EPROTO : -errno;
	*a = (struct shm_area){.map = map, .bytes = bytes, .ring = ring};
	return 0;
}

int shm_area_make(struct shm_area *a, uint32_t ring)
{
	int fd, err;

	if (!shm_ring_size_ok(ring))
		return -EINVAL;
	fd = memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* No seal against sealing: the other side could not do harm with one. */
	if (ftruncate(fd, (off_t)shm_area_bytes(ring)) || fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	else
		err = shm_area_map(a, fd, ring);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

void shm_area_unmap(struct shm_area *a)
{
	if (a->map)
		munmap(a->map, a->bytes);
	*a = (struct shm_area){0};
}
