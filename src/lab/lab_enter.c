#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"
#include "lab_build.h"
#include "lab_enter.h"
#include "lab_state.h"
#include "util_log.h"

static int open_of_holder(const struct lab *lab, const char *what, int flags, struct lab_error *e)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)lab->holder, what);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return lab_fail(e, ESRCH, "lab '%s' is gone", lab->spec.name);
	return lab_fail(e, errno, "no way into lab '%s' (%s): %s", lab->spec.name, path,
			strerror(errno));
}

static bool same_namespace(int fd, const char *own)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(own, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int join(const struct lab *lab, const char *what, int kind, struct lab_error *e)
{
	int fd = open_of_holder(lab, what, O_RDONLY, e);
	int ret = 0;

	if (fd < 0)
		return fd;
	if (setns(fd, kind))
		ret = lab_fail(e, errno, "no permission to enter lab '%s' (%s): %s", lab->spec.name,
			       what, strerror(errno));
	close(fd);
	return ret;
}

/* First of all, because it gives the right to enter the others. */
static int join_user(const struct lab *lab, struct lab_error *e)
{
	int fd, ret = 0;

	fd = open_of_holder(lab, "ns/user", O_RDONLY, e);
	if (fd < 0)
		return fd;
	/* Root's labs are in the machine's; to enter the one that we are in is an error. */
	if (!same_namespace(fd, "/proc/self/ns/user") && setns(fd, CLONE_NEWUSER))
		ret = lab_fail(e, errno, "no permission to enter lab '%s': %s", lab->spec.name,
			       strerror(errno));
	close(fd);
	return ret;
}

static int join_kept(const struct lab *lab, int fd, int kind, struct lab_error *e)
{
	char what[32];

	snprintf(what, sizeof(what), "fd/%d", fd);
	return join(lab, what, kind, e);
}

static int join_net(const struct lab *lab, struct fabric_node n, struct lab_error *e)
{
	return join_kept(lab, lab_net_fd(&lab->spec, n), CLONE_NEWNET, e);
}

/* What makes a host of a node; a switch has the machine's name. */
static int join_host(const struct lab *lab, struct fabric_node n, struct lab_error *e)
{
	int ret;

	if (n.level > 0)
		return 0;
	ret = join_kept(lab, lab_uts_fd(&lab->spec, n), CLONE_NEWUTS, e);
	return ret ? ret : join_kept(lab, lab_ipc_fd(&lab->spec, n), CLONE_NEWIPC, e);
}

/* The mount namespace comes with its own idea of the root and the current directory. */
static int join_mounts(const struct lab *lab, struct lab_error *e)
{
	char cwd[PATH_MAX];
	int root = open_of_holder(lab, "root", O_PATH | O_DIRECTORY, e);
	int ret = root < 0 ? root : 0;

	if (!getcwd(cwd, sizeof(cwd)))
		cwd[0] = '\0';
	if (!ret)
		ret = join(lab, "ns/mnt", CLONE_NEWNS, e);
	if (!ret && (fchdir(root) || chroot(".")))
		ret = lab_fail(e, errno, "cannot enter the root directory of lab '%s': %s",
			       lab->spec.name, strerror(errno));
	if (root >= 0)
		close(root);
	if (!ret && (!cwd[0] || chdir(cwd))) {
		util_log(UTIL_LOG_WARN,
			 "the current directory can not be entered in lab '%s': going "
			 "on in /",
			 lab->spec.name);
		if (chdir("/"))
			ret = lab_fail(e, errno, "cannot change to /: %s", strerror(errno));
	}
	return ret;
}

/* /sys shows the network namespace of whoever mounted it; UCX, for one, looks for interfaces
 * there. Where it can not be mounted, other programs still work. */
static void mount_sys(void)
{
	static const char groups[] = "/sys/fs/cgroup";
	int old = open(groups, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[32];

	if (!unshare(CLONE_NEWNS) &&
	    !mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) && old >= 0) {
		/* Programs look there for how much of the machine is theirs. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", old);
		mount(path, groups, NULL, MS_BIND | MS_REC, NULL);
	}
	if (old >= 0)
		close(old);
}

static int enter(const struct lab *lab, struct fabric_node n, struct lab_error *e)
{
	int ret = join_user(lab, e);

	if (!ret)
		ret = join(lab, "ns/pid", CLONE_NEWPID, e); /* of children */
	if (!ret)
		ret = join_host(lab, n, e);
	if (!ret)
		ret = join_net(lab, n, e);
	if (!ret)
		ret = join_mounts(lab, e);
	if (!ret)
		mount_sys();
	return ret;
}

/* For what is started inside: where the lab is written down does not depend on who asks. And,
 * unless somebody says otherwise, where its hosts are in the tree. */
static int tell_children(const struct lab *lab, struct lab_error *e)
{
	char topology[PATH_MAX + LAB_NAME_MAX + sizeof(LAB_TOPOLOGY)];

	snprintf(topology, sizeof(topology), "%s/%s/" LAB_TOPOLOGY, lab->dir, lab->spec.name);
	if (setenv("WEFT_LAB", lab->spec.name, 1) || setenv("WEFT_LAB_DIR", lab->dir, 1) ||
	    setenv("WEFT_COLL_TOPOLOGY", topology, 0))
		return lab_fail(e, ENOMEM, "out of memory");
	return 0;
}

struct arrival {
	pid_t pid;
	struct lab_error error;
};

/* What the process in between does: it enters, which can not be undone, and only a child of
 * its own will be in the PID namespace. That child it leaves to its own parent. */
static pid_t fork_inside(const struct lab *lab, struct fabric_node n, int report)
{
	struct arrival arrival = {0};
	int ret = tell_children(lab, &arrival.error);

	if (!ret)
		ret = enter(lab, n, &arrival.error);
	if (!ret) {
		arrival.pid =
			(pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
		if (!arrival.pid)
			return 0;
		if (arrival.pid < 0)
			lab_fail(&arrival.error, errno, "cannot start a process: %s",
				 strerror(errno));
	}
	if (write(report, &arrival, sizeof(arrival)) < 0)
		_exit(1);
	_exit(0);
}

static void close_pair(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

static bool read_all(int fd, void *to, size_t len)
{
	ssize_t got;

	do
		got = read(fd, to, len);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)len;
}

/* From here on the child dies with its parent; and if that was dead before, nobody is at the
 * other end. */
static void be_on_leash(int leash)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(leash, "", 1) != 1)
		_exit(1);
	close(leash);
}

pid_t lab_fork(const struct lab *lab, struct fabric_node n, struct lab_error *e)
{
	struct arrival arrival = {0};
	int report[2], leash[2];
	char byte;
	pid_t between;
	bool arrived;

	if (pipe2(report, O_CLOEXEC))
		return lab_fail(e, errno, "cannot start a process: %s", strerror(errno));
	if (pipe2(leash, O_CLOEXEC)) {
		close_pair(report);
		return lab_fail(e, errno, "cannot start a process: %s", strerror(errno));
	}
	fflush(NULL);
	between = fork();
	if (!between) {
		close(leash[0]);
		fork_inside(lab, n, report[1]);
		be_on_leash(leash[1]);
		close_pair(report);
		return 0;
	}
	close(report[1]);
	close(leash[1]);
	arrived = between > 0 && read_all(report[0], &arrival, sizeof(arrival));
	if (arrived && !arrival.error.code)
		read_all(leash[0], &byte, 1); /* dead already: waitpid will tell */
	close(report[0]);
	close(leash[0]);
	while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	if (!arrived)
		return lab_fail(e, EAGAIN, "cannot start a process");
	if (!arrival.error.code)
		return arrival.pid;
	*e = arrival.error;
	return -e->code;
}

int lab_enter_net(const struct lab *lab, struct fabric_node n, struct lab_error *e)
{
	int ret = join_user(lab, e);

	return ret ? ret : join_net(lab, n, e);
}
