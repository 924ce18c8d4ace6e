/* What commands print, and the files that they write. */
#include "cli_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *running;

void cli_set_command(const char *name)
{
	running = name;
}

/* ---- text ---- */

/* How many bytes of a character that a terminal shows; 0: it would steer it, or is none. */
static size_t shown(const unsigned char *c)
{
	size_t more = c[0] >= 0xf0 ? 3 : c[0] >= 0xe0 ? 2 : 1;

	if (c[0] < 0x80)
		return (c[0] >= ' ' && c[0] != 0x7f) || c[0] == '\n' || c[0] == '\t';
	/* UTF-8, but not the control characters from 0x80 to 0x9f */
	if (c[0] < 0xc2 || c[0] > 0xf4 || (c[0] == 0xc2 && c[1] < 0xa0))
		return 0;
	for (size_t i = 1; i <= more; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return 1 + more;
}

static void put_plain(FILE *to, const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	while (*c) {
		size_t n = shown(c);

		if (n)
			fwrite(c, 1, n, to);
		else
			fprintf(to, "\\x%02x", *c);
		c += n ? n : 1;
	}
}

static __attribute__((format(printf, 2, 0))) void say(FILE *to, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0) {
		fputs(strerror(ENOMEM), to);
		return;
	}
	put_plain(to, text);
	free(text);
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(stdout, fmt, ap);
	va_end(ap);
}

static __attribute__((format(printf, 1, 0))) void complain(const char *fmt, va_list ap)
{
	fprintf(stderr, "weft%s%s: ", running ? " " : "", running ? running : "");
	say(stderr, fmt, ap);
	fputc('\n', stderr);
}

int cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return CLI_USAGE;
}

static bool of_machine(int err)
{
	switch (-err) {
	case ENOMEM:
	case EIO:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
	case ENFILE:
	case EAGAIN:
		return true;
	default:
		return false;
	}
}

int cli_failed(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return of_machine(err) ? CLI_FAILED : CLI_USAGE;
}

int cli_try_help(void)
{
	fprintf(stderr, "Try 'weft%s%s --help'.\n", running ? " " : "", running ? running : "");
	return CLI_USAGE;
}

json_t *cli_json_text(const char *text)
{
	json_t *value = json_string(text);
	char *plain = NULL;
	size_t len;
	FILE *to = value ? NULL : open_memstream(&plain, &len);

	if (!to)
		return value;
	put_plain(to, text);
	if (!fclose(to))
		value = json_string(plain);
	free(plain);
	return value;
}

void cli_print_json(json_t *value, size_t flags)
{
	json_dumpf(value, stdout, flags & JSON_COMPACT ? flags : JSON_INDENT(2) | flags);
	putchar('\n');
	json_decref(value);
}

static int output_failed(void)
{
	static bool said;

	if (!said)
		cli_error("cannot write the output: %s", strerror(errno ? errno : EIO));
	said = true;
	return CLI_FAILED;
}

int cli_finish(int code)
{
	return fflush(stdout) || ferror(stdout) ? output_failed() : code;
}

int cli_end(int code)
{
	code = cli_finish(code);
	return fclose(stdout) ? output_failed() : code;
}

/* ---- files ---- */

/* As open() would have made it, or as the one that it replaces. */
static void take_mode(int fd, const struct stat *old)
{
	mode_t mask = umask(0);

	umask(mask);
	/* Where it can not be set, it stays readable for the owner. */
	if (fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mask))
		errno = 0;
}

/* Under another name in the same directory. NULL: it can not be made there, or should not. */
static FILE *create_part(struct cli_file *f)
{
	struct stat st;
	bool old = !stat(f->path, &st), link = !old && !lstat(f->path, &st);
	FILE *to = NULL;
	int fd;

	/* A device, a pipe, a link that leads nowhere: not to be replaced. */
	if ((old && !S_ISREG(st.st_mode)) || link)
		return NULL;
	/* Nor is one that may not be written. */
	if (old && access(f->path, W_OK))
		return NULL;
	f->name = old ? realpath(f->path, NULL) : strdup(f->path);
	if (!f->name || asprintf(&f->part, "%s.XXXXXX", f->name) < 0) {
		f->part = NULL;
		return NULL;
	}
	fd = mkostemp(f->part, O_CLOEXEC);
	if (fd >= 0) {
		take_mode(fd, old ? &st : NULL);
		to = fdopen(fd, "w");
	}
	if (fd >= 0 && !to) {
		close(fd);
		unlink(f->part);
	}
	if (!to) {
		free(f->part);
		f->part = NULL;
	}
	return to;
}

int cli_create(struct cli_file *f, const char *path)
{
	*f = (struct cli_file){.path = path};
	/* A file that grows beyond the limit is an error of writing, after which nothing is left.
	 */
	signal(SIGXFSZ, SIG_IGN);
	if (!path || !strcmp(path, "-")) {
		f->to = stdout;
		return CLI_OK;
	}
	f->to = create_part(f);
	if (!f->to)
		f->to = fopen(path, "we");
	if (f->to)
		return CLI_OK;
	cli_error("cannot write %s: %s", path, strerror(errno));
	cli_drop(f);
	return CLI_FAILED;
}

void cli_drop(struct cli_file *f)
{
	if (f->to && f->to != stdout)
		fclose(f->to);
	if (f->part)
		unlink(f->part);
	free(f->part);
	free(f->name);
	*f = (struct cli_file){0};
}

static int flush(struct cli_file *f)
{
	int err = fflush(f->to) || ferror(f->to) ? -(errno ? errno : EIO) : 0;

	if (fclose(f->to) && !err)
		err = -errno;
	f->to = NULL;
	if (!err && f->part) {
		err = rename(f->part, f->name) ? -errno : 0;
		if (!err) {
			free(f->part);
			f->part = NULL;
		}
	}
	return err;
}

int cli_written(struct cli_file *f, int err, const char *why)
{
	int code = CLI_OK;

	/* Of standard output, cli_finish speaks, and once. */
	if (f->to == stdout && (!err || ferror(stdout)))
		return cli_finish(CLI_OK);
	if (!err)
		err = flush(f);
	if (err && why && *why) {
		code = cli_failed(err, "%s", why);
	} else if (err) {
		cli_error("cannot write %s: %s", f->to == stdout ? "the output" : f->path,
			  strerror(-err));
		code = CLI_FAILED;
	}
	cli_drop(f);
	return code;
}

int cli_number(const char *option, const char *text, int most, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	*out = (int)v;
	return end != text && !*end && v >= 1 && v <= most
		       ? 0
		       : cli_error("%s %s is not understood; expected 1 to %d", option, text, most);
}
