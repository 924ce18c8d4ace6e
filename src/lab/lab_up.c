#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric_launch.h"
#include "lab.h"
#include "lab_build.h"
#include "lab_net.h"
#include "lab_state.h"

/* ---- the holder ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* In a user namespace of our own we are root. */
int lab_become_root(uid_t uid, gid_t gid, struct lab_error *e)
{
	char map[64];
	int ret;

	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %ju 1\n", (uintmax_t)uid);
	ret = write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %ju 1\n", (uintmax_t)gid);
	if (!ret)
		ret = write_file("/proc/self/gid_map", map);
	return ret ? lab_fail(e, -ret, "cannot become root in a user namespace: %s", strerror(-ret))
		   : 0;
}

/* What the holder has open by itself; all else is namespaces (lab_build.c). */
enum { REPORT_FD = LAB_LOCK_FD + 1 };

/* Whoever waits for our output must not wait for us. */
static void detach(int report, int lock)
{
	int null = open("/dev/null", O_RDWR);
	int high_lock = fcntl(lock, F_DUPFD, REPORT_FD + 1),
	    high_report = fcntl(report, F_DUPFD, REPORT_FD + 1);

	setsid();
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	dup3(high_lock, LAB_LOCK_FD, O_CLOEXEC);
	dup3(high_report, REPORT_FD, O_CLOEXEC);
	syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0);
	if (chdir("/"))
		return;
}

static bool nobody_listens(void)
{
	struct pollfd p = {.fd = REPORT_FD, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
}

static void tell(const struct lab_error *e)
{
	/* Whole or not at all. */
	if (write(REPORT_FD, e, sizeof(*e)) < 0)
		_exit(1);
}

struct start {
	const struct lab_spec *spec;
	char hosts[PATH_MAX];
	bool user;
	int report, lock;
};

/* Builds, then sleeps until it is killed. As process 1 it is the parent of orphans, and of
 * everything's end: with it the kernel kills all that runs in the lab. */
static void __attribute__((noreturn)) hold(const struct start *start, uid_t uid, gid_t gid)
{
	struct lab_error e = {0};
	sigset_t none;
	char go;

	prctl(PR_SET_NAME, "weft-lab");
	/* A lab that is half built goes with whoever builds it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	detach(start->report, start->lock);
	if (nobody_listens())
		_exit(1);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps */
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (!(start->user && lab_become_root(uid, gid, &e)))
		lab_build(start->spec, start->hosts, &e);
	if (e.code) {
		tell(&e);
		_exit(1);
	}
	tell(&e);
	/* Only when it is written down does it live on its own. */
	if (read(REPORT_FD, &go, 1) != 1)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, 0);
	close(REPORT_FD);
	sigemptyset(&none);
	for (;;)
		sigsuspend(&none);
}

static pid_t start_holder(const struct start *start, struct lab_error *e)
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | SIGCHLD;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid;

	if (start->user)
		flags |= CLONE_NEWUSER;
	/* As fork(2): no stack of its own. */
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (!pid)
		hold(start, uid, gid);
	if (pid > 0)
		return pid;
	if ((errno == EPERM || errno == ENOSPC) && start->user)
		return lab_fail(
			e, EPERM,
			"no permission to make namespaces: run it as root, or let users make "
			"user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
			"user.max_user_namespaces > 0; never possible in a chroot)");
	if (errno == EPERM)
		return lab_fail(
			e, EPERM,
			"no permission to make namespaces (CAP_SYS_ADMIN): is this a container? "
			"It has to be a privileged one");
	if (errno == ENOSPC)
		return lab_fail(e, ENOSPC,
				"no more namespaces are allowed here; see sysctl user.max_*");
	return lab_fail(e, errno, "cannot start the lab's process: %s", strerror(errno));
}

/* ---- waiting for it ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof(signals) / sizeof(*signals))

static void catch_signals(struct sigaction old[SIGNALS])
{
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: read() returns */

	interrupted = 0;
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &act, &old[i]);
}

static void release_signals(const struct sigaction old[SIGNALS])
{
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &old[i], NULL);
}

static int wait_for(int report, struct lab_error *e)
{
	struct lab_error told;
	ssize_t got;

	do {
		if (interrupted)
			return lab_fail(e, EINTR, "interrupted; nothing is left of the lab");
		got = read(report, &told, sizeof(told));
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(told))
		return lab_fail(e, ECHILD, "the lab's process died while building it");
	if (!told.code)
		return 0;
	*e = told;
	e->text[sizeof(e->text) - 1] = '\0';
	return -e->code;
}

