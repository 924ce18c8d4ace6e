#include "shm_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "shm_msg.h"
#include "util_log.h"

/* The flag `asleep`. */
#define ASLEEP 1u /* wake me for records */
#define NOROOM 2u /* and for room */

static socklen_t address(struct sockaddr_un *sun, uint64_t name)
{
	int n;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* The leading 0 makes it abstract; the length decides where it ends. */
	n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "weft-rd-%016" PRIx64, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int socket_new(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int shm_port_open(struct shm_port *port, uint64_t name, int backlog)
{
	struct sockaddr_un sun;
	socklen_t len = address(&sun, name);
	int fd = socket_new();

	*port = (struct shm_port){.fd = -1, .name = name};
	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&sun, len) || listen(fd, backlog)) {
		int err = -errno;

		close(fd);
		return err;
	}
	port->fd = fd;
	return 0;
}

void shm_port_close(struct shm_port *port)
{
	if (port->fd >= 0)
		close(port->fd);
	port->fd = -1;
}

/* A write to an eventfd that does not block has no side effects and can not hang; one to
 * whatever else a peer might have sent could. */
static bool is_bell(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], to[sizeof(want)];
	int flags = fcntl(fd, F_GETFL);
	ssize_t n;

	if (flags < 0 || !(flags & O_NONBLOCK) || (flags & O_ACCMODE) != O_RDWR)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to));
	return n == (ssize_t)sizeof(want) - 1 && !memcmp(to, want, sizeof(want) - 1);
}

/* Who is at the other end, and may it be there. */
static int identify(struct shm_link *link)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(link->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	link->pid = cred.pid;
	link->uid = cred.uid;
	if (cred.uid == geteuid())
		return 0;
	util_log(UTIL_LOG_INFO, "no shared memory with process %d of user %u: we are user %u",
		 (int)cred.pid, (unsigned int)cred.uid, (unsigned int)geteuid());
	return -EACCES;
}

static void link_init(struct shm_link *link, enum shm_link_state state, int fd, int bell)
{
	*link = (struct shm_link){.state = state, .fd = fd, .bell = bell, .peer_bell = -1};
}

int shm_port_accept(struct shm_port *port, int bell, struct shm_link *link)
{
	int fd, err;

	*link = (struct shm_link){0};
	if (!is_bell(bell))
		return -EINVAL;
	fd = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return errno == EINTR ? -ECONNABORTED : -errno;
	link_init(link, SHM_LINK_ACCEPTED, fd, bell);
	link->name = port->name;
	err = identify(link);
	if (err)
		shm_link_close(link);
	return err;
}

/* The area is there: finds its parts. */
static void attach(struct shm_link *link, int side)
{
	struct shm_control *c = shm_area_control(&link->area);
	uint32_t size = link->area.ring;
	int other = 1 - side;

	link->asleep = &c->side[side].asleep;
	link->peer_asleep = &c->side[other].asleep;
	link->grants = c->grants[side].word;
	link->peer_grants = c->grants[other].word;
	shm_ring_tx_init(&link->tx, shm_area_ring(&link->area, side), size, &c->ring[side].head);
	shm_ring_rx_init(&link->rx, shm_area_ring(&link->area, other), size, &c->ring[other].head);
}

static int send_hello(struct shm_link *link, uint32_t ring)
{
	struct shm_msg hello = {.magic = SHM_MSG_MAGIC,
				.version = SHM_MSG_VERSION,
				.kind = SHM_MSG_HELLO,
				.from = link->name,
				.to = link->peer,
				.ring = ring};
	int mem = shm_area_make(&link->area, ring), err;

	if (mem < 0)
		return mem;
	attach(link, 0);
	err = shm_msg_send(link->fd, &hello, (int[]){mem, link->bell}, 2);
	close(mem); /* the mapping holds it */
	return err;
}

