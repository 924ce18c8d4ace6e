#include "coll_place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll_env.h"
#include "util_log.h"

#define TEXT_MAX (4u << 20)

/* ---- lists: a,b[1-3,7],c ---- */

/* The next item of a list, up to a comma outside brackets; moves on behind it. */
static char *next_item(char **list)
{
	char *item = *list, *p = item;
	bool inside = false;

	if (!*p)
		return NULL;
	for (; *p && (inside || *p != ','); p++)
		inside = *p == '[' || (inside && *p != ']');
	*list = *p ? p + 1 : p;
	*p = '\0';
	return item;
}

/* Which of "01-12,15" the digits are, with as many of them; -1: none. *n: how many there are. */
static int64_t in_ranges(const char *ranges, size_t len, const char *digits, size_t n_digits,
			 uint64_t *n)
{
	unsigned long long want = strtoull(digits, NULL, 10);
	const char *end = ranges + len;
	int64_t found = -1;

	*n = 0;
	while (ranges < end) {
		char *after;
		unsigned long long low = strtoull(ranges, &after, 10), high = low;
		size_t wide = (size_t)(after - ranges);

		if (after < end && *after == '-')
			high = strtoull(after + 1, &after, 10);
		if (after == ranges || high < low || high - low > TEXT_MAX || after > end)
			return found;
		if (want >= low && want <= high && found < 0 &&
		    (n_digits == wide || (n_digits > wide && *digits != '0')))
			found = (int64_t)(*n + (want - low));
		*n += high - low + 1;
		ranges = *after == ',' ? after + 1 : end;
	}
	return found;
}

/* Which of the names that an item stands for it is; -1: none. *n: how many there are. */
static int64_t in_item(const char *item, const char *name, size_t len, uint64_t *n)
{
	const char *open = strchr(item, '['), *close = open ? strchr(open, ']') : NULL;
	size_t before = close ? (size_t)(open - item) : strlen(item);
	size_t after = close ? strlen(close + 1) : 0, digits;
	int64_t found;

	*n = 1;
	if (!close)
		return before == len && !strncmp(item, name, len) ? 0 : -1;
	digits = len > before + after ? len - before - after : 0;
	found = in_ranges(open + 1, (size_t)(close - open - 1), name + (digits ? before : len),
			  digits, n);
	if (!digits || strncmp(item, name, before) != 0 ||
	    memcmp(close + 1, name + len - after, after) != 0 ||
	    strspn(name + before, "0123456789") < digits)
		return -1;
	return found;
}

/* Which of a list's names it is; -1: none. */
static int64_t in_list(char *list, const char *name, size_t len)
{
	uint64_t before = 0, n;
	char *item;

	while ((item = next_item(&list))) {
		int64_t at = in_item(item, name, len, &n);

		if (at >= 0)
			return (int64_t)before + at;
		before += n;
	}
	return -1;
}

/* ---- lines ---- */

/* The value of KEY=… in a line; its length in *len, 0: it has none. */
static const char *value_of(const char *line, const char *key, size_t *len)
{
	size_t n = strlen(key);

	for (const char *p = line; *p;) {
		p += strspn(p, " \t\r");
		if (*p == '#')
			break;
		*len = strcspn(p, " \t\r#");
		if (*len > n && !strncasecmp(p, key, n) && p[n] == '=') {
			*len -= n + 1;
			return p + n + 1;
		}
		p += *len;
	}
	*len = 0;
	return line;
}

/* Moves on behind "[01-12,15]". */
static bool good_ranges(const char **p)
{
	static const char digits[] = "0123456789";

	do {
		size_t n = strspn(++*p, digits);

		*p += n;
		if (n && **p == '-') {
			n = strspn(++*p, digits);
			*p += n;
		}
		if (!n)
			return false;
	} while (**p == ',');
	return *(*p)++ == ']';
}

/* No item of a list may have more than one pair of brackets. */
static bool good_list(const char *p, size_t len)
{
	const char *end = p + len;
	bool ranges = false;

	while (p < end) {
		if (*p == ']' || (*p == '[' && ranges))
			return false;
		ranges = *p == '[' || (ranges && *p != ',');
		if (*p != '[')
			p++;
		else if (!good_ranges(&p))
			return false;
	}
	return true;
}

/* Nothing but KEY=VALUE, with lists that are whole where we read them. */
static bool good_line(const char *line)
{
	static const char *const lists[] = {"Nodes", "Switches"};
	size_t len;

	for (const char *p = line; *(p += strspn(p, " \t\r")) && *p != '#'; p += len) {
		size_t key = strcspn(p, "= \t\r#");

		len = strcspn(p, " \t\r#");
		if (!key || key + 1 >= len)
			return false;
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *v = value_of(line, lists[i], &len);

		if (!good_list(v, len))
			return false;
	}
	return true;
}

struct lines {
	char **at;
	uint32_t n;
};