static void kill_holder(pid_t holder)
{
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- claiming name and addresses ---- */

static int choose_net(const struct lab_dir *dir, struct lab_spec *spec, struct lab_error *e)
{
	struct lab_nets nets = {0};
	char **names;
	size_t n;
	int ret = lab_names(dir, &names, &n, e);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < n; i++) {
		struct lab_holder other;

		if (lab_claim(dir, names[i], &other) == LAB_ALIVE && other.prefix)
			ret = lab_nets_add(&nets, other.net, other.prefix);
	}
	lab_names_free(names, n);
	if (ret)
		ret = lab_fail(e, -ret, "out of memory");
	if (!ret)
		ret = lab_nets_machine(&nets, e);
	if (!ret) {
		ret = lab_nets_choose(&nets, lab_address_count(spec), &spec->net, &spec->prefix);
		if (ret == -E2BIG)
			lab_fail(e, E2BIG, "the lab needs %llu addresses, more than 10.0.0.0/8 has",
				 (unsigned long long)lab_address_count(spec));
		else if (ret)
			lab_fail(e, -ret,
				 "no block of private addresses is free on this machine that is "
				 "large enough for the lab");
	}
	lab_nets_free(&nets);
	return ret;
}

/* The full name first: it is what `hostname -f` answers. */
static void write_names(const struct lab_spec *s, struct fabric_node n, FILE *to)
{
	char name[FABRIC_NAME_MAX], host[LAB_HOST_NAME_MAX], text[INET_ADDRSTRLEN];

	fabric_name(n, name);
	lab_host_name(s, n, host);
	for (uint32_t a = 0; a < (n.level ? 1 : 1u << s->routing.lmc); a++) {
		struct in_addr addr = lab_address(s, n, a);

		inet_ntop(AF_INET, &addr, text, sizeof(text));
		if (a)
			fprintf(to, "%s %s.%u %s.%u\n", text, host, a, name, a);
		else
			fprintf(to, "%s %s %s\n", text, host, name);
	}
}

/* What its hosts see as /etc/hosts. */
static int write_hosts(const struct lab_spec *s, FILE *to)
{
	fputs("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n", to);
	for (uint32_t i = 0; i < fabric_nodes(&s->tree); i++)
		write_names(s, fabric_node(&s->tree, i), to);
	return 0;
}

/* Where they are in the tree, for those who go by it. */
static int write_topology(const struct lab_spec *s, FILE *to)
{
	char prefix[LAB_NAME_MAX + 1], why[128];

	snprintf(prefix, sizeof(prefix), "%s-", s->name);
	return fabric_launch_topology(to, &s->tree, prefix, why, sizeof(why));
}

static int write_for_hosts(const struct lab_spec *s, const char *path,
			   int (*write)(const struct lab_spec *, FILE *), struct lab_error *e)
{
	FILE *to = fopen(path, "we");
	int ret;

	if (!to)
		return lab_fail(e, errno, "cannot write %.200s: %s", path, strerror(errno));
	fchmod(fileno(to), 0644); /* for everybody on the hosts, whatever our umask is */
	ret = write(s, to);
	if (fclose(to) && !ret)
		ret = -errno;
	return ret ? lab_fail(e, -ret, "cannot write %.200s: %s", path, strerror(-ret)) : 0;
}

static int write_files(const struct lab_dir *dir, const struct lab_spec *s, struct start *start,
		       struct lab_error *e)
{
	char topology[PATH_MAX];
	int ret;

	if (snprintf(start->hosts, PATH_MAX, "%s/%s/hosts", dir->path, s->name) >= PATH_MAX ||
	    snprintf(topology, PATH_MAX, "%s/%s/" LAB_TOPOLOGY, dir->path, s->name) >= PATH_MAX)
		return lab_fail(e, ENAMETOOLONG, "the path of the lab's directory is too long");
	ret = write_for_hosts(s, start->hosts, write_hosts, e);
	return ret ? ret : write_for_hosts(s, topology, write_topology, e);
}

/* Takes the name; the lock, or -errno. */
static int claim(const struct lab_dir *dir, struct lab_spec *spec, struct start *start,
		 struct lab_error *e)
{
	struct lab_error ignored;
	struct lab_holder other;
	int lock, ret;

	switch (lab_claim(dir, spec->name, &other)) {
	case LAB_ALIVE:
		return lab_fail(e, EEXIST,
				"there is a lab '%s' already; choose another name, or take it down "
				"with 'weft lab down %s'",
				spec->name, spec->name);
	case LAB_STALE:
		if (lab_state_remove(dir, spec->name, e))
			return -e->code;
		break;
	case LAB_NONE:
		break;
	}
	ret = choose_net(dir, spec, e);
	if (ret)
		return ret;
	lock = lab_state_create(dir, spec->name, e);
	if (lock < 0)
		return lock;
	other = (struct lab_holder){.net = spec->net, .prefix = spec->prefix};
	ret = lab_state_set_holder(lock, &other, e);
	if (!ret)
		ret = write_files(dir, spec, start, e);
	if (!ret)
		return lock;
	close(lock);
	lab_state_remove(dir, spec->name, &ignored);
	return ret;
}

