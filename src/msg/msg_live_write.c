/* The owner of a file of msg_live.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_dir.h"
#include "util_log.h"
#include "util_rand.h"
#include "msg_live.h"

/* The file grows by so much: room that is not there must not be found out by a signal. */
#define STEP    (UINT64_C(64) << 10)
#define MAP_LEN msg_live_at(MSG_LIVE_PEERS)

/* Up to that size. Beyond the limit of the process it would be a signal. */
static int reserve(int fd, uint64_t size)
{
	struct rlimit most;

	if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur < size)
		return -EFBIG;
	return -posix_fallocate(fd, 0, (off_t)size);
}

struct msg_live {
	int fd;
	uint64_t size;
	uint8_t *map; /* MAP_LEN, of which size may be touched; not there in a child of fork */
	/* A page that the kernel wipes in a child of fork: nothing of the parent's is its. */
	uint8_t *mine;
	char dir[PATH_MAX], name[MSG_LIVE_NAME_MAX];
};

/* ---- made ---- */

/* Own ones, of other endpoints, must not be so much as opened: closing them would end the lock. */
static bool is_of_another(const char *name)
{
	return msg_live_is_name(name) && strtol(name, NULL, 10) != getpid();
}

/* -EAGAIN: somebody took it for a dead one's, before it was locked. */
static int make_file(struct msg_live *l, int dir)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat st;
	uint64_t key;
	int err = util_random_key(&key, sizeof(key));

	if (err)
		return err;
	snprintf(l->name, sizeof(l->name), "%d-%016" PRIx64, (int)getpid(), key);
	l->fd = openat(dir, l->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (l->fd < 0)
		return -errno;
	if (fcntl(l->fd, F_SETLK, &all) || fstat(l->fd, &st) || !st.st_nlink)
		err = -EAGAIN;
	if (!err)
		err = reserve(l->fd, STEP);
	if (!err)
		return 0;
	unlinkat(dir, l->name, 0);
	close(l->fd);
	l->fd = -1;
	return err;
}

static int make_in(struct msg_live *l, unsigned int which)
{
	int dir, err = -EAGAIN;

	/* Who closes removes an empty directory, and who looks what is not locked. */
	for (int tries = 0; tries < 100 && (err == -EAGAIN || err == -ENOENT); tries++) {
		dir = msg_live_dir(which, true, l->dir);
		if (dir < 0)
			return dir;
		err = make_file(l, dir);
		/* A process that is killed leaves its file, and perhaps nobody ever looks. */
		if (!err)
			util_dir_sweep(dir, is_of_another, 0);
		close(dir);
	}
	l->size = STEP;
	return err;
}

static int make_map(struct msg_live *l)
{
	l->mine = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->mine == MAP_FAILED) {
		l->mine = NULL;
		return -errno;
	}
	*l->mine = 1;
	if (madvise(l->mine, 1, MADV_WIPEONFORK))
		return -errno;
	l->map = mmap(NULL, MAP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->map == MAP_FAILED) {
		l->map = NULL;
		return -errno;
	}
	return madvise(l->map, MAP_LEN, MADV_DONTFORK) ? -errno : 0;
}

static void write_head(struct msg_live *l)
{
	struct msg_live_head *h = (struct msg_live_head *)l->map;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	h->began = (uint64_t)now.tv_sec * UTIL_NS_PER_S + (uint64_t)now.tv_nsec;
	h->pid = (uint32_t)getpid();
	if (gethostname(h->host, sizeof(h->host) - 1))
		h->host[0] = '\0';
	snprintf(h->program, sizeof(h->program), "%s", program_invocation_short_name);
	h->magic = MSG_LIVE_MAGIC;
}

struct msg_live *msg_live_open(void)
{
	struct msg_live *l = calloc(1, sizeof(*l));
	static atomic_bool said;
	int err = -ENOENT;

