#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fan_hosts.h"

#define HOST_A     "10.77.0.1"
#define HOST_B     "10.77.0.2"
#define CONNECT_MS 10000

static pid_t server_pid;

unsigned int fan_cores(void)
{
	cpu_set_t may;

	return sched_getaffinity(0, sizeof(may), &may) ? 1 : (unsigned int)CPU_COUNT(&may);
}

void fan_pin(const struct fan_opts *o, unsigned int nth)
{
	static cpu_set_t may; /* as it was before anybody was pinned */
	static bool known;
	cpu_set_t set;
	unsigned int cores;

	if (!o->pin || (!known && sched_getaffinity(0, sizeof(may), &may)))
		return;
	known = true;
	cores = (unsigned int)CPU_COUNT(&may);
	/* The first is node 0's. */
	if (nth && cores > 1)
		nth = 1 + (nth - 1) % (cores - 1);
	else
		nth = 0;
	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &may) && nth-- == 0)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* ---- two hosts on one machine ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

/* Those who are not root get a user namespace in which they are. */
static int own_network(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (!uid)
		return unshare(CLONE_NEWNET) ? -errno : 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -errno;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_file("/proc/self/uid_map", map))
		return -EPERM;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map);
}

/* Runs `ip`; in the network namespace ns if that is one. */
static int ip(int ns, const char *const *args)
{
	int status, null;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDWR);
		dup2(null, STDERR_FILENO);
		if (ns < 0 || !setns(ns, CLONE_NEWNET))
			execvp("ip", (char *const *)(uintptr_t)args);
		_exit(127);
	}
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

#define IP(ns, ...) ip(ns, (const char *const[]){"ip", __VA_ARGS__, NULL})

static bool is_running(const char *interface)
{
	struct ifreq req = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", interface);
	up = !ioctl(fd, SIOCGIFFLAGS, &req) && req.ifr_flags & IFF_RUNNING;
	close(fd);
	return up;
}

/* We are on host A; `there` is a process on host B, ns its network. */
static int join_hosts(int ns, pid_t there)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)there);
	if (IP(-1, "link", "set", "lo", "up") || IP(ns, "link", "set", "lo", "up") ||
	    IP(-1, "link", "add", "weft-a", "type", "veth", "peer", "name", "weft-b", "netns",
	       pid) ||
	    IP(-1, "addr", "add", (HOST_A "/24"), "dev", "weft-a") ||
	    IP(ns, "addr", "add", (HOST_B "/24"), "dev", "weft-b") ||
	    IP(-1, "link", "set", "weft-a", "up") || IP(ns, "link", "set", "weft-b", "up"))
		return -EPERM;
	/* A device looks for interfaces that are up, and the kernel takes a moment. */
	for (int i = 0; i < 100; i++) {
		if (is_running("weft-a"))
			return 0;
		usleep(20000);
	}
	return -ENETDOWN;
}

/* ---- the server ---- */

/* Waits for a byte from `go`, then serves; writes its port to `ready`. */
static void become_server(const struct fan_opts *o, int go, int ready, const char *bind_to,
			  pid_t parent)
{
	struct fan_opts mine = *o;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || read(go, &c, 1) != 1)
		_exit(1);
	/* The terminal's signals are for node 0, which has something to write down. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	mine.bind = bind_to;
	mine.port = 0;
	mine.keep = false;
	_exit(fan_server(&mine, ready) ? 1 : 0);
}

/* The port of the server that was forked, once `go` is closed by us; or -errno. */
static int start_server(int go, int ready)
{
	struct pollfd fd = {.fd = ready, .events = POLLIN};
	char text[16] = "";
	ssize_t n = 0;

	if (write(go, "g", 1) != 1)
		return -EIO;
	if (poll(&fd, 1, CONNECT_MS) > 0)
		n = read(ready, text, sizeof(text) - 1);
	return n > 0 ? atoi(text) : -ECONNABORTED;
}