static void unclaim(const char *name, int lock)
{
	struct lab_error ignored;
	struct lab_dir dir;

	if (lab_dir_open(&dir, false, &ignored))
		return;
	if (dir.fd >= 0 && lab_state_is_ours(&dir, name, lock))
		lab_state_remove(&dir, name, &ignored);
	lab_dir_close(&dir);
}

/* ---- all together ---- */

/* Starts the holder; its id is written down before anybody else looks. */
static int launch(struct start *start, struct lab *lab, int report[2], struct lab_error *e)
{
	struct lab_holder holder = {.net = start->spec->net, .prefix = start->spec->prefix};
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report))
		return lab_fail(e, errno, "cannot start: %s", strerror(errno));
	start->report = report[1];
	lab->holder = start_holder(start, e);
	close(report[1]);
	ret = lab->holder < 0 ? (int)lab->holder : 0;
	if (!ret) {
		holder.pid = lab->holder;
		ret = lab_state_set_holder(start->lock, &holder, e);
		if (ret)
			kill_holder(lab->holder);
	}
	if (ret)
		close(report[0]);
	return ret;
}

/* From here on it does not need us; its end of the socket closes when it has heard. */
static bool let_go(int report)
{
	ssize_t got;
	char end;

	if (send(report, "", 1, MSG_NOSIGNAL) != 1)
		return false;
	do
		got = read(report, &end, 1);
	while (got < 0 && errno == EINTR);
	return !got;
}

static int finish(const struct start *start, struct lab *lab, int report, struct lab_error *e)
{
	char *dir = strndup(start->hosts, strlen(start->hosts) - strlen("/hosts"));
	int ret = dir ? wait_for(report, e) : lab_fail(e, ENOMEM, "out of memory");

	lab->since = time(NULL);
	if (!ret)
		ret = lab_state_write(lab, dir, e);
	if (!ret && !let_go(report))
		ret = lab_fail(e, ECHILD, "the lab's process died");
	if (ret)
		kill_holder(lab->holder);
	close(report);
	free(dir);
	return ret;
}

/* Trees are larger than labs can be. */
static int check_size(const struct lab_spec *spec, struct lab_error *e)
{
	const struct fabric_pgft *t = &spec->tree;
	uint64_t routes;

	if (fabric_nodes(t) > LAB_NODES_MAX)
		return lab_fail(e, E2BIG,
				"the tree has %u hosts and switches; a lab has at most %d",
				fabric_nodes(t), LAB_NODES_MAX);
	if (fabric_cables(t) > LAB_CABLES_MAX)
		return lab_fail(e, E2BIG, "the tree has %u cables; a lab has at most %d",
				fabric_cables(t), LAB_CABLES_MAX);
	routes = (uint64_t)(fabric_nodes(t) - fabric_hosts(t)) * fabric_hosts(t)
		 << spec->routing.lmc;
	if (routes > LAB_ROUTES_MAX)
		return lab_fail(e, E2BIG,
				"the switches would need up to %llu routes; a lab has at most %d",
				(unsigned long long)routes, LAB_ROUTES_MAX);
	for (uint32_t l = 0; spec->routing.kind == FABRIC_ECMP && l < t->h; l++)
		if (fabric_up_ports(t, l) > LAB_ECMP_MAX)
			return lab_fail(
				e, E2BIG,
				"nodes of level %u have %u ports upwards; ecmp chooses from at "
				"most %d",
				l, fabric_up_ports(t, l), LAB_ECMP_MAX);
	return 0;
}

int lab_up(struct lab_spec *spec, struct lab *lab, struct lab_error *e)
{
	struct sigaction old[SIGNALS];
	struct start start = {.spec = spec, .user = geteuid() != 0};
	struct lab_dir dir;
	int report[2], ret;

	memset(e, 0, sizeof(*e));
	ret = lab_name_check(spec->name, e);
	if (!ret)
		ret = check_size(spec, e);
	if (!ret)
		ret = lab_dir_open(&dir, true, e);
	if (ret)
		return ret;
	catch_signals(old);
	start.lock = claim(&dir, spec, &start, e);
	ret = start.lock < 0 ? start.lock : 0;
	lab->spec = *spec;
	lab->user = start.user;
	memcpy(lab->dir, dir.path, sizeof(lab->dir));
	if (!ret)
		ret = launch(&start, lab, report, e);
	lab_dir_close(&dir);
	if (!ret)
		ret = finish(&start, lab, report[0], e);
	if (ret && start.lock >= 0)
		unclaim(spec->name, start.lock);
	if (start.lock >= 0)
		close(start.lock);
	release_signals(old);
	return ret;
}
