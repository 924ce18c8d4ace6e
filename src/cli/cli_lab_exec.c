/* weft lab exec: a command on a host of a lab. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_lab.h"

static const char help[] =
	"Usage: weft lab exec NAME HOST [--] [COMMAND [ARGUMENTS]]\n"
	"\n"
	"Runs a command on a host or switch of a lab: it sees that node's network and host\n"
	"name, and otherwise the files and the user of the machine. Without COMMAND it is\n"
	"your shell. HOST is h3, s1.0, fat-h3 or an address.\n"
	"\n"
	"Options (before NAME):\n"
	"  -h, --help  this text\n"
	"\n"
	"Examples:\n"
	"  weft lab exec fat h0                           a shell on h0\n"
	"  weft lab exec fat h0 -- ping -c 3 fat-h12\n"
	"  weft lab exec fat s1.0 -- ip route             the table of a leaf switch\n"
	"  weft lab exec fat h12 -- iperf3 -s -1 &\n"
	"  weft lab exec fat h0 -- iperf3 -c fat-h12\n"
	"\n"
	"Exit codes: that of COMMAND, 128 + n when signal n killed it; 127 when it is not\n"
	"found, 126 when it can not be executed, 2 for wrong usage or no such lab or host.\n";

/* What follows NAME and HOST; NULL after a complaint. */
static char **command_of(char **rest)
{
	static char *shell[2];

	if (*rest && !strcmp(*rest, "--"))
		rest++;
	else if (*rest && (*rest)[0] == '-') {
		cli_error("'%s' is in the place of a command; options come first, and a command "
			  "that begins with '-' comes after '--'",
			  *rest);
		cli_try_help();
		return NULL;
	}
	if (*rest)
		return rest;
	shell[0] = getenv("SHELL");
	if (!shell[0] || !shell[0][0])
		shell[0] = "/bin/sh";
	return shell;
}

/* A shell on the host has made its own process group the terminal's foreground one, and its
 * end does not give the terminal back. */
static void take_terminal_back(pid_t group)
{
	if (group <= 0)
		return;
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(STDIN_FILENO, group);
}

/* Waits for the child, with signals blocked, so that none is missed. Interrupts from the
 * terminal reach the child by themselves; a wish to end that was meant for us is passed on. */
static int wait_for(pid_t child, const sigset_t *signals)
{
	int status, sig;

	for (;;) {
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child && WIFEXITED(status))
			return WEXITSTATUS(status);
		if (got == child && WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (got < 0 && errno != EINTR)
			return cli_error("lost the command: %s", strerror(errno));
		sig = sigwaitinfo(signals, NULL);
		if (sig == SIGTERM || sig == SIGHUP)
			kill(child, sig);
	}
}

static int run(const struct lab *lab, struct fabric_node n, char **command)
{
	pid_t group = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1, child;
	sigset_t signals, old;
	struct lab_error e;
	int code;

	if (group != getpgrp())
		group = -1;
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGQUIT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &old);
	child = lab_fork(lab, n, &e);
	if (child < 0)
		return cli_error("%s", e.text);
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		_exit(cli_become(command));
	}
	code = wait_for(child, &signals);
	take_terminal_back(group);
	return code;
}

int cli_lab_exec(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct fabric_node n;
	struct lab_error e;
	struct lab lab;
	char **command;
	uint32_t address;
	int opt, code;

	/* '+': what follows belongs to COMMAND. */
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt != 'h')
			return cli_try_help();
		fputs(help, stdout);
		return cli_finish(CLI_OK);
	}
	if (argc - optind < 2) {
		cli_error("which %shost? For example: weft lab exec %s h0",
			  optind == argc ? "lab, and which " : "",
			  optind == argc ? "fat" : argv[optind]);
		return cli_try_help();
	}
	command = command_of(argv + optind + 2);
	if (!command)
		return CLI_USAGE;
	code = cli_lab_open(&lab, argv[optind]);
	if (code)
		return code;
	if (lab_find_node(&lab.spec, argv[optind + 1], &n, &address, &e))
		return cli_error("%s", e.text);
	return run(&lab, n, command);
}
