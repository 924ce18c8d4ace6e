/* Becoming another program, and asking one. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cli_become(char **argv)
{
	int err;

	execvp(argv[0], argv);
	err = errno;
	/* execve(2) also says ENOENT for a script whose interpreter is missing. */
	if (err == ENOENT && strchr(argv[0], '/') && !access(argv[0], F_OK)) {
		cli_error("cannot execute '%s': its interpreter was not found", argv[0]);
		return CLI_NOT_EXECUTABLE;
	}
	if (err == ENOENT) {
		cli_error("program '%s' was not found%s", argv[0],
			  strchr(argv[0], '/') ? "" : " in PATH");
		return CLI_NOT_FOUND;
	}
	cli_error("cannot execute '%s': %s", argv[0], strerror(err));
	return CLI_NOT_EXECUTABLE;
}

static void become_quietly(char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

void cli_each_line(char *const *argv, void (*fn)(char *line, void *arg), void *arg)
{
	char *line = NULL;
	size_t size = 0;
	int fd[2];
	pid_t child;
	FILE *from;

	if (pipe2(fd, O_CLOEXEC))
		return;
	child = fork();
	if (!child)
		become_quietly(argv, fd[1]);
	close(fd[1]);
	from = fdopen(fd[0], "r");
	while (child > 0 && from && getline(&line, &size, from) > 0)
		fn(line, arg);
	free(line);
	if (from)
		fclose(from);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}