/* Forks it into a network of its own if hosts, and leaves us in another that is joined with it. */
static int fork_server(const struct fan_opts *o, bool hosts)
{
	const char *at = hosts ? HOST_B : "127.0.0.1";
	int go[2], ready[2], ns = -1, ret = hosts ? own_network() : 0;
	pid_t self = getpid();

	if (ret)
		return ret;
	if (hosts) {
		/* Both ends of a wire: shared memory would go round it. */
		setenv("WEFT_RD_SHM", "off", 0);
		unsetenv("WEFT_ADDR");
		unsetenv("WEFT_NETDEV");
		ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	}
	if (pipe2(go, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return -errno;
	server_pid = fork();
	if (!server_pid)
		become_server(o, go[0], ready[1], at, self);
	if (server_pid < 0)
		return -errno;
	close(go[0]);
	close(ready[1]);
	if (hosts)
		ret = unshare(CLONE_NEWNET) ? -errno : join_hosts(ns, server_pid);
	if (!ret)
		ret = start_server(go[1], ready[0]);
	close(go[1]);
	close(ready[0]);
	if (ns >= 0)
		close(ns);
	return ret;
}

void fan_hosts_stop(void)
{
	if (server_pid <= 0)
		return;
	kill(server_pid, SIGKILL);
	waitpid(server_pid, NULL, 0);
	server_pid = 0;
}

/* Whether this machine lets us have hosts; tried by a process that can be thrown away. */
static bool hosts_allowed(const struct fan_opts *o)
{
	int status;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fork_server(o, true) > 0 ? (fan_hosts_stop(), 0) : (fan_hosts_stop(), 1));
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static int start_here(const struct fan_opts *o, struct fan_root *root, const char **link)
{
	bool hosts = o->net != FAN_NET_LOOPBACK && hosts_allowed(o);
	int port, ret = 0;

	if (!hosts && o->net == FAN_NET_HOSTS) {
		fputs("weft bench verbs: --net hosts: no network namespaces for us here; try "
		      "--net loopback\n",
		      stderr);
		return -EPERM;
	}
	*link = hosts ? "two network namespaces, veth" : "loopback";
	port = fork_server(o, hosts);
	if (port < 0)
		return port;
	for (unsigned int k = 0; k < root->procs && !ret; k++)
		ret = bench_ctl_connect(&root->ctl[k], hosts ? HOST_B : "127.0.0.1", port,
					CONNECT_MS);
	return ret;
}

/* Process k is on host k % hosts. */
static int reach_peers(const struct fan_opts *o, struct fan_root *root)
{
	char *text = strdup(o->peers), *host[FAN_MAX_PROCS], *save;
	unsigned int n = 0;
	int ret = text ? 0 : -ENOMEM;

	for (char *tok = text ? strtok_r(text, ",", &save) : NULL; tok && n < FAN_MAX_PROCS;
	     tok = strtok_r(NULL, ",", &save))
		host[n++] = tok;
	if (!n && !ret)
		ret = -EINVAL;
	if (root->procs < n)
		root->procs = n;
	for (unsigned int k = 0; k < root->procs && !ret; k++) {
		ret = bench_ctl_connect(&root->ctl[k], host[k % n], o->port, CONNECT_MS);
		if (ret)
			fprintf(stderr,
				"weft bench verbs: %s, port %d: %s; start `weft bench verbs "
				"serve` there first\n",
				host[k % n], o->port, strerror(-ret));
	}
	free(text);
	return ret;
}

int fan_hosts_start(const struct fan_opts *o, struct fan_root *root, const char **link)
{
	unsigned int cores = fan_cores(), most = (unsigned int)fan_most(o->ns, o->n_ns);
	int ret;

	for (unsigned int k = 0; k < FAN_MAX_PROCS; k++)
		root->ctl[k].fd = -1;
	root->procs = o->procs ? (unsigned int)o->procs : o->peers ? 1 : cores > 1 ? cores - 1 : 1;
	if (root->procs > most)
		root->procs = most;
	*link = "network";
	ret = o->peers ? reach_peers(o, root) : start_here(o, root, link);
	/* More than there are cores for: those that wait must let the others work. */
	root->sleepy = !o->peers && root->procs > (cores > 1 ? cores - 1 : 1);
	fan_pin(o, 0);
	return ret ? ret : fan_root_hello(root);
}
