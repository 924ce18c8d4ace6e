#include "cli_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "util_clock.h"

/* Alternate page, no cursor, no wrapping of long lines; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static volatile sig_atomic_t quit, resized, suspended;
static struct termios before;
static bool keys; /* standard input is a terminal, and ours */
static sigset_t outside;

static void on_signal(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else if (sig == SIGTSTP)
		suspended = 1;
	else
		quit = 1;
}

static void enter(void)
{
	struct termios now = before;

	if (keys) {
		now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		now.c_cc[VMIN] = 0;
		now.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &now);
	}
	fputs(ENTER, stdout);
	fflush(stdout);
}

static void leave(void)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Signals are blocked except while waiting, so that none arrives between a look at the
 * flags and the wait. */
int cli_screen_open(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t blocked;

	quit = resized = suspended = 0;
	/* In the background the keys belong to somebody else. */
	keys = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
	       !tcgetattr(STDIN_FILENO, &before);
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		sigaddset(&blocked, ending[i]);
		sigaction(ending[i], &action, NULL);
	}
	sigaddset(&blocked, SIGWINCH);
	sigaddset(&blocked, SIGTSTP);
	sigaction(SIGWINCH, &action, NULL);
	sigaction(SIGTSTP, &action, NULL);
	if (sigprocmask(SIG_BLOCK, &blocked, &outside))
		return -errno;
	enter();
	return 0;
}

void cli_screen_close(void)
{
	leave();
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		signal(ending[i], SIG_DFL);
	signal(SIGWINCH, SIG_DFL);
	signal(SIGTSTP, SIG_DFL);
	sigprocmask(SIG_SETMASK, &outside, NULL);
}

void cli_screen_size(int *columns, int *rows)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		size.ws_col = 0;
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

static bool quit_key(void)
{
	char c[16];
	ssize_t n = read(STDIN_FILENO, c, sizeof(c));

	if (n == 0)
		keys = false; /* hung up: there will be no more */
	for (ssize_t i = 0; i < n; i++)
		if (c[i] == 'q' || c[i] == 'Q')
			return true;
	return false;
}

/* Ctrl-Z: the shell gets its terminal back as it was. */
static void suspend(void)
{
	suspended = 0;
	leave();
	raise(SIGSTOP);
	enter();
}

enum cli_screen_event cli_screen_wait(uint64_t until)
{
	for (;;) {
		struct pollfd p = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
		uint64_t now = util_now_ns(), left = until > now ? until - now : 0;
		struct timespec ts = {.tv_sec = (time_t)(left / UTIL_NS_PER_S),
				      .tv_nsec = (long)(left % UTIL_NS_PER_S)};
		int n = ppoll(&p, 1, &ts, &outside);

		if (quit || (n > 0 && quit_key()))
			return CLI_SCREEN_QUIT;
		if (suspended)
			suspend();
		else if (!resized && n == 0)
			return CLI_SCREEN_TIME;
		else if (!resized)
			continue;
		resized = 0;
		return CLI_SCREEN_DRAW;
	}
}

void cli_screen_show(const char *page)
{
	fputs("\033[H", stdout);
	for (const char *end; (end = strchr(page, '\n')); page = end + 1)
		printf("%.*s\033[K\r\n", (int)(end - page), page);
	fputs("\033[J", stdout);
	fflush(stdout);
}