/* The line whose list `key` has the name; its place in it. UINT32_MAX: none. */
static uint32_t line_with(const struct lines *l, const char *key, const char *name, size_t len,
			  int64_t *place)
{
	for (uint32_t i = 0; i < l->n; i++) {
		size_t n;
		const char *v = value_of(l->at[i], key, &n);
		char *copy = n ? strndup(v, n) : NULL;

		*place = copy ? in_list(copy, name, len) : -1;
		free(copy);
		if (*place >= 0)
			return i;
	}
	return UINT32_MAX;
}

static int climb(const struct lines *l, uint32_t line, struct coll_found *f)
{
	int64_t place;

	while (line != UINT32_MAX) {
		size_t len;
		const char *name = value_of(l->at[line], "SwitchName", &len);

		if (f->levels == COLL_LEVELS_MAX || !len)
			return -EINVAL;
		f->place.group[f->levels++] = line;
		line = line_with(l, "Switches", name, len, &place);
	}
	return 0;
}

static int split(char *text, struct lines *l)
{
	uint32_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	l->at = calloc(n, sizeof(*l->at));
	if (!l->at)
		return -ENOMEM;
	for (char *p = text; p; l->n++) {
		l->at[l->n] = p;
		p = strchr(p, '\n');
		if (p)
			*p++ = '\0';
	}
	return 0;
}

/* The first line that is not good, from 1 on; 0: none. */
static uint32_t bad_line(const struct lines *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (!good_line(l->at[i]))
			return i + 1;
	return 0;
}

static uint64_t number_of(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a: a check against mistakes only */

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

int coll_place_parse(char *text, const char *name, struct coll_found *found)
{
	struct coll_found f = {.tree = number_of(text)};
	struct lines l = {0};
	uint32_t line, bad;
	int64_t place = 0;
	int ret = split(text, &l);

	*found = (struct coll_found){.wrong = COLL_WRONG_ELSE};
	if (ret)
		return ret;
	bad = bad_line(&l);
	if (bad) {
		found->wrong = bad;
		free(l.at);
		return -EBADMSG;
	}
	line = line_with(&l, "Nodes", name, strlen(name), &place);
	if (line == UINT32_MAX)
		line = line_with(&l, "Nodes", name, strcspn(name, "."), &place);
	f.place.number = (uint32_t)place;
	ret = line == UINT32_MAX ? -ENOENT : climb(&l, line, &f);
	if (!ret)
		*found = f;
	free(l.at);
	return ret;
}

/* ---- this host ---- */

/* NULL with errno. What is no file may never end, or never begin. */
static FILE *open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fdopen(fd, "r");
	close(fd);
	errno = S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
	return NULL;
}

/* Allocated; or NULL with errno. */
static char *read_file(const char *path)
{
	FILE *f = open_file(path);
	char *text = f ? malloc(TEXT_MAX) : NULL;
	size_t n = text ? fread(text, 1, TEXT_MAX, f) : 0;
	int err = !f || !text ? errno : ferror(f) ? EIO : n == TEXT_MAX ? EFBIG : 0;

	if (f)
		fclose(f);
	if (err) {
		free(text);
		errno = err;
		return NULL;
	}
	text[n] = '\0';
	return text;
}

static void complain(const char *path, const char *host, int err, uint32_t line)
{
	const char *what = err == -ENOENT   ? "it has no line with this host"
			   : err == -EINVAL ? "its switches go round in circles, are more than 8 "
					      "levels high, or have no name"
					    : strerror(-err);

	if (err == -EBADMSG)
		util_log(UTIL_LOG_WARN,
			 "coll: WEFT_COLL_TOPOLOGY=%s: line %u can not be understood, expected "
			 "SwitchName=NAME Nodes=HOSTS or Switches=NAMES; places in the tree are "
			 "not used",
			 path, line);
	else
		util_log(UTIL_LOG_WARN,
			 "coll: WEFT_COLL_TOPOLOGY=%s does not say where '%s' is: %s; places in "
			 "the tree "
			 "are not used",
			 path, host, what);
}

static void find(const char *path, struct coll_found *found, bool loud)
{
	char name[256] = "", *text = read_file(path);
	int err = errno, ret;

	gethostname(name, sizeof(name) - 1);
	if (!text) {
		found->wrong = COLL_WRONG_ELSE;
		if (loud)
			util_log(UTIL_LOG_WARN,
				 "coll: WEFT_COLL_TOPOLOGY=%s can not be read: %s; places in the "
				 "tree are not used",
				 path, err == ENODEV ? "it is not a file" : strerror(err));
		return;
	}
	ret = coll_place_parse(text, name, found);
	if (ret && loud)
		complain(path, name, ret, found->wrong);
	free(text);
}

void coll_place_find(struct coll_found *found, bool loud)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct coll_found ours;
	static bool looked;

	pthread_mutex_lock(&lock);
	if (!looked && coll_env()->topology)
		find(coll_env()->topology, &ours, loud);
	looked = true;
	*found = ours;
	pthread_mutex_unlock(&lock);
}
