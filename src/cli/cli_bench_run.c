/* One run of a program that prints JSON.
 *
 * It is a child that gets SIGTERM when we end, by whatever signal: weft run, and the launchers that
 * it becomes, take that for the end of the job and leave nothing behind.
 */
#include "cli_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "util_clock.h"

enum { MOST = 16 << 20, ORDERLY_MS = 30000 };

static volatile sig_atomic_t told;

static void take(int number)
{
	told = number;
}

void bench_run_catch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = take};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &sa, NULL);
}

int bench_run_told(void)
{
	return told;
}

static pid_t start(const struct cli_words *argv, const struct cli_words *env, int out, int err)
{
	pid_t parent = getpid(), child = fork();
	int null;

	if (child)
		return child;
	/* Of its own, so that an interrupt of the terminal reaches it once, through us. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < env->n; i++)
		putenv(env->word[i]);
	null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv(argv->word[0], argv->word);
	_exit(127);
}

/* Its exit status. When the time is over or we were told to end, it is told, and later killed. */
static int wait_for(pid_t child, unsigned int seconds, bool *late)
{
	uint64_t end = util_now_ns() + seconds * UINT64_C(1000000000);
	int next = SIGTERM, status;

	*late = false;
	for (;;) {
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return status;
		if (got < 0 && errno != EINTR)
			return -1;
		if (next && ((told && next == SIGTERM) || util_now_ns() > end)) {
			*late = *late || !told;
			kill(child, next);
			next = next == SIGTERM ? SIGKILL : 0;
			end = util_now_ns() + ORDERLY_MS * UINT64_C(1000000);
		}
		poll(NULL, 0, 20);
	}
}

/* The last lines that it said. */
static void complain(const char *what, int status, bool late, int err)
{
	char text[600];
	off_t size = lseek(err, 0, SEEK_END), from = size > 599 ? size - 599 : 0;
	ssize_t n = pread(err, text, sizeof(text) - 1, from);

	text[n > 0 ? n : 0] = '\0';
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n')
			*c = ' ';
	cli_error("%s: %s (status %d): %s", what, late ? "took too long" : "failed",
		  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text);
}

static json_t *parse(int out, const char *what)
{
	off_t size = lseek(out, 0, SEEK_END);
	json_t *doc = NULL;
	char *text;

	if (size <= 0 || size > MOST || !(text = malloc((size_t)size))) {
		cli_error("%s: printed nothing, or too much", what);
		return NULL;
	}
	if (pread(out, text, (size_t)size, 0) == size)
		doc = json_loadb(text, (size_t)size, 0, NULL);
	if (!doc)
		cli_error("%s: printed something else than JSON", what);
	free(text);
	return doc;
}

json_t *bench_run_json(const struct cli_words *argv, const struct cli_words *env,
		       unsigned int seconds, const char *what)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	json_t *doc = NULL;
	bool late;
	pid_t child = out < 0 || err < 0 ? -1 : start(argv, env, out, err);
	int status = child < 0 ? -1 : wait_for(child, seconds, &late);

	if (child < 0)
		cli_error("%s: cannot be started: %s", what, strerror(errno));
	else if (!status)
		doc = parse(out, what);
	else if (!told)
		complain(what, status, late, err);
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	return doc;
}
