#include "coll_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util_clock.h"
#include "util_dir.h"
#include "util_rand.h"

#define LINE   64
#define PREFIX "weft-coll-"
#define STALE  60 /* seconds; a file is locked well within one of them */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t head_size(const struct coll_shm_conf *conf)
{
	size_t size = LINE + (size_t)conf->ranks * COLL_SHM_WORDS * sizeof(uint32_t) +
		      2 * (size_t)conf->hosts * sizeof(uint32_t);

	return round_up(size, (size_t)sysconf(_SC_PAGESIZE));
}

static int lock_byte(struct coll_shm *s, uint32_t rank)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};

	return fcntl(s->fd, F_SETLK, &l) ? -errno : 0;
}

bool coll_shm_alive(const struct coll_shm *s, uint32_t rank)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};

	/* In this order: it leaves, then closes the file. */
	return rank == s->me || fcntl(s->fd, F_GETLK, &l) || l.l_type != F_UNLCK ||
	       atomic_load(coll_shm_word(s, rank, COLL_SHM_LEFT));
}

static int map(struct coll_shm *s, const struct coll_shm_conf *conf)
{
	uint8_t *at = mmap(NULL, s->len, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	s->head = (struct coll_shm_head *)at;
	s->words = (_Atomic uint32_t *)(at + LINE);
	s->done = s->words + (size_t)conf->ranks * COLL_SHM_WORDS;
	s->data = at + head_size(conf);
	return 0;
}

/* Whoever completes it removes the file: no rank has to ask the others for that, and a job that is
 * killed later leaves nothing. */
static int join(struct coll_shm *s, const char *name)
{
	int ret = lock_byte(s, s->me);

	if (!ret && atomic_fetch_add(&s->head->have, 1) + 1 == s->ranks)
		coll_shm_unlink(name);
	return ret;
}

/* ---- files of the dead ---- */

static bool is_name(const char *name)
{
	size_t len = strlen(PREFIX);

	return !strncmp(name, PREFIX, len) && strspn(name + len, "0123456789abcdef") == 16 &&
	       !name[len + 16];
}

void coll_shm_sweep(void)
{
	int dir = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	util_dir_sweep(dir, is_name, STALE);
	close(dir);
}

/* ---- made, attached and left ---- */

static void begin(struct coll_shm *s, const struct coll_shm_conf *conf, uint32_t me)
{
	static pthread_once_t swept = PTHREAD_ONCE_INIT;

	pthread_once(&swept, coll_shm_sweep);
	memset(s, 0, sizeof(*s));
	s->ranks = conf->ranks;
	s->hosts = conf->hosts;
	s->me = me;
	s->len = head_size(conf) + conf->data;
}

bool coll_shm_fits(uint64_t all, uint64_t free, uint64_t size)
{
	return !all || (free >= size && free - size >= all / 4);
}

static int look_for_room(int fd, size_t size)
{
	struct rlimit file;
	struct statvfs fs;

	if (getrlimit(RLIMIT_FSIZE, &file))
		return -errno;
	if (size > file.rlim_cur)
		return -EFBIG;
	if (fstatvfs(fd, &fs))
		return -errno;
	return coll_shm_fits((uint64_t)fs.f_blocks * fs.f_frsize,
			     (uint64_t)fs.f_bavail * fs.f_frsize, size)
		       ? 0
		       : -ENOSPC;
}

/* With all of its pages: a full file system is found now, not by a signal. */
static int make(struct coll_shm *s, const char *name)
{
	int ret;

	s->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return -errno;
	ret = look_for_room(s->fd, s->len);
	if (ret)
		return ret;
	ret = ftruncate(s->fd, (off_t)s->len) ? errno : posix_fallocate(s->fd, 0, (off_t)s->len);
	/* Again: others may have seen the same room. */
	return ret ? -ret : look_for_room(s->fd, 0);
}

int coll_shm_create(struct coll_shm *s, const struct coll_shm_conf *conf, uint32_t me,
		    char name[COLL_SHM_NAME])
{
	uint64_t key;
	int ret = util_random_key(&key, sizeof(key));

	begin(s, conf, me);
	s->fd = -1;
	name[0] = '\0';
	if (ret)
		return ret;
	snprintf(name, COLL_SHM_NAME, "/" PREFIX "%016llx", (unsigned long long)key);
	ret = make(s, name);
	if (!ret)
		ret = map(s, conf);
	if (!ret)
		ret = join(s, name);
	if (ret) {
		coll_shm_unlink(name);
		coll_shm_detach(s);
		name[0] = '\0';
	}
	return ret;
}

int coll_shm_attach(struct coll_shm *s, const struct coll_shm_conf *conf, uint32_t me,
		    const char *name)
{
	int ret;

	begin(s, conf, me);
	s->fd = name[0] ? shm_open(name, O_RDWR | O_CLOEXEC, 0) : -1;
	if (s->fd < 0)
		return name[0] ? -errno : -ENOENT;
	ret = lseek(s->fd, 0, SEEK_END) == (off_t)s->len ? map(s, conf) : -EINVAL;
	if (!ret)
		ret = join(s, name);
	if (ret)
		coll_shm_detach(s);
	return ret;
}

void coll_shm_unlink(const char *name)
{
	if (name[0])
		shm_unlink(name);
}

void coll_shm_detach(struct coll_shm *s)
{
	if (s->head) {
		atomic_store(coll_shm_word(s, s->me, COLL_SHM_LEFT), 1);
		munmap(s->head, s->len);
	}
	if (s->fd >= 0)
		close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* ---- flags ---- */

void coll_shm_event(struct coll_shm *s)
{
	/* Both are one order with what a sleeper does: it counts itself, and then the kernel
	 * compares events. So either it is seen here, or it sees the event. */
	atomic_fetch_add(&s->head->events, 1);
	if (atomic_load(&s->head->sleepers))
		syscall(SYS_futex, &s->head->events, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void coll_shm_set(struct coll_shm *s, _Atomic uint32_t *flag, uint32_t value)
{
	coll_shm_store(flag, value);
	coll_shm_event(s);
}

bool coll_shm_break(struct coll_shm *s)
{
	bool before = atomic_exchange(&s->head->broken, 1);

	if (!before)
		coll_shm_event(s);
	return before;
}

void coll_shm_sleep(struct coll_shm *s, uint32_t seen, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / UTIL_NS_PER_S),
			      .tv_nsec = (long)(ns % UTIL_NS_PER_S)};

	atomic_fetch_add(&s->head->sleepers, 1);
	syscall(SYS_futex, &s->head->events, FUTEX_WAIT, seen, &ts, NULL, 0);
	atomic_fetch_sub(&s->head->sleepers, 1);
}
