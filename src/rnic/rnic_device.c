/* The device: found in the list of network interfaces. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_log.h"
#include "rnic_tune.h"

static struct rnic_device device;
static int device_err;

static unsigned int mtu_of(const char *netdev)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int mtu = 0;

	if (fd < 0)
		return 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev);
	if (!ioctl(fd, SIOCGIFMTU, &ifr))
		mtu = (unsigned int)ifr.ifr_mtu;
	close(fd);
	return mtu;
}

static void add(const struct ifaddrs *ifa)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ifa->ifa_addr;
	int i = device.n_addr;

	if (i == RNIC_MAX_GID)
		return;
	device.addr[i].addr = sin->sin_addr;
	snprintf(device.addr[i].netdev, sizeof(device.addr[i].netdev), "%s", ifa->ifa_name);
	device.addr[i].ifindex = if_nametoindex(ifa->ifa_name);
	device.addr[i].mtu = mtu_of(ifa->ifa_name);
	device.n_addr++;
}

static bool usable(const struct ifaddrs *ifa, const char *netdev)
{
	return ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_INET && ifa->ifa_flags & IFF_UP &&
	       (!netdev || !strcmp(netdev, ifa->ifa_name));
}

/* Addresses named by WEFT_ADDR, in that order. An interface may be missing for one of
 * them: 127.0.0.2 is served by lo without being assigned. */
static int add_named(const struct ifaddrs *all, const char *names, const char *netdev)
{
	char *copy = strdup(names), *save = NULL;

	for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name;
	     name = strtok_r(NULL, ",", &save)) {
		const struct ifaddrs *ifa, *lo = NULL;
		struct in_addr addr;

		if (inet_pton(AF_INET, name, &addr) != 1) {
			util_log(UTIL_LOG_ERROR, "WEFT_ADDR: '%s' is not an IPv4 address", name);
			free(copy);
			return EINVAL;
		}
		for (ifa = all; ifa; ifa = ifa->ifa_next) {
			if (!usable(ifa, netdev))
				continue;
			if (ifa->ifa_flags & IFF_LOOPBACK)
				lo = ifa;
			if (((struct sockaddr_in *)ifa->ifa_addr)->sin_addr.s_addr == addr.s_addr)
				break;
		}
		if (!ifa && ntohl(addr.s_addr) >> 24 == 127)
			ifa = lo;
		if (!ifa) {
			util_log(UTIL_LOG_ERROR, "WEFT_ADDR: no interface that is up has %s", name);
			free(copy);
			return EADDRNOTAVAIL;
		}
		add(ifa);
		device.addr[device.n_addr - 1].addr = addr;
	}
	free(copy);
	return 0;
}

/* Real interfaces first; loopback only when there is nothing else, because a peer on
 * another machine could not reach it. */
static void add_all(const struct ifaddrs *all, const char *netdev)
{
	for (int lo = 0; lo < 2 && !device.n_addr; lo++)
		for (const struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next)
			if (usable(ifa, netdev) && !!(ifa->ifa_flags & IFF_LOOPBACK) == lo)
				add(ifa);
}

static void scan(void)
{
	const char *addrs = util_tune_str(rnic_tune(RNIC_TUNE_ADDR));
	const char *netdev = util_tune_str(rnic_tune(RNIC_TUNE_NETDEV));
	struct ifaddrs *all;

	if (!util_tune_bool(rnic_tune(RNIC_TUNE_DEVICE))) {
		device_err = ENODEV;
		return;
	}
	if (getifaddrs(&all)) {
		device_err = errno;
		return;
	}
	if (addrs)
		device_err = add_named(all, addrs, netdev);
	else
		add_all(all, netdev);
	freeifaddrs(all);
	if (!device_err && !device.n_addr) {
		if (netdev)
			util_log(UTIL_LOG_ERROR,
				 "WEFT_NETDEV: '%s' is not up or has no IPv4 "
				 "address",
				 netdev);
		device_err = ENODEV;
	}
	device.ibv.node_type = IBV_NODE_CA;
	device.ibv.transport_type = IBV_TRANSPORT_IB;
	strcpy(device.ibv.name, "weft0");
	strcpy(device.ibv.dev_name, "uverbs-weft0");
	strcpy(device.ibv.dev_path, "/sys/class/infiniband_verbs/uverbs-weft0");
	strcpy(device.ibv.ibdev_path, "/sys/class/infiniband/weft0");
}

const struct rnic_device *rnic_device_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, scan);
	if (device_err) {
		errno = device_err;
		return NULL;
	}
	return &device;
}

bool rnic_is_device(const struct ibv_device *dev)
{
	return dev == &device.ibv;
}

/* Locally administered, from the address, so that it is the same in every process. */
__be64 rnic_device_guid(const struct ibv_device *dev)
{
	const struct rnic_device *d = (const struct rnic_device *)dev;
	uint64_t guid = UINT64_C(0x0257454600000000) | ntohl(d->addr[0].addr.s_addr);

	return htobe64(guid);
}
