#include "lab_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util_dir.h"

/* ---- the directory of all labs ---- */

/* What the user has chosen, or NULL. */
static const char *chosen(void)
{
	const char *dir = getenv("WEFT_LAB_DIR");

	return dir && *dir ? dir : NULL;
}

static int join(char path[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Between opening and locking it, somebody may have removed it, as empty. */
static bool is_still_there(const struct lab_dir *dir)
{
	struct stat path, fd;

	return !stat(dir->path, &path) && !fstat(dir->fd, &fd) && path.st_ino == fd.st_ino &&
	       path.st_dev == fd.st_dev;
}

/* Others hold it for milliseconds, unless they are stopped. */
static int lock_for_a_while(int fd)
{
	for (int i = 0; i < 2000; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return -1;
		usleep(5000);
	}
	errno = EBUSY;
	return -1;
}

static int open_and_lock(struct lab_dir *dir, bool make)
{
	int ret;

	for (int tries = 0; tries < 100; tries++) {
		if (make && (ret = util_dir_make(dir->path, geteuid() ? 0700 : 0755)))
			return ret;
		dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir->fd < 0)
			return errno == ENOENT && !make ? 0 : -errno;
		if (lock_for_a_while(dir->fd)) {
			int err = errno;

			close(dir->fd);
			dir->fd = -1;
			return -err;
		}
		if (is_still_there(dir))
			return 0;
		close(dir->fd);
		dir->fd = -1;
	}
	return -EAGAIN;
}

static int open_path(struct lab_dir *dir, bool make, struct lab_error *e)
{
	int ret = open_and_lock(dir, make);

	if (ret == -EBUSY)
		return lab_fail(e, EBUSY, "another 'weft lab' has locked %.200s and does not go on",
				dir->path);
	if (ret)
		return lab_fail(
			e, -ret,
			"cannot use the directory %.150s: %s; WEFT_LAB_DIR can name another one",
			dir->path, strerror(-ret));
	/* In /tmp, and unlike what the user chose: nobody may swap it for another. */
	if (dir->fd < 0 ||
	    (util_dir_is_ours(dir->path) && (chosen() || util_dir_above_is_ours(dir->path))))
		return 0;
	lab_dir_close(dir);
	return lab_fail(e, EPERM,
			"the directory %.150s, or that above it, belongs to or can be written by "
			"somebody else; WEFT_LAB_DIR can name another one",
			dir->path);
}

int lab_dir_open(struct lab_dir *dir, bool make, struct lab_error *e)
{
	const char *env = chosen();
	int ret = 0;

	dir->fd = -1;
	/* Not XDG_RUNTIME_DIR: it is another one for cron than for a login, and goes at the logout,
	 * which the lab survives. */
	if (!env)
		util_dir_default("lab", dir->path);
	else if (snprintf(dir->path, PATH_MAX, "%s", env) >= PATH_MAX)
		ret = -ENAMETOOLONG;
	if (ret)
		return lab_fail(e, -ret, "the path of the labs' directory is too long");
	if (dir->path[0] != '/')
		return lab_fail(e, EINVAL, "WEFT_LAB_DIR=%.200s is not an absolute path", env);
	return open_path(dir, make, e);
}

int lab_dir_open_of(struct lab_dir *dir, const struct lab *lab, struct lab_error *e)
{
	dir->fd = -1;
	memcpy(dir->path, lab->dir, sizeof(dir->path));
	return open_path(dir, false, e);
}

void lab_dir_close(struct lab_dir *dir)
{
	char *slash = strrchr(dir->path, '/');

	if (dir->fd < 0)
		return;
	/* Nothing is left behind. It is in use by others if it is not empty; and who has it
	 * open already sees that it is gone (is_still_there). */
	if (!chosen() && !rmdir(dir->path)) {
		*slash = '\0';
		rmdir(dir->path);
		*slash = '/';
	}
	close(dir->fd);
	dir->fd = -1;
}

/* ---- one lab ---- */

enum lab_claim lab_claim(const struct lab_dir *dir, const char *name, struct lab_holder *holder)
{
	char path[PATH_MAX], text[64] = "";
	enum lab_claim claim = LAB_STALE;
	struct stat st;
	ssize_t got;
	int fd;

	memset(holder, 0, sizeof(*holder));
	if (dir->fd < 0 || fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return LAB_NONE;
	if (join(path, name, "lock"))
		return LAB_NONE;
	fd = openat(dir->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return LAB_STALE;
	if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK) {
		claim = LAB_ALIVE;
		got = read(fd, text, sizeof(text) - 1);
		if (got > 0)
			sscanf(text, "%d %" SCNu32 " %" SCNu32, &holder->pid, &holder->net,
			       &holder->prefix);
	}
	close(fd);
	return claim;
}

int lab_state_create(const struct lab_dir *dir, const char *name, struct lab_error *e)
{
	char path[PATH_MAX];
	int fd = -1;

	if (!mkdirat(dir->fd, name, 0755) && !join(path, name, "lock"))
		fd = openat(dir->fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0644);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		int err = errno;

		struct lab_error ignored;

		if (fd >= 0)
			close(fd);
		if (err != EEXIST)
			lab_state_remove(dir, name, &ignored);
		return lab_fail(e, err, "cannot make %.200s/%s: %s", dir->path, name,
				strerror(err));
	}
	return fd;
}

int lab_state_set_holder(int lock, const struct lab_holder *holder, struct lab_error *e)
{
	char text[64];
	/* Always as long: who reads while it changes sees the one or the other. */
	int len = snprintf(text, sizeof(text), "%10d %10" PRIu32 " %2" PRIu32 "\n",
			   (int)holder->pid, holder->net, holder->prefix);

	if (pwrite(lock, text, (size_t)len, 0) != len)
		return lab_fail(e, errno, "cannot write the lock file: %s", strerror(errno));
	return 0;
}

/* ---- the holder, as seen from here ---- */

/* Process ids mean nothing in another PID namespace, and labs can be made in one: what tells
 * the holder is that it has the lock file open. */
static bool holds(pid_t pid, const struct stat *lock)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, LAB_LOCK_FD);
	return !stat(path, &st) && st.st_ino == lock->st_ino && st.st_dev == lock->st_dev;
}

