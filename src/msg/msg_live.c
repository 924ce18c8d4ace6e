#include "msg_live.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util_dir.h"

/* ---- the format ---- */

static void check_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

int msg_live_check_head(struct msg_live_head *h)
{
	if (h->magic != MSG_LIVE_MAGIC || h->peers > MSG_LIVE_PEERS || !h->pid || h->pid > INT_MAX)
		return -EPROTO;
	check_text(h->host, sizeof(h->host));
	check_text(h->program, sizeof(h->program));
	return 0;
}

int msg_live_check_peer(struct msg_live_peer *p)
{
	if (p->seq % 2 || !p->paths || p->paths > STRIPE_PATHS_MAX)
		return -EPROTO;
	check_text(p->policy, sizeof(p->policy));
	p->down &= (1u << p->paths) - 1;
	for (uint32_t i = 0; i < p->paths; i++)
		if (!isfinite(p->path[i].weight) || p->path[i].weight < 0)
			p->path[i].weight = 0;
	return 0;
}

/* ---- directories ---- */

static const char *chosen(void)
{
	const char *dir = getenv("WEFT_LIVE_DIR");

	return dir && *dir ? dir : NULL;
}

/* Memory is better than a disk: pages that are written to disk make who writes into them wait. But
 * XDG_RUNTIME_DIR is not set for everybody who has it. */
static int find(unsigned int which, char path[PATH_MAX])
{
	int len;

	if (chosen()) {
		len = snprintf(path, PATH_MAX, "%s", chosen());
		if (len >= PATH_MAX)
			return -ENAMETOOLONG;
		/* "live/" would be made as something above "", and followed where it is a link. */
		while (len > 1 && path[len - 1] == '/')
			path[--len] = '\0';
		return which ? -ENOENT : path[0] == '/' ? 0 : -EINVAL;
	}
	if (which == 1)
		util_dir_default("live", path);
	if (which)
		return which == 1 ? 0 : -ENOENT;
	len = snprintf(path, PATH_MAX, "/run/user/%ju", util_dir_uid());
	if (!util_dir_is_ours(path))
		return -ENOENT;
	snprintf(path + len, PATH_MAX - (size_t)len, "/weft/live");
	return 0;
}

/* Nobody else may so much as look into it. */
static bool is_private(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

int msg_live_dir(unsigned int which, bool make, char path[PATH_MAX])
{
	int fd, err = find(which, path);

	if (!err && make)
		err = util_dir_make(path, 0700);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (is_private(fd) && (chosen() || util_dir_above_is_ours(path)))
		return fd;
	close(fd);
	return -EPERM;
}

bool msg_live_is_name(const char *name)
{
	size_t pid = strspn(name, "0123456789");

	return pid && pid <= 10 && name[pid] == '-' &&
	       strspn(name + pid + 1, "0123456789abcdef") == 16 && !name[pid + 17];
}