	if (!l)
		return NULL;
	l->fd = -1;
	for (unsigned int i = 0; err && i < 2; i++) {
		int ret = make_in(l, i);

		/* Of two that fail, the one that is there says more. */
		if (i == 0 || ret != -ENOENT)
			err = ret;
	}
	if (!err)
		err = make_map(l);
	if (!err) {
		write_head(l);
		return l;
	}
	util_log_once(&said, UTIL_LOG_WARN,
		      "paths are not shown to 'weft paths': %s: %s; WEFT_LIVE_DIR can name another "
		      "directory, FI_WEFT_LIVE=no does without",
		      l->dir, strerror(-err));
	msg_live_close(l);
	return NULL;
}

/* ---- gone ---- */

static void remove_file(const struct msg_live *l)
{
	char path[PATH_MAX + MSG_LIVE_NAME_MAX + 1], *slash;

	if (l->fd < 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", l->dir, l->name);
	unlink(path);
	/* Nothing is left behind, if this was the last one. */
	if (getenv("WEFT_LIVE_DIR") || rmdir(l->dir))
		return;
	snprintf(path, sizeof(path), "%s", l->dir);
	slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
		rmdir(path);
	}
}

void msg_live_close(struct msg_live *l)
{
	if (!l)
		return;
	/* In a child of fork there is no map, and the file is the parent's. */
	if (!l->mine || *l->mine) {
		remove_file(l);
		if (l->map)
			munmap(l->map, MAP_LEN);
	}
	if (l->mine)
		munmap(l->mine, 1);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

/* ---- written ---- */

static struct msg_live_peer *peer_at(struct msg_live *l, uint32_t peer)
{
	return (struct msg_live_peer *)(l->map + msg_live_at(peer));
}

static bool has_room(struct msg_live *l, uint32_t peer)
{
	if (peer >= MSG_LIVE_PEERS)
		return false;
	if (msg_live_at(peer + 1) <= l->size)
		return true;
	if (reserve(l->fd, l->size + STEP))
		return false;
	l->size += STEP;
	return true;
}

uint32_t msg_live_add(struct msg_live *l, uint32_t ip, const struct stripe_conf *conf)
{
	struct msg_live_head *h;
	struct msg_live_peer *p;
	uint32_t peer;

	if (!l || !*l->mine)
		return UINT32_MAX;
	h = (struct msg_live_head *)l->map;
	peer = h->peers;
	if (!has_room(l, peer))
		return UINT32_MAX;
	p = peer_at(l, peer);
	p->ip = ip;
	p->paths = conf->paths;
	stripe_print(conf, p->policy);
	/* release: who sees the number sees the peer */
	__atomic_store_n(&h->peers, peer + 1, __ATOMIC_RELEASE);
	return peer;
}

/* To be changed, until change_end. NULL: it is not shown. */
static struct msg_live_peer *change(struct msg_live *l, uint32_t peer)
{
	struct msg_live_peer *p;

	if (peer == UINT32_MAX || !*l->mine)
		return NULL;
	p = peer_at(l, peer);
	/* relaxed, and a fence: no store that follows is seen before the odd number */
	__atomic_store_n(&p->seq, p->seq + 1, __ATOMIC_RELAXED);
#ifndef __SANITIZE_THREAD__ /* which has no fences, and knows nothing of readers elsewhere */
	atomic_thread_fence(memory_order_release);
#endif
	return p;
}

static void change_end(struct msg_live_peer *p)
{
	/* release: none is seen after the even one */
	__atomic_store_n(&p->seq, p->seq + 1, __ATOMIC_RELEASE);
}

void msg_live_write(struct msg_live *l, uint32_t peer, const struct msg_live_path *path,
		    uint32_t down)
{
	struct msg_live_peer *p = change(l, peer);

	if (!p)
		return;
	p->down = down;
	memcpy(p->path, path, p->paths * sizeof(*path));
	change_end(p);
}

void msg_live_drop(struct msg_live *l, uint32_t peer)
{
	struct msg_live_peer *p = change(l, peer);

	if (!p)
		return;
	p->paths = 0;
	change_end(p);
}