/* What a holder whose lock file was removed has open. */
bool lab_is_orphan(const struct lab_dir *dir, const char *name, pid_t pid)
{
	static const char end[] = "/lock (deleted)";
	char path[64], is[PATH_MAX + 64];
	size_t len = strlen(dir->path);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, LAB_LOCK_FD);
	n = readlink(path, is, sizeof(is) - 1);
	if (n <= (ssize_t)sizeof(end))
		return false;
	is[n] = '\0';
	if (strncmp(is, dir->path, len) != 0 || is[len] != '/' ||
	    strcmp(is + n - sizeof(end) + 1, end) != 0)
		return false;
	is[n - (ssize_t)sizeof(end) + 1] = '\0'; /* only the name is left */
	return !strchr(is + len + 1, '/') && (!name || !strcmp(is + len + 1, name));
}

/* The first process that `is` likes. */
static pid_t search(bool (*is)(pid_t pid, const void *arg), const void *arg)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is(pid, arg))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found;
}

static bool is_holder(pid_t pid, const void *lock)
{
	return holds(pid, lock);
}

struct orphan {
	const struct lab_dir *dir;
	const char *name;
};

static bool is_orphan(pid_t pid, const void *arg)
{
	const struct orphan *o = arg;

	return lab_is_orphan(o->dir, o->name, pid);
}

pid_t lab_find_orphan(const struct lab_dir *dir, const char *name)
{
	struct orphan o = {dir, name};

	return search(is_orphan, &o);
}

