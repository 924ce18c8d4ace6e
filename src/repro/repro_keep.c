/* A place that ends with us: namespaces of processes, mounts, network and IPC.
 *
 * Its process 1 is a child that the kernel kills when we die (PR_SET_PDEATHSIG), and with process 1
 * it kills all the others, labs included. Files that processes leave for each other are on a tmpfs
 * that only this place has: it goes with the last of them.
 */
#include "repro.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

static volatile sig_atomic_t caught;
static volatile pid_t first; /* process 1 as we see it, while it may be killed; 0: none */

/* Kills at once: a note for the one who waits could come just before it begins to wait. */
static void on_signal(int number)
{
	int saved = errno;

	caught = number;
	if (first > 0)
		kill(first, SIGKILL);
	errno = saved;
}

static int loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		ret = -errno;
	close(fd);
	return ret;
}

/* A directory below the one that is ours alone, and a variable that says so. */
static int own(const char *work, const char *name, const char *variable)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", work, name) >= sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return setenv(variable, path, 1) ? -errno : 0;
}

static int mount_own(const char *out)
{
	char work[PATH_MAX];
	int ret;

	if ((size_t)snprintf(work, sizeof(work), "%s/.work", out) >= sizeof(work))
		return -ENAMETOOLONG;
	if (mkdir(work, 0700) && errno != EEXIST)
		return -errno;
	/* Nothing of what is mounted here is seen outside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ||
	    mount("weft", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") ||
	    mount("weft", work, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700"))
		return -errno;
	ret = own(work, "labs", "WEFT_LAB_DIR");
	if (!ret)
		ret = own(work, "live", "WEFT_LIVE_DIR");
	return ret ? ret : own(work, "tmp", "TMPDIR");
}

/* What process 1 tells, once: 0 when the place is ready, or -errno. */
static void tell(int fd, int value)
{
	if (write(fd, &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

struct start {
	const struct repro_options *o;
	int (*fn)(void *arg);
	void *arg;
	int report, alive;
	bool user;
	uid_t uid;
	gid_t gid;
};

static __attribute__((noreturn)) void be_first(const struct start *s)
{
	struct lab_error e = {0};
	sigset_t none;
	char c;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A parent that died before that has closed its end, and nobody else has it. */
	if (read(s->alive, &c, 1) != 1)
		_exit(1);
	setsid(); /* Ctrl-C is the parent's affair */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ret = s->user ? lab_become_root(s->uid, s->gid, &e) : 0;
	if (!ret)
		ret = mount_own(s->o->out);
	if (!ret)
		ret = loopback_up();
	tell(s->report, ret);
	if (ret)
		_exit(1);
	close(s->report);
	ret = s->fn(s->arg);
	fflush(NULL);
	repro_sweep();
	_exit(ret < 0 || ret > 125 ? 125 : ret);
}

void repro_sweep(void)
{
	if (getpid() != 1)
		return; /* not ours to end */
	for (int i = 0; i < 100; i++) {
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			return;
		usleep(10000);
	}
}

static int wait_for(pid_t pid, int *signal_number)
{
	siginfo_t info;
	int status = 0;

	/* Its number is not given to somebody else before the handler has forgotten it. */
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	first = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*signal_number = caught;
	if (caught)
		return -EINTR;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

static pid_t begin(struct start *s, int alive[2], int report[2])
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | SIGCHLD;
	pid_t pid;

	if (s->user)
		flags |= CLONE_NEWUSER;
	fflush(NULL);
	/* As fork(2): no stack of its own. */
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (pid)
		return pid < 0 ? -errno : pid;
	close(alive[1]);
	close(report[0]);
	s->alive = alive[0];
	s->report = report[1];
	be_first(s);
}

static int supervise(struct start *s, int alive[2], int report[2], int *signal_number)
{
	pid_t pid = begin(s, alive, report);
	int ready = -EIO, ret;

	close(report[1]);
	first = pid > 0 ? pid : 0;
	if (caught && pid > 0)
		kill(pid, SIGKILL); /* it came before there was anybody to kill */
	if (pid > 0 && write(alive[1], "", 1) == 1)
		while (read(report[0], &ready, sizeof(ready)) < 0 && errno == EINTR && !caught)
			;
	/* Not before: to write for a process that was just killed would be our end, too. */
	close(alive[0]);
	/* alive[1] stays open for as long as we are. */
	ret = pid < 0 ? (int)pid : wait_for(pid, signal_number);
	close(alive[1]);
	close(report[0]);
	return pid > 0 && ready && ret != -EINTR ? ready : ret;
}

int repro_keep(const struct repro_options *o, int (*fn)(void *arg), void *arg, int *signal_number)
{
	struct start s = {.o = o,
			  .fn = fn,
			  .arg = arg,
			  .user = geteuid() != 0,
			  .uid = geteuid(),
			  .gid = getegid()};
	struct sigaction act = {.sa_handler = on_signal}, old[3];
	int alive[2], report[2], ret;

	*signal_number = 0;
	caught = 0;
	if (pipe2(alive, O_CLOEXEC))
		return -errno;
	if (pipe2(report, O_CLOEXEC)) {
		ret = -errno;
		close(alive[0]);
		close(alive[1]);
		return ret;
	}
	sigaction(SIGINT, &act, &old[0]);
	sigaction(SIGTERM, &act, &old[1]);
	sigaction(SIGHUP, &act, &old[2]);
	ret = supervise(&s, alive, report, signal_number);
	sigaction(SIGINT, &old[0], NULL);
	sigaction(SIGTERM, &old[1], NULL);
	sigaction(SIGHUP, &old[2], NULL);
	return ret;
}
