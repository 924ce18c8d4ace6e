/* Copying out of another process' memory, in one go and without its help.
 *
 * The kernel allows it to whom it allows ptrace: the same user, no set-user-id program, no
 * yama that says otherwise, no seccomp filter, and a pid that means something here. There
 * is no way to know but to try. So one side tells the other the address and the value of
 * a word that nobody could guess, and the other probes: that also proves that the pid is
 * that very process and not the namesake in another pid namespace, or its successor.
 *
 * A process that is gone, or one that took its number, is found by the caller through the
 * link (shm_link.h), which breaks at the latest when the process ends.
 *
 * Callable from any thread; blocks only for the time of the copy.
 */
#ifndef WEFT_SHM_COPY_H
#define WEFT_SHM_COPY_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A list of pieces of memory; those of the other process are never dereferenced here. */
struct shm_vec {
	const struct iovec *iov;
	unsigned long n;
};

/* Copies everything. Both lists must have the same total length,
 * however it is cut up, or nothing is copied and -EINVAL returned. 0 or -errno: -EPERM,
 * -ESRCH (no such process), -EFAULT (memory that is not there, on either side), -ENOSYS.
 * After an error some of it may have been copied. */
int shm_copy_from(pid_t pid, struct shm_vec local, struct shm_vec remote);

/* Whether the above will work: 0, or -errno as above. -ESRCH also when another
 * value is found at the address: the pid is somebody else. Changes nothing there. */
int shm_copy_probe(pid_t pid, uint64_t address, uint64_t expected);

#endif
