#include "util_dir.h"

#include <errno.h>
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
