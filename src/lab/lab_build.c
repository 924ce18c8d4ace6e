#include "lab_build.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab_nl.h"
#include "lab_node.h"
#include "util_rand.h"

#define FIRST_FD 32 /* above whatever the holder has open by itself */

int lab_net_fd(const struct lab_spec *s, struct fabric_node n)
{
	return FIRST_FD + (int)fabric_number(&s->tree, n);
}

int lab_uts_fd(const struct lab_spec *s, struct fabric_node n)
{
	return FIRST_FD + (int)(fabric_nodes(&s->tree) + n.index);
}

int lab_ipc_fd(const struct lab_spec *s, struct fabric_node n)
{
	return FIRST_FD + (int)(fabric_nodes(&s->tree) + fabric_hosts(&s->tree) + n.index);
}

/* The first number that no namespace is kept under. */
static int first_free_fd(const struct lab_spec *s)
{
	return FIRST_FD + (int)(fabric_nodes(&s->tree) + 2 * fabric_hosts(&s->tree));
}

/* Keeps this process' namespace of a kind under a number of our choosing. */
static int keep_namespace(const char *kind, int as, struct lab_error *e)
{
	char path[32];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? -1 : dup3(fd, as, O_CLOEXEC);
	if (ret < 0)
		ret = lab_fail(e, errno, "cannot open %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret < 0 ? ret : 0;
}

/* ---- settings of the kernel, in the namespace that we are in ---- */

static int set(const char *name, const char *value)
{
	char path[128];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* How flows are hashed over ports: by addresses and ports as they are in the packet. (Policy 1
 * would do that too, but takes a hash that the sender's kernel has left with the packet, if
 * there is one. All switches are that kernel, so they would all agree: of the flows that come
 * up by one port, all would go on by one port. And a TCP stream would change its way whenever
 * it has lost a packet.) For the same reason each switch gets a seed of its own, or, before
 * Linux 6.11, neighbouring levels look at different fields. */
static int hash_flows(const struct lab_spec *s, struct fabric_node n)
{
	enum { SRC = 1, DST = 2, PROTOCOL = 4, SRC_PORT = 16, DST_PORT = 32 };
	static const int by_level[] = {
		SRC | DST | PROTOCOL | SRC_PORT | DST_PORT,
		SRC | SRC_PORT | DST_PORT,
		DST | SRC_PORT | DST_PORT,
	};
	struct util_rand r;
	char text[16];
	bool seeded;

	util_rand_seed(&r, s->routing.seed + fabric_number(&s->tree, n));
	snprintf(text, sizeof(text), "%u", (unsigned)(util_rand_next(&r) >> 32) | 1);
	seeded = !set("ipv4/fib_multipath_hash_seed", text);
	snprintf(text, sizeof(text), "%d", by_level[seeded ? 0 : n.level % 3]);
	if (!set("ipv4/fib_multipath_hash_fields", text) &&
	    !set("ipv4/fib_multipath_hash_policy", "3"))
		return 0;
	return set("ipv4/fib_multipath_hash_policy", "1"); /* before Linux 5.14 */
}

static int settings(const struct lab_spec *s, struct fabric_node n, struct lab_error *e)
{
	int ret;

	/* Ways there and back may differ. */
	ret = set("ipv4/conf/all/rp_filter", "0");
	if (!ret)
		ret = set("ipv4/conf/default/rp_filter", "0");
	if (!ret && n.level > 0)
		ret = set("ipv4/ip_forward", "1");
	if (!ret)
		ret = hash_flows(s, n);
	if (ret)
		return lab_fail(e, -ret, "cannot change the settings in /proc/sys/net: %s",
				strerror(-ret));
	/* From here on it is better with than without, and absent from some kernels. Labs are
	 * IPv4; without this every interface would begin to look for IPv6 routers. */
	set("ipv6/conf/default/disable_ipv6", "1");
	set("ipv4/conf/all/send_redirects", "0");
	set("ipv4/conf/default/send_redirects", "0");
	set("ipv4/icmp_ratelimit", "0"); /* traceroute is answered at once */
	return 0;
}

/* ---- nodes and cables ---- */

static int open_socket(const struct lab_spec *s, struct lab_nl *nl, struct lab_error *e)
{
	int ret = lab_nl_open(nl, e), fd;

	if (ret)
		return ret;
	fd = fcntl(nl->fd, F_DUPFD_CLOEXEC, first_free_fd(s));
	if (fd < 0)
		return lab_fail(e, errno, "cannot open a netlink socket: %s", strerror(errno));
	close(nl->fd);
	nl->fd = fd;
	return 0;
}

static int no_namespace(const char *kind, struct lab_error *e)
{
	if (errno == ENOSPC)
		return lab_fail(e, ENOSPC,
				"no more %s namespaces are allowed here; see sysctl "
				"user.max_net_namespaces, user.max_uts_namespaces, "
				"user.max_ipc_namespaces",
				kind);
	return lab_fail(e, errno, "cannot make a %s namespace: %s", kind, strerror(errno));
}

/* A host name and shared memory of its own: UCX takes whoever shares the latter for a
 * process of the same machine. */
static int make_host(const struct lab_spec *s, struct fabric_node n, struct lab_error *e)
{
	char name[LAB_HOST_NAME_MAX];
	int ret;

	lab_host_name(s, n, name);
	if (unshare(CLONE_NEWUTS | CLONE_NEWIPC))
		return no_namespace("UTS or IPC", e);
	if (sethostname(name, strlen(name)))
		return lab_fail(e, errno, "cannot set a host name: %s", strerror(errno));
	ret = keep_namespace("uts", lab_uts_fd(s, n), e);
	return ret ? ret : keep_namespace("ipc", lab_ipc_fd(s, n), e);
}

static int make_node(const struct lab_spec *s, struct fabric_node n, struct lab_nl *nl,
		     struct lab_error *e)
{
	int ret;

	if (unshare(CLONE_NEWNET))
		return no_namespace("network", e);
	ret = keep_namespace("net", lab_net_fd(s, n), e);
	if (!ret && n.level == 0)
		ret = make_host(s, n, e);
	if (!ret)
		ret = settings(s, n, e);
	return ret ? ret : open_socket(s, nl, e);
}

static int make_cables(const struct lab_spec *s, struct lab_nl *nl, struct lab_error *e)
{
	const struct fabric_pgft *t = &s->tree;
	int ret = 0;

	/* A node's cables upwards have consecutive numbers: one batch. */
	for (uint32_t i = 0; !ret && i < fabric_cables(t); i++) {
		struct fabric_cable c = fabric_cable(t, i);
		struct lab_nl *lower = &nl[fabric_number(t, c.lower)];

		ret = lab_node_cable(lower, s, &c, lab_net_fd(s, c.upper), e);
		if (!ret && c.q + 1 == fabric_up_ports(t, c.lower.level))
			ret = lab_nl_flush(lower, e);
	}
	return ret;
}

static int configure(const struct lab_spec *s, struct fabric_node n, struct lab_nl *nl,
		     struct lab_error *e)
{
	int ret = lab_node_addresses(nl, s, n, e);

	for (uint32_t i = 0; !ret && i < lab_port_count(s, n); i++)
		ret = lab_node_port(nl, s, lab_port(s, n, i), e);
	if (!ret)
		ret = lab_node_routes(nl, s, n, NULL, e);
	return ret ? ret : lab_nl_flush(nl, e);
}

static int make_nodes(const struct lab_spec *s, struct lab_nl *nl, struct lab_error *e)
{
	uint32_t nodes = fabric_nodes(&s->tree);
	int ret = 0;

	for (uint32_t i = 0; !ret && i < nodes; i++)
		ret = make_node(s, fabric_node(&s->tree, i), &nl[i], e);
	if (!ret)
		ret = make_cables(s, nl, e);
	for (uint32_t i = 0; !ret && i < nodes; i++)
		ret = configure(s, fabric_node(&s->tree, i), &nl[i], e);
	return ret;
}

/* ---- mounts ---- */

/* Nothing that is mounted from here on reaches the machine. A process that was started in a
 * chroot can only do so from the real root, and must come back. */
static int make_mounts_ours(struct lab_error *e)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int ret = 0;

	if (root < 0 || self < 0 || setns(self, CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) || fchdir(root) || chroot("."))
		ret = lab_fail(e, errno, "cannot make mounts private: %s", strerror(errno));
	if (root >= 0)
		close(root);
	if (self >= 0)
		close(self);
	return ret;
}

/* What programs on the hosts see instead of the machine's. Each is a convenience: a kernel
 * or container that forbids one of these mounts still has a useful lab. */
static void mount_ours(const char *hosts)
{
	/* First, as the file may be below one of the places that are covered next. */
	if (hosts && !access("/etc/hosts", F_OK))
		mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL);
	/* Processes have other numbers inside. */
	mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	/* Shared memory of programs that were killed ends with the lab. */
	mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
}

int lab_build(const struct lab_spec *s, const char *hosts, struct lab_error *e)
{
	uint32_t nodes = fabric_nodes(&s->tree);
	struct lab_nl *nl;
	int ret;

	/* While building there is also a socket to each node. */
	ret = lab_raise_files((uint64_t)first_free_fd(s) + nodes + 16, e);
	if (!ret)
		ret = make_mounts_ours(e);
	if (ret)
		return ret;
	mount_ours(hosts);
	nl = calloc(nodes, sizeof(*nl));
	if (!nl)
		return lab_fail(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nodes; i++)
		nl[i].fd = -1;
	ret = make_nodes(s, nl, e);
	for (uint32_t i = 0; i < nodes; i++)
		lab_nl_close(&nl[i]);
	free(nl);
	return ret;
}
