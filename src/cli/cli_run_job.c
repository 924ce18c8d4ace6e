/* A launcher on a lab, and the end of all that it has started.
 *
 * The launcher is not a child of the command itself but of a supervisor on the lab, which
 * adopts what others leave behind: daemons that have detached themselves, ranks whose
 * daemon was killed. So it can end them all, when the launcher has ended, when it was told
 * to and takes too long, and when the command that the user sees is gone, in whatever way.
 */
#include "cli_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "cli_lab.h"
#include "util_clock.h"

/* What a launcher gets to end its job in good order when it is told to, and what others get
 * when the launcher has ended. Open MPI's takes about a second for 144 hosts. */
#define ORDERLY_MS  5000
#define STRAGGLE_MS 2000
#define ABRUPT_MS   1000 /* the former, when the command was killed */
/* How long the dead are waited for. A few hundred of them keep a core busy for a second; one
 * that waits for a device that does not answer can not be killed at all. */
#define DEATH_MS 20000

static void signals_of_interest(sigset_t *set)
{
	static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(set, numbers[i]);
}

/* What the terminal sends goes to all processes of the job in the foreground; to pass it on
 * would make two of one, and a launcher that is interrupted twice drops everything. */
static bool is_from_terminal(int code)
{
	return code == SI_KERNEL;
}

/* ---- the supervisor ---- */

struct job {
	pid_t launcher;
	bool ended; /* the launcher */
	int code;
	int told;           /* the signal that was to end it, or 0 */
	int signals, alive; /* descriptors; the second is at its end when the command is gone */
	uint64_t deadline;  /* 0: none */
	struct run_errors errors;
};

static uint64_t now_ms(void)
{
	return util_now_ns() / 1000000;
}

static void set_deadline(struct job *j, uint64_t ms)
{
	if (!j->deadline)
		j->deadline = now_ms() + ms;
}

/* True when there are no children left. */
static bool reap(struct job *j)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != j->launcher)
			continue;
		j->ended = true;
		j->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return pid < 0 && errno == ECHILD;
}

static void tell_launcher(struct job *j, int signal, uint64_t ms)
{
	if (!j->ended)
		kill(j->launcher, signal);
	set_deadline(j, ms);
}

static void take_signal(struct job *j)
{
	struct signalfd_siginfo info;

	if (read(j->signals, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGCHLD)
		return;
	j->told = (int)info.ssi_signo;
	if (is_from_terminal(info.ssi_code))
		set_deadline(j, ORDERLY_MS);
	else
		tell_launcher(j, j->told, ORDERLY_MS);
}

/* Waits for something to happen; false when the time is over. */
static bool wait_for_news(struct job *j)
{
	struct pollfd fds[] = {{.fd = j->signals, .events = POLLIN},
			       {.fd = j->alive},
			       {.fd = j->errors.from, .events = POLLIN}};
	uint64_t now = now_ms();

	if (j->deadline && now >= j->deadline)
		return false;
	if (poll(fds, 3, j->deadline ? (int)(j->deadline - now) : -1) < 0)
		return true;
	if (fds[0].revents)
		take_signal(j);
	if (fds[1].revents) {
		close(j->alive);
		j->alive = -1;
		tell_launcher(j, SIGTERM, ABRUPT_MS);
	}
	if (fds[2].revents)
		run_errors_pass(&j->errors);
	return true;
}

static pid_t parent_of(const char *pid)
{
	char path[64], text[512];
	ssize_t n;
	int fd, parent = -1;
	char *end;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* A program's name, in parentheses, can hold anything. */
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %*c %d", &parent) != 1)
		return -1;
	return parent;
}

/* All processes of the lab, and which of them are ours. */
struct family {
	struct relative {
		pid_t pid, parent;
		bool ours;
	} * all;
	size_t n;
};

static void find_processes(struct family *f)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		struct relative *more;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		more = realloc(f->all, (f->n + 1) * sizeof(*more));
		if (!more)
			break;
		f->all = more;
		f->all[f->n++] = (struct relative){.pid = atoi(entry->d_name),
						   .parent = parent_of(entry->d_name)};
	}
	if (proc)
		closedir(proc);
}

static bool is_ours(const struct family *f, pid_t pid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].pid == pid)
			return f->all[i].ours;
	return false;
}

/* All at once. Whoever was started meanwhile becomes our child when its parent is dead, and
 * is found the next time. */
