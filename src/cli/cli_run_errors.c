/* Standard error of Open MPI's launcher, without one line that it should not have written:
 *
 *	[fat-h0:00003] plm:rsh: Warning: setpgid(10,10) failed in parent with errno=…
 *
 * It wants to give an agent a process group when the agent is already running (and has one
 * of its own). On a machine with few cores this happens to one host out of twenty.
 */
#include "cli_run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void put(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDERR_FILENO, text, n);

		if (done < 0 && errno != EINTR)
			return; /* nobody reads it any more */
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
}

static const char warning[] = "] plm:rsh: Warning: setpgid(";

/* The beginning of that line: "[", a host and a number, the warning as far as it is here. */
static bool may_be_it(struct run_errors *e)
{
	const char *rest;

	e->line[e->n] = '\0';
	if (e->line[0] != '[')
		return false;
	rest = e->line + 1 + strcspn(e->line + 1, "] #=.");
	return !*rest || !strncmp(rest, warning,
				  strlen(rest) < strlen(warning) ? strlen(rest) : strlen(warning));
}

static void flush(struct run_errors *e)
{
	e->line[e->n] = '\0';
	if (!strstr(e->line, warning))
		put(e->line, e->n);
	e->n = 0;
}

int run_errors_open(struct run_errors *e)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	*e = (struct run_errors){.from = fd[0], .to = fd[1]};
	return 0;
}

void run_errors_pass(struct run_errors *e)
{
	char text[4096];
	ssize_t n;

	while ((n = read(e->from, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			e->line[e->n++] = text[i];
			if (text[i] == '\n' || e->n + 1 == sizeof(e->line))
				flush(e);
		}
		/* Questions and progress bars have no newline, and do not wait for one. */
		if (e->n && !may_be_it(e))
			flush(e);
	}
}

void run_errors_close(struct run_errors *e)
{
	run_errors_pass(e);
	flush(e);
	close(e->from);
}
