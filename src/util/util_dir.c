#include "util_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uintmax_t util_dir_uid(void)
{
	uintmax_t inside, outside, n, uid = geteuid();
	FILE *map = fopen("/proc/self/uid_map", "re");

	while (map && fscanf(map, "%ju %ju %ju", &inside, &outside, &n) == 3) {
		if (uid >= inside && uid - inside < n) {
			uid = outside + (uid - inside);
			break;
		}
	}
	if (map)
		fclose(map);
	return uid;
}

void util_dir_default(const char *name, char path[PATH_MAX])
{
	uintmax_t uid = util_dir_uid();

	if (!uid)
		snprintf(path, PATH_MAX, "/run/weft/%s", name);
	else
		snprintf(path, PATH_MAX, "/tmp/weft-%ju/%s", uid, name);
}

bool util_dir_is_ours(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool util_dir_above_is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];

	if (!slash || snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path) >= PATH_MAX)
		return false;
	return util_dir_is_ours(above);
}

int util_dir_make(char *path, mode_t mode)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		mode_t is = slash ? geteuid() ? 0700 : 0755 : mode;
		int ret;

		if (slash)
			*slash = '\0';
		ret = mkdir(path, is) && errno != EEXIST ? -errno : 0;
		if (slash)
			*slash = '/';
		if (ret || !slash)
			return ret;
	}
}

/* ---- files that a process holds ---- */

#define SWEEP_MOST 4096 /* files that are looked at */

/* With the lock held: who has made it, and not locked it yet, then finds that it is gone, and makes
 * another. */
bool util_dir_remove_unheld(int dir, const char *name, int fd)
{
	/* For reading, as it was opened: an owner's lock excludes it just as well. */
	struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	struct stat is, was;

	if (fcntl(fd, F_SETLK, &all))
		return false;
	if (!fstatat(dir, name, &is, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &was) &&
	    is.st_ino == was.st_ino && is.st_dev == was.st_dev)
		unlinkat(dir, name, 0);
	return true;
}

static bool may_go(int fd, time_t age)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       time(NULL) - st.st_mtime >= age;
}

void util_dir_sweep(int dir, bool (*is_one)(const char *name), time_t age)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	for (int i = 0; d && i < SWEEP_MOST && (e = readdir(d)); i++) {
		int file;

		if (!is_one(e->d_name))
			continue;
		file = openat(dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (file < 0)
			continue;
		if (may_go(file, age))
			util_dir_remove_unheld(dir, e->d_name, file);
		close(file);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}