static void kill_descendants(void)
{
	struct family f = {0};
	bool news = true;

	find_processes(&f);
	while (news) {
		news = false;
		for (size_t i = 0; i < f.n; i++) {
			struct relative *r = &f.all[i];

			if (r->ours || (r->parent != getpid() && !is_ours(&f, r->parent)))
				continue;
			r->ours = news = true;
			kill(r->pid, SIGKILL);
		}
	}
	free(f.all);
}

static void end_all(struct job *j)
{
	uint64_t until = now_ms() + DEATH_MS;

	while (!reap(j) && now_ms() < until) {
		kill_descendants();
		poll(NULL, 0, 20);
	}
}

static int supervise(struct job *j)
{
	bool orderly;

	while (!j->ended && wait_for_news(j))
		reap(j);
	if (j->ended && !j->deadline) {
		set_deadline(j, STRAGGLE_MS);
		while (!reap(j) && wait_for_news(j))
			;
	}
	orderly = j->ended; /* and not by us, in a moment */
	end_all(j);
	run_errors_close(&j->errors);
	/* Hydra calls it a success when it was told to end and did. */
	if (j->told && (!orderly || !j->code))
		return 128 + j->told;
	return j->ended ? j->code : 128 + SIGKILL;
}

/* The child of lab_fork. It dies with its parent, but not before it has done its work. */
static int supervisor(const struct run_line *line, int alive, const sigset_t *old)
{
	struct job j = {.alive = alive};
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signals_of_interest(&set);
	j.signals = signalfd(-1, &set, SFD_CLOEXEC);
	j.launcher = j.signals < 0 || run_errors_open(&j.errors) ? -1 : fork();
	if (j.launcher < 0)
		return cli_error("cannot start the launcher: %s", strerror(errno));
	if (!j.launcher) {
		dup2(j.errors.to, STDERR_FILENO);
		sigprocmask(SIG_SETMASK, old, NULL);
		_exit(run_line_become(line));
	}
	/* Whoever reads our output may be gone with the command. */
	signal(SIGPIPE, SIG_IGN);
	return supervise(&j);
}

/* ---- the command ---- */

static int wait_for(pid_t child, const sigset_t *set)
{
	siginfo_t info;
	int status;

	for (;;) {
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (got < 0)
			return cli_error("lost the job: %s", strerror(errno));
		if (sigwaitinfo(set, &info) > 0 && info.si_signo != SIGCHLD &&
		    !is_from_terminal(info.si_code))
			kill(child, info.si_signo);
	}
}

int run_on_lab(const struct run_line *line, const struct run_places *places)
{
	struct fabric_node first = {.level = 0, .index = places->hosts[0]};
	struct lab_error e;
	sigset_t set, old;
	int alive[2];
	pid_t child;

	if (pipe2(alive, O_CLOEXEC))
		return cli_error("cannot open a pipe: %s", strerror(errno));
	signal(SIGCHLD, SIG_DFL);
	signals_of_interest(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	child = lab_fork(places->lab, first, &e);
	if (child < 0)
		return cli_error("%s", e.text);
	if (!child) {
		close(alive[1]);
		_exit(supervisor(line, alive[0], &old));
	}
	close(alive[0]);
	return wait_for(child, &set);
}

/* ---- on behalf of launchers ---- */

int run_agent(char **words)
{
	const char *lab = getenv("WEFT_LAB");
	struct cli_words line = {0};
	size_t size = 1;
	char *command;
	int code;

	if (!lab || !words[0] || !words[1])
		return cli_error("--agent is for MPI launchers that run on a lab");
	for (char **w = words + 1; *w; w++)
		size += strlen(*w) + 1;
	command = calloc(1, size);
	if (!command)
		abort();
	/* As ssh does: the words make one command line for a shell. */
	for (char **w = words + 1, *end = command; *w; w++)
		end += sprintf(end, "%s%s", w == words + 1 ? "" : " ", *w);
	/* Interrupts of the terminal are the launcher's business. */
	setsid();
	cli_words_add_all(&line, (char *[]){"weft lab exec", (char *)lab, words[0], "--", "/bin/sh",
					    "-c", command, NULL});
	free(command);
	cli_set_command("lab exec");
	optind = 0;
	code = cli_lab_exec((int)line.n, line.word);
	cli_words_free(&line);
	return code;
}