int shm_link_connect(struct shm_link *link, uint64_t peer, uint64_t name, uint32_t ring, int bell)
{
	struct sockaddr_un sun;
	socklen_t len = address(&sun, peer);
	int fd, err;

	*link = (struct shm_link){0};
	if (!shm_ring_size_ok(ring) || !is_bell(bell))
		return -EINVAL;
	fd = socket_new();
	if (fd < 0)
		return fd;
	link_init(link, SHM_LINK_SENT, fd, bell);
	link->name = name;
	link->peer = peer;
	/* On a local socket this is done at once or fails: EAGAIN says that the other's
	 * backlog is full, not that something is under way. */
	err = connect(fd, (struct sockaddr *)&sun, len) ? -errno : 0;
	if (!err)
		err = identify(link);
	if (!err)
		err = send_hello(link, ring);
	if (err)
		shm_link_close(link);
	return err;
}

/* ACCEPTED: takes the hello and answers. */
static int input_hello(struct shm_link *link)
{
	struct shm_msg want = {.magic = SHM_MSG_MAGIC,
			       .version = SHM_MSG_VERSION,
			       .kind = SHM_MSG_HELLO,
			       .to = link->name};
	struct shm_msg m;
	int fds[SHM_MSG_FDS], err;

	err = shm_msg_recv(link->fd, &want, &m, fds, 2);
	if (err)
		return err;
	link->peer_bell = fds[1];
	link->peer = m.from;
	err = m.ring > SHM_RING_MAX ? -EPROTO : shm_area_map(&link->area, fds[0], (uint32_t)m.ring);
	close(fds[0]);
	if (!err && !is_bell(link->peer_bell))
		err = -EPROTO;
	if (err)
		return err;
	attach(link, 1);
	m.kind = SHM_MSG_ANSWER;
	m.to = m.from;
	m.from = link->name;
	err = shm_msg_send(link->fd, &m, &link->bell, 1);
	/* The first packet of a socket always fits, unless the peer has tampered with it. */
	return err == -EAGAIN ? -EPROTO : err;
}

/* SENT: takes the answer. */
static int input_answer(struct shm_link *link)
{
	struct shm_msg want = {.magic = SHM_MSG_MAGIC,
			       .version = SHM_MSG_VERSION,
			       .kind = SHM_MSG_ANSWER,
			       .to = link->name};
	struct shm_msg m;
	int err = shm_msg_recv(link->fd, &want, &m, &link->peer_bell, 1);

	if (err)
		return err;
	if (m.from != link->peer || m.ring != link->area.ring || !is_bell(link->peer_bell))
		return -EPROTO;
	return 0;
}

/* UP: there is nothing more to say. Without a control buffer the kernel throws
 * descriptors away by itself. */
