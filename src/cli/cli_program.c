/* Becoming another program. */
#include "cli.h"

#include <errno.h>
#include <string.h>
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
