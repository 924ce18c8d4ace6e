/* Who looks at the files of msg_live.h. By read(2), not through a mapping: a file that ends early
 * is then an error, not a signal. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util_dir.h"
#include "msg_live.h"

#define TRIES 100 /* a peer takes well under a microsecond to be written */

static bool read_at(int fd, void *to, size_t len, size_t at)
{
	/* A system call each, so the reads keep their order; and whoever writes is another process,
	 * of which ThreadSanitizer, which has no fences, knows nothing. */
	return pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

/* One that was never whole is left without paths. */
static void read_peer(int fd, uint32_t number, struct msg_live_peer *p)
{
	size_t at = msg_live_at(number);
	uint32_t before, after;

	for (int i = 0; i < TRIES; i++) {
		if (!read_at(fd, &before, sizeof(before), at) || !read_at(fd, p, sizeof(*p), at) ||
		    !read_at(fd, &after, sizeof(after), at))
			break;
		if (before % 2 || before != after || before != p->seq)
			continue;
		if (!msg_live_check_peer(p))
			return;
		break;
	}
	memset(p, 0, sizeof(*p));
}

/* Who holds it: 0 if nobody does, -1 if that one has no number here. */
static pid_t holder(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &all))
		return -1;
	if (all.l_type == F_UNLCK)
		return 0;
	return all.l_pid > 0 ? all.l_pid : -1;
}

/* 0; -EPROTO: it is none, or not ready yet; -ESRCH: its owner is gone. */
static int read_proc(int dir, const char *name, int fd, struct msg_live_proc *p)
{
	struct stat st;

	memset(p, 0, sizeof(*p));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPROTO;
	p->pid = holder(fd);
	if (!p->pid && util_dir_remove_unheld(dir, name, fd))
		return -ESRCH;
	if (!read_at(fd, &p->head, sizeof(p->head), 0) || msg_live_check_head(&p->head))
		return -EPROTO;
	if (p->pid <= 0)
		p->pid = (pid_t)p->head.pid;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->peer = calloc(p->head.peers + 1, sizeof(*p->peer));
	if (!p->peer)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->head.peers; i++)
		read_peer(fd, i, &p->peer[i]);
	return 0;
}

static int add_file(int dir, const char *name, struct msg_live_proc **procs, size_t *n)
{
	struct msg_live_proc proc, *more;
	int err, fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return 0; /* gone meanwhile, or none of ours */
	err = read_proc(dir, name, fd, &proc);
	close(fd);
	if (err)
		return err == -ENOMEM ? err : 0;
	more = realloc(*procs, (*n + 1) * sizeof(**procs));
	if (!more) {
		free(proc.peer);
		return -ENOMEM;
	}
	*procs = more;
	more[(*n)++] = proc;
	return 0;
}

static int add_dir(int dir, struct msg_live_proc **procs, size_t *n)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int err = 0;

	if (!d) {
		err = -errno;
		close(dir);
		return err;
	}
	while (!err && (e = readdir(d)))
		if (msg_live_is_name(e->d_name))
			err = add_file(dirfd(d), e->d_name, procs, n);
	closedir(d);
	return err;
}

int msg_live_read(struct msg_live_proc **procs, size_t *n, char path[PATH_MAX])
{
	int err = 0;

	*procs = NULL;
	*n = 0;
	for (unsigned int which = 0; !err && which < 2; which++) {
		int dir = msg_live_dir(which, false, path);

		if (dir >= 0)
			err = add_dir(dir, procs, n);
		else if (dir != -ENOENT)
			err = dir;
	}
	if (err) {
		msg_live_free(*procs, *n);
		*procs = NULL;
		*n = 0;
	}
	return err;
}

void msg_live_free(struct msg_live_proc *procs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(procs[i].peer);
	free(procs);
}