static int input_idle(struct shm_link *link)
{
	char byte;
	ssize_t n = recv(link->fd, &byte, 1, MSG_DONTWAIT);

	if (n > 0)
		return -EPROTO;
	if (n == 0)
		return -ECONNRESET;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int dead(struct shm_link *link, int err)
{
	static const char *const when[] = {
		[SHM_LINK_ACCEPTED] = "waiting for its hello",
		[SHM_LINK_SENT] = "waiting for its answer",
		[SHM_LINK_UP] = "up",
	};

	util_log(UTIL_LOG_DEBUG, "shared memory with process %d, %s: %s", (int)link->pid,
		 when[link->state], strerror(-err));
	link->state = SHM_LINK_DEAD;
	link->err = err;
	return err;
}

int shm_link_input(struct shm_link *link)
{
	int err;

	switch (link->state) {
	case SHM_LINK_ACCEPTED:
		err = input_hello(link);
		break;
	case SHM_LINK_SENT:
		err = input_answer(link);
		break;
	case SHM_LINK_UP:
		err = input_idle(link);
		return err ? dead(link, err) : 1;
	case SHM_LINK_DEAD:
		return link->err;
	default:
		return -ENOTCONN;
	}
	if (err == -EAGAIN)
		return 0;
	if (err)
		return dead(link, err);
	link->state = SHM_LINK_UP;
	return 1;
}

void shm_link_close(struct shm_link *link)
{
	if (link->state == SHM_LINK_NONE)
		return;
	close(link->fd);
	if (link->peer_bell >= 0)
		close(link->peer_bell);
	shm_area_unmap(&link->area);
	link_init(link, SHM_LINK_NONE, -1, -1);
}

static void ring(struct shm_link *link)
{
	static const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the peer has not heard the last 2^64 yet. */
	if (write(link->peer_bell, &one, sizeof(one)) < 0 && errno != EAGAIN)
		util_log(UTIL_LOG_DEBUG, "doorbell of process %d: %s", (int)link->pid,
			 strerror(errno));
}

void shm_link_ring(struct shm_link *link)
{
	/* Release: the commit is before it for a sleeper that comes after us. Acquire: pairs
	 * with the sleeper's, and keeps the write behind it. Must be a read-modify-write: a
	 * load could be done before the commit is visible. */
	if (atomic_exchange_explicit(link->peer_asleep, 0, memory_order_acq_rel))
		ring(link);
}

void shm_link_ring_room(struct shm_link *link)
{
	/* Once for each quarter of the ring that was read is enough. A record is at most a quarter,
	 * and so is what is skipped in front of it: when there is room for what the peer waits
	 * for, almost half of the ring is still to be read. */
	if (link->rx.pos - link->room_told < link->rx.size / 4)
		return;
	link->room_told = link->rx.pos;
	/* As above, for the head that release has stored. The peer still sleeps as far as
	 * records are concerned, hence only the one bit. */
	if (atomic_fetch_and_explicit(link->peer_asleep, ~NOROOM, memory_order_acq_rel) & NOROOM)
		ring(link);
}

/* Words are odd while a grant is good, and never the same again (for 2^31 times). */
int shm_grant_give(struct shm_link *link, uint32_t *word)
{
	int i = ~link->granted ? __builtin_ctzll(~link->granted) : -1;

	if (i < 0)
		return -ENOSPC;
	*word = (atomic_load_explicit(&link->grants[i], memory_order_relaxed) + 1) | 1;
	/* relaxed: the record that tells of it is committed with release */
	atomic_store_explicit(&link->grants[i], *word, memory_order_relaxed);
	link->granted |= UINT64_C(1) << i;
	return i;
}

void shm_grant_revoke(struct shm_link *link, int grant)
{
	uint32_t word = atomic_load_explicit(&link->grants[grant], memory_order_relaxed);

	if (!(word & 1))
		return;
	atomic_store_explicit(&link->grants[grant], word + 1, memory_order_relaxed);
	/* Before anything that the program will write where the memory was: a copier that has seen
	 * such a byte sees the word, too. */
	atomic_thread_fence(memory_order_seq_cst);
}

void shm_grant_end(struct shm_link *link, int grant)
{
	shm_grant_revoke(link, grant);
	link->granted &= ~(UINT64_C(1) << grant);
}

bool shm_grant_good(const struct shm_link *link, uint32_t grant, uint32_t word)
{
	/* After all that was copied; see revoke. */
	atomic_thread_fence(memory_order_seq_cst);
	return grant < SHM_GRANTS && word & 1 &&
	       atomic_load_explicit(&link->peer_grants[grant], memory_order_relaxed) == word;
}

void shm_link_sleep(struct shm_link *link, bool asleep)
{
	uint32_t flag = !asleep ? 0 : link->tx.full ? ASLEEP | NOROOM : ASLEEP;

	/* Acquire: what the ringer committed before it found us awake is seen by the peek
	 * that follows. Release: pairs with the ringer's. Clearing is one, too: a plain store
	 * would hide a ringer's operation from the next one of ours, and with it its commit. */
	atomic_exchange_explicit(link->asleep, flag, memory_order_acq_rel);
}
