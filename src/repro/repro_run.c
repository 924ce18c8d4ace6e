/* Runs experiments: their commands in turn, round by round. */
#include "repro.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MAX (16 << 20)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((format(printf, 2, 3))) void say(const struct repro_options *o,
						      const char *fmt, ...)
{
	va_list ap;

	if (o->quiet)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

/* ---- what has to be there ---- */

static bool is_there(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

const char *repro_missing(const struct repro_options *o, const struct repro_experiment *x)
{
	if ((x->needs & REPRO_LAB) && o->alone)
		return "network namespaces are not allowed here, so there are no labs";
	if ((x->needs & REPRO_OPENMPI) && !is_there(o->bin, "weft-mpi-perf.openmpi"))
		return "Open MPI is missing: apt-get install openmpi-bin libopenmpi-dev, then "
		       "build "
		       "again";
	if ((x->needs & REPRO_PROVIDER) && !is_there(o->bin, "../lib/libweft-fi.so") &&
	    !is_there(o->bin, "../lib/weft/libweft-fi.so"))
		return "libfabric is missing: apt-get install libfabric-dev, then build again";
	if ((x->needs & REPRO_COLL) && !is_there(o->bin, "../lib/libweft-coll.openmpi.so") &&
	    !is_there(o->bin, "../lib/weft/libweft-coll.openmpi.so"))
		return "libweft-coll for Open MPI is missing: build again with Open MPI and "
		       "libfabric";
	if ((x->needs & REPRO_FFT) && !is_there(o->bin, "../tests/coll/openmpi/fft"))
		return "examples/fft.c is not built: it is there in a build tree only";
	return NULL;
}

/* ---- one command ---- */

struct output {
	char *text;
	size_t len;
	char error[256]; /* the end of standard error */
};

static __attribute__((noreturn)) void be_shell(const char *command, int out, int err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* As much as there is; false at its end. */
static bool gather(int fd, struct output *o)
{
	char part[4096];
	ssize_t n = read(fd, part, sizeof(part));
	char *more;

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	if (o->len + (size_t)n > OUTPUT_MAX)
		return true; /* what is too long is no JSON then */
	more = realloc(o->text, o->len + (size_t)n + 1);
	if (!more)
		return false;
	o->text = more;
	memcpy(o->text + o->len, part, (size_t)n);
	o->len += (size_t)n;
	o->text[o->len] = '\0';
	return true;
}

static void gather_error(int fd, struct output *o)
{
	char part[2048];
	ssize_t n = read(fd, part, sizeof(part) - 1);
	size_t keep;

	if (n <= 0)
		return;
	keep = (size_t)n < sizeof(o->error) - 1 ? (size_t)n : sizeof(o->error) - 1;
	memcpy(o->error, part + (size_t)n - keep, keep);
	o->error[keep] = '\0';
}

/* Until the shell has ended: what it left in the background may have the pipe open for longer.
 * Returns its status, or -ETIMEDOUT. */
static int attend(pid_t pid, int out, int err, double until, struct output *o)
{
	struct pollfd p[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	int status;

	for (;;) {
		bool ended = waitpid(pid, &status, WNOHANG) == pid;

		while (poll(p, 2, ended ? 0 : 20) > 0) {
			if (p[1].revents & (POLLIN | POLLHUP))
				gather_error(err, o);
			if (p[1].revents & POLLHUP)
				p[1].fd = -1;
			if ((p[0].revents & (POLLIN | POLLHUP)) && !gather(out, o))
				p[0].fd = -1;
			/* Somebody in the background may write for ever. */
			if (now() > until || (!ended && p[0].fd < 0))
				break;
		}
		if (ended)
			return status;
		if (now() > until)
			return -ETIMEDOUT;
		if (p[0].fd < 0)
			usleep(5000);
	}
}

/* 0, or -errno with why. */
static int run_command(const char *command, double seconds, struct output *o, char why[400])
{
	int out[2], err[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return -EMFILE;
	}
	fflush(NULL);
	pid = fork();
	if (!pid)
		be_shell(command, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	status = pid < 0 ? -errno : attend(pid, out[0], err[0], now() + seconds, o);
	/* Also what it has left in the background. */
	if (pid > 0)
		kill(-pid, SIGKILL);
	close(out[0]);
	close(err[0]);
	o->error[strcspn(o->error, "\n")] = '\0';
	if (status == -ETIMEDOUT)
		snprintf(why, 400, "took more than %.0f s", seconds);
	else if (status)
		snprintf(why, 400, "failed (%d): %s",
			 status < 0          ? -status
			 : WIFEXITED(status) ? WEXITSTATUS(status)
					     : -1,
			 o->error);
	return status == -ETIMEDOUT ? status : status ? -EIO : 0;
}

/* ---- rounds ---- */

/* What one command may take: nobody waits for ever, but a machine may be slow. */
static double limit_of(const struct repro_experiment *x, enum repro_mode mode)
{
	size_t steps = 0;

	for (const struct repro_step *s = x->steps; s->command; s++)
		steps++;
	return 30 + 4.0 * x->seconds[mode] / (double)(x->rounds[mode] * (steps ? steps : 1));
}

static void note_failure(struct repro_result *r, const char *label, const char *why)
{
	if (!r->failure[0])
		snprintf(r->failure, sizeof(r->failure), "%.60s%s%.400s", label, *label ? ": " : "",
			 why);
}

static int run_step(const struct repro_options *o, const struct repro_experiment *x,
		    const struct repro_step *s, double until, struct repro_result *r)
{
	char *command = repro_command(s->command, o->mode);
	struct output out = {0};
	char why[400] = "", what[160] = "";
	double seconds = fmin(limit_of(x, o->mode), until - now());
	int ret = command ? run_command(command, seconds, &out, why) : -ENOMEM;

	if (!ret && repro_take(s, out.text ? out.text : "", out.len, &r->data[r->rounds], what) < 0)
		snprintf(why, sizeof(why), "%s", what);
	if (why[0])
		note_failure(r, s->label, why);
	free(out.text);
	free(command);
	return ret;
}

static int set_up(const struct repro_options *o, const struct repro_experiment *x, double until,
		  struct repro_result *r)
{
	struct output out = {0};
	char why[400] = "", *command;
	int ret = 0;

	if (!x->setup)
		return 0;
	command = repro_command(x->setup, o->mode);
	ret = command ? run_command(command, fmin(60, until - now()), &out, why) : -ENOMEM;
	if (ret)
		note_failure(r, "preparation", why);
	free(out.text);
	free(command);
	return ret;
}

static void set_round(size_t round)
{
	char text[16];

	snprintf(text, sizeof(text), "%zu", round);
	setenv("ROUND", text, 1);
}

/* One round; -ETIMEDOUT if it had to be given up. */
static int run_round(const struct repro_options *o, const struct repro_experiment *x, double until,
		     struct repro_result *r)
{
	int ret = 0;

	set_round(r->rounds + 1);
	for (const struct repro_step *s = x->steps; s->command && ret != -ETIMEDOUT; s++)
		ret = run_step(o, x, s, until, r);
	r->rounds++;
	return ret == -ETIMEDOUT ? ret : 0;
}

/* Also what is not measured says why. */
static bool time_is_over(double start, double until, size_t wanted, struct repro_result *r)
{
	char why[120];

	if (now() < until)
		return false;
	snprintf(why, sizeof(why), "its time, %.0f s, was over in round %zu of %zu", until - start,
		 r->rounds + 1, wanted);
	note_failure(r, "", why);
	return true;
}

static int run_one(const struct repro_options *o, const struct repro_experiment *x, double budget,
		   struct repro_result *r)
{
	size_t wanted = x->rounds[o->mode];
	double start = now(), before = r->seconds, until = start + budget;
	int ret = set_up(o, x, until, r);

	while (!ret && r->rounds < wanted) {
		if (time_is_over(start, until, wanted, r)) {
			ret = -ETIMEDOUT;
			r->complete = true;
			repro_store(o, x, r);
			break;
		}
		say(o, "\r  %-22s round %zu of %zu ", x->name, r->rounds + 1, wanted);
		ret = run_round(o, x, until, r);
		r->seconds = before + now() - start;
		r->complete = ret || r->rounds >= wanted;
		if (repro_store(o, x, r))
			note_failure(r, x->name, "the result can not be written");
	}
	if (ret && !r->rounds) {
		r->complete = true;
		repro_store(o, x, r);
	}
	/* Labs, and whatever did not end by itself. */
	repro_sweep();
	say(o, "%6.1f s%s%.200s\n", r->seconds, r->failure[0] ? "  " : "", r->failure);
	return r->failure[0] ? -EIO : 0;
}

static double left(const struct repro_options *o, const struct repro_experiment *const *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i]->seconds[o->mode];
	return sum;
}

static double weights(const struct repro_options *o, const struct repro_experiment *const *x,
		      size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += repro_weight(x[i]->seconds[o->mode]);
	return sum;
}

static int prepare(const struct repro_options *o)
{
	const char *path = getenv("PATH");
	char *with;
	int ret;

	if (asprintf(&with, "%s:%s", o->bin, path ? path : "/usr/bin:/bin") < 0)
		return -ENOMEM;
	ret = setenv("PATH", with, 1) ? -errno : 0;
	free(with);
	setenv("WEFT_BUILD_BIN", o->bin, 1);
	setenv("LC_ALL", "C", 1);
	/* May be set for other measurements. */
	unsetenv("WEFT_RD_SHM");
	unsetenv("WEFT_COLL");
	unsetenv("FI_WEFT_STRIPING");
	return ret;
}

int repro_run(const struct repro_options *o, const struct repro_experiment *const *x, size_t n)
{
	struct repro_result *r = calloc(1, sizeof(*r));
	double end = o->seconds > 0 ? now() + o->seconds : INFINITY;
	int failed = 0;

	if (!r || prepare(o)) {
		free(r);
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		bool had = o->resume && !repro_load(o, x[i], r);

		if (!had)
			memset(r, 0, sizeof(*r));
		if (had && r->complete) {
			say(o, "  %-22s there already\n", x[i]->name);
			repro_drop(r);
			continue;
		}
		if (i && i % 5 == 0)
			say(o, "  %zu of %zu; about %.0f minutes left\n", i, n,
			    left(o, x + i, n - i) / 60 + 0.5);
		r->failure[0] = '\0';
		failed += run_one(o, x[i],
				  repro_budget(end - now(), x[i]->seconds[o->mode],
					       weights(o, x + i, n - i)),
				  r) != 0;
		repro_drop(r);
	}
	free(r);
	return failed;
}