pid_t lab_find_holder(const struct lab_dir *dir, const char *name, pid_t hint)
{
	char path[PATH_MAX];
	struct stat lock;

	if (join(path, name, "lock") || fstatat(dir->fd, path, &lock, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (hint > 0 && holds(hint, &lock))
		return hint;
	if (holds(1, &lock)) /* in the lab */
		return 1;
	return search(is_holder, &lock);
}

bool lab_state_is_ours(const struct lab_dir *dir, const char *name, int lock)
{
	char path[PATH_MAX];
	struct stat there, ours;

	return !join(path, name, "lock") && !fstatat(dir->fd, path, &there, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(lock, &ours) && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/* ---- what a lab is like ---- */

int lab_state_write(const struct lab *lab, const char *dir, struct lab_error *e)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	char pgft[FABRIC_TUPLE_MAX], routing[FABRIC_ROUTING_NAME_MAX];
	const struct lab_spec *s = &lab->spec;
	json_t *json;
	int ret = -1;

	fabric_pgft_print(&s->tree, pgft);
	fabric_routing_print(&s->routing, routing);
	json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:I}", "name", s->name,
			 "pgft", pgft, "routing", routing, "rate", (json_int_t)s->rate, "mtu",
			 (json_int_t)s->mtu, "net", (json_int_t)s->net, "prefix",
			 (json_int_t)s->prefix, "user", lab->user, "pid", (json_int_t)lab->holder,
			 "since", (json_int_t)lab->since);
	if (json && !join(path, dir, "lab.json") && !join(fresh, dir, "lab.json.new")) {
		ret = json_dump_file(json, fresh, JSON_INDENT(1));
		if (!ret)
			ret = rename(fresh, path);
	}
	json_decref(json);
	return ret ? lab_fail(e, errno ? errno : ENOMEM, "cannot write %.200s/lab.json: %s", dir,
			      strerror(errno))
		   : 0;
}

static int from_json(json_t *json, const char *name, struct lab *lab)
{
	const char *pgft, *routing;
	json_int_t rate, mtu, net, prefix, pid, since;
	char why[256];
	int user;

	memset(lab, 0, sizeof(*lab));
	if (json_unpack(json, "{s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:I}", "pgft", &pgft,
			"routing", &routing, "rate", &rate, "mtu", &mtu, "net", &net, "prefix",
			&prefix, "user", &user, "pid", &pid, "since", &since))
		return -EINVAL;
	if (fabric_pgft_parse(&lab->spec.tree, pgft, why, sizeof(why)) ||
	    fabric_routing_parse(&lab->spec.routing, routing, why, sizeof(why)))
		return -EINVAL;
	if (prefix < 1 || prefix > 31)
		return -EINVAL;
	snprintf(lab->spec.name, sizeof(lab->spec.name), "%s", name);
	lab->spec.rate = (uint64_t)rate;
	lab->spec.mtu = (uint32_t)mtu;
	lab->spec.net = (uint32_t)net;
	lab->spec.prefix = (uint32_t)prefix;
	lab->user = user;
	lab->holder = (pid_t)pid;
	lab->since = since;
	return 0;
}

int lab_state_read(const struct lab_dir *dir, const char *name, struct lab *lab,
		   struct lab_error *e)
{
	char path[PATH_MAX];
	json_error_t where;
	json_t *json;
	int ret;

	if (snprintf(path, sizeof(path), "%s/%s/lab.json", dir->path, name) >= (int)sizeof(path))
		return lab_fail(e, ENAMETOOLONG, "the path of lab '%s' is too long", name);
	if (access(path, F_OK))
		return lab_fail(e, ENOENT, "lab '%s' is still coming up", name);
	json = json_load_file(path, 0, &where);
	ret = json ? from_json(json, name, lab) : -EINVAL;
	json_decref(json);
	if (ret)
		return lab_fail(e, EINVAL, "%.200s is damaged; 'weft lab down %s' removes the lab",
				path, name);
	memcpy(lab->dir, dir->path, sizeof(lab->dir));
	lab->holder = lab_find_holder(dir, name, lab->holder);
	if (!lab->holder)
		return lab_fail(
			e, ESRCH,
			"the process of lab '%s' can not be seen from here: it is in another "
			"PID namespace, or another user's",
			name);
	return 0;
}

int lab_state_remove(const struct lab_dir *dir, const char *name, struct lab_error *e)
{
	static const char *const files[] = {"lab.json", "lab.json.new", "hosts", LAB_TOPOLOGY,
					    "lock"};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (!join(path, name, files[i]))
			unlinkat(dir->fd, path, 0);
	if (!unlinkat(dir->fd, name, AT_REMOVEDIR) || errno == ENOENT)
		return 0;
	return lab_fail(e, errno, "cannot remove %.200s/%s: %s", dir->path, name, strerror(errno));
}

/* ---- all labs ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int lab_names(const struct lab_dir *dir, char ***names, size_t *n, struct lab_error *e)
{
	struct dirent *entry;
	char **list = NULL;
	DIR *stream;
	int fd;

	*names = NULL;
	*n = 0;
	if (dir->fd < 0)
		return 0;
	fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		if (fd >= 0)
			close(fd);
		return lab_fail(e, errno, "cannot read %.200s: %s", dir->path, strerror(errno));
	}
	while ((entry = readdir(stream))) {
		struct lab_error ignored;
		char **more;

		if (lab_name_check(entry->d_name, &ignored))
			continue;
		more = realloc(list, (*n + 1) * sizeof(*list));
		if (more)
			list = more;
		if (!more || !(list[*n] = strdup(entry->d_name)))
			break;
		++*n;
	}
	closedir(stream);
	if (entry) {
		lab_names_free(list, *n);
		*n = 0;
		return lab_fail(e, ENOMEM, "out of memory");
	}
	if (*n)
		qsort(list, *n, sizeof(*list), by_name);
	*names = list;
	return 0;
}

void lab_names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

int lab_open(struct lab *lab, const char *name, struct lab_error *e)
{
	struct lab_dir dir;
	enum lab_claim claim = LAB_NONE;
	struct lab_holder holder;
	int ret = lab_name_check(name, e);

	if (!ret)
		ret = lab_dir_open(&dir, false, e);
	if (ret)
		return ret;
	claim = lab_claim(&dir, name, &holder);
	if (claim == LAB_ALIVE)
		ret = lab_state_read(&dir, name, lab, e);
	lab_dir_close(&dir);
	if (claim == LAB_NONE)
		return lab_fail(e, ENOENT,
				"there is no lab '%s'; 'weft lab list' shows those there are",
				name);
	if (claim == LAB_STALE)
		return lab_fail(e, ENOENT, "lab '%s' is dead; 'weft lab down %s' removes its files",
				name, name);
	return ret;
}

static int read_all(const struct lab_dir *dir, struct lab **labs, size_t *count,
		    struct lab_error *e)
{
	struct lab_error ignored;
	char **names;
	size_t n;
	int ret = lab_names(dir, &names, &n, e);

	*count = 0;
	*labs = calloc(n + 1, sizeof(**labs));
	if (!ret && !*labs)
		ret = lab_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; !ret && i < n; i++) {
		struct lab_holder holder;

		if (lab_claim(dir, names[i], &holder) == LAB_ALIVE &&
		    !lab_state_read(dir, names[i], &(*labs)[*count], &ignored))
			++*count;
	}
	lab_names_free(names, n);
	return ret;
}

int lab_each(int (*fn)(const struct lab *lab, void *arg), void *arg, struct lab_error *e)
{
	struct lab *labs;
	struct lab_dir dir;
	size_t n;
	int ret = lab_dir_open(&dir, false, e);

	if (ret)
		return ret;
	ret = read_all(&dir, &labs, &n, e);
	lab_dir_close(&dir); /* whatever fn does, nobody waits for it */
	for (size_t i = 0; !ret && i < n; i++)
		ret = fn(&labs[i], arg);
	free(labs);
	return ret;
}
