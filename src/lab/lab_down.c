#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab.h"
#include "lab_state.h"

#define END_MS 1000

/* The holder is dead only when whoever is waiting for a process in the lab has been told that
 * it ended; somebody who is stopped, by Ctrl-Z, say, is not told. The lab itself is gone by
 * then, and the lock with it. Large labs take longer: another try. */
static bool has_ended(const struct lab_dir *dir, const char *name, struct pollfd *p)
{
	struct lab_holder holder;

	for (int i = 0; i < 30; i++)
		if (poll(p, 1, END_MS) == 1 || lab_claim(dir, name, &holder) != LAB_ALIVE)
			return true;
	return false;
}

/* The lock tells that the holder lives; while it does, its process id is its own. So the
 * descriptor that is taken before the lock is looked at again is that of the holder. */
static int kill_holder(const struct lab_dir *dir, const char *name, struct lab_error *e)
{
	struct lab_holder holder;
	struct pollfd p = {.fd = -1, .events = POLLIN};
	pid_t pid;
	int ret = 0;

	if (lab_claim(dir, name, &holder) != LAB_ALIVE)
		return 0;
	pid = lab_find_holder(dir, name, holder.pid);
	if (pid)
		p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (lab_claim(dir, name, &holder) != LAB_ALIVE)
		goto out;
	if (!pid || p.fd < 0)
		ret = lab_fail(e, ESRCH,
			       "the process of lab '%s' can not be seen from here: it is only just "
			       "coming up, in another PID namespace, or another user's",
			       name);
	else if (pid == 1)
		ret = lab_fail(e, EBUSY, "lab '%s' can not be taken down from inside", name);
	else if (syscall(SYS_pidfd_send_signal, p.fd, SIGKILL, NULL, 0))
		ret = lab_fail(e, errno, "cannot end the process %d of lab '%s': %s", (int)pid,
			       name, strerror(errno));
	else if (!has_ended(dir, name, &p))
		ret = lab_fail(e, ETIMEDOUT, "the process %d of lab '%s' does not end", (int)pid,
			       name);
out:
	if (p.fd >= 0)
		close(p.fd);
	return ret;
}

static int down(const struct lab_dir *dir, const char *name, struct lab_error *e)
{
	int ret = kill_holder(dir, name, e);

	return ret ? ret : lab_state_remove(dir, name, e);
}

/* Labs whose files somebody has removed: nothing points to them any more, but they live. */
static uint32_t kill_orphans(const struct lab_dir *dir, const char *name)
{
	struct pollfd p = {.events = POLLIN};
	uint32_t n = 0;
	bool killed;
	pid_t pid;

	while (n < 1000 && (pid = lab_find_orphan(dir, name))) {
		p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		/* Again, now that it can not become somebody else. */
		if (p.fd < 0)
			break;
		killed = lab_is_orphan(dir, name, pid) &&
			 !syscall(SYS_pidfd_send_signal, p.fd, SIGKILL, NULL, 0);
		if (killed)
			poll(&p, 1, END_MS);
		close(p.fd);
		if (!killed)
			break;
		n++;
	}
	return n;
}

int lab_down(const char *name, struct lab_error *e)
{
	struct lab_holder holder;
	struct lab_dir dir;
	uint32_t orphans;
	int ret = lab_name_check(name, e);

	if (!ret)
		ret = lab_dir_open(&dir, false, e);
	if (ret)
		return ret;
	orphans = kill_orphans(&dir, name);
	if (lab_claim(&dir, name, &holder) != LAB_NONE)
		ret = down(&dir, name, e);
	else if (!orphans)
		ret = lab_fail(e, ENOENT,
			       "there is no lab '%s'; 'weft lab list' shows those there are", name);
	lab_dir_close(&dir);
	return ret;
}

int lab_down_all(uint32_t *count, struct lab_error *e)
{
	struct lab_error each;
	struct lab_dir dir;
	char **names;
	size_t n;
	int ret = lab_dir_open(&dir, false, e);

	*count = 0;
	if (ret)
		return ret;
	*count = kill_orphans(&dir, NULL);
	ret = lab_names(&dir, &names, &n, e);
	/* One that does not end keeps none of the others. */
	for (size_t i = 0; i < n; i++) {
		if (!down(&dir, names[i], &each)) {
			++*count;
		} else if (!ret) {
			*e = each;
			ret = -e->code;
		}
	}
	lab_names_free(names, n);
	lab_dir_close(&dir);
	return ret;
}
