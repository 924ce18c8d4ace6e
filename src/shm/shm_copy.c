#include "shm_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include "util_device.h"

/* Pieces per system call. The kernel would take 1024, but their cost is in the pages. */
#define WINDOW 64

/* How far a list has been worked off. */
struct cursor {
	struct shm_vec v;
	unsigned long i;
	size_t off; /* into piece i */
};

static bool total(struct shm_vec v, size_t *sum)
{
	*sum = 0;
	for (unsigned long i = 0; i < v.n; i++) {
		if (__builtin_add_overflow(*sum, v.iov[i].iov_len, sum))
			return false;
	}
	return true;
}

/* The next pieces, without those that are empty. */
static unsigned long window(const struct cursor *c, struct iovec out[WINDOW])
{
	unsigned long n = 0;
	size_t off = c->off;

	for (unsigned long i = c->i; i < c->v.n && n < WINDOW; i++, off = 0) {
		const struct iovec *p = &c->v.iov[i];

		if (p->iov_len == off)
			continue;
		out[n++] = (struct iovec){.iov_base = (void *)((uintptr_t)p->iov_base + off),
					  .iov_len = p->iov_len - off};
	}
	return n;
}

static void advance(struct cursor *c, size_t bytes)
{
	while (bytes > 0) {
		size_t left = c->v.iov[c->i].iov_len - c->off;

		if (bytes < left) {
			c->off += bytes;
			return;
		}
		bytes -= left;
		c->off = 0;
		c->i++;
	}
}

int shm_copy_from(pid_t pid, struct shm_vec local, struct shm_vec remote)
{
	struct cursor l = {.v = local}, r = {.v = remote};
	struct iovec lw[WINDOW], rw[WINDOW];
	size_t left, other;

	if (!total(local, &left) || !total(remote, &other) || left != other)
		return -EINVAL;
	while (left > 0) {
		unsigned long nl = window(&l, lw), nr = window(&r, rw);
		ssize_t done;

		UTIL_DEVICE_BEGIN;
		done = process_vm_readv(pid, lw, nl, rw, nr, 0);
		UTIL_DEVICE_END;
		if (done < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		/* Less than asked for ends at a bad page, or at 2 GB. The next call tells: it
		 * fails, or goes on. One that does neither would be for ever. */
		if (done == 0)
			return -EFAULT;
		advance(&l, (size_t)done);
		advance(&r, (size_t)done);
		left -= (size_t)done;
	}
	return 0;
}

int shm_copy_probe(pid_t pid, uint64_t address, uint64_t expected)
{
	uint64_t word = 0;
	struct iovec l = {.iov_base = &word, .iov_len = sizeof(word)};
	struct iovec r = {.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof(word)};
	int err;

	/* 0 would be ourselves to some calls and nobody to others. */
	if (pid <= 0)
		return -ESRCH;
	err = shm_copy_from(pid, (struct shm_vec){&l, 1}, (struct shm_vec){&r, 1});
	if (err)
		return err;
	return word == expected ? 0 : -ESRCH;
}
