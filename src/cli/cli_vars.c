#include "cli_vars.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_paths.h"
#include "util_tune.h"

static void set(struct cli_vars *vars, const char *name, char *value)
{
	if (!value)
		abort(); /* out of memory before anything was done */
	for (int i = 0; i < vars->n; i++) {
		if (strcmp(vars->var[i].name, name) != 0)
			continue;
		free(vars->var[i].value); /* the last option wins */
		vars->var[i].value = value;
		return;
	}
	assert(vars->n < CLI_VARS_MAX);
	vars->var[vars->n].name = name;
	vars->var[vars->n++].value = value;
}

static bool is_addr_list(const char *list)
{
	char one[INET_ADDRSTRLEN];
	struct in_addr addr;

	for (;;) {
		size_t len = strcspn(list, ",");

		if (len >= sizeof(one))
			return false;
		memcpy(one, list, len);
		one[len] = '\0';
		if (inet_pton(AF_INET, one, &addr) != 1)
			return false;
		if (!list[len])
			return true;
		list += len + 1;
	}
}

int cli_vars_option(struct cli_vars *vars, int opt, const char *arg)
{
	const struct util_tunable *log = &util_tunables[UTIL_TUNE_LOG];
	struct util_tune_value v;
	char why[256];

	switch (opt) {
	case 'a':
		if (!is_addr_list(arg)) {
			cli_error("--addr %s is not understood; expected an IPv4 address like "
				  "192.0.2.1, or several with commas between them",
				  arg);
			return -1;
		}
		set(vars, "WEFT_ADDR", strdup(arg));
		return 0;
	case 'n':
		if (!if_nametoindex(arg)) {
			cli_error(
				"--netdev %s: no such network interface; 'ip -br addr' lists them",
				arg);
			return -1;
		}
		set(vars, "WEFT_NETDEV", strdup(arg));
		return 0;
	default:
		if (util_tune_parse(log, arg, &v, why, sizeof(why))) {
			cli_error("--log %s is not understood; expected one of %s", arg,
				  log->choices);
			return -1;
		}
		set(vars, log->name, strdup(arg));
		return 0;
	}
}

/* `first`, then what is in `list` without any of `first`'s own entries. */
static char *prepend(const char *const *first, const char *list, const char *separators)
{
	size_t size = list ? strlen(list) + 2 : 2;
	char *out, *end;

	for (const char *const *f = first; *f; f++)
		size += strlen(*f) + 1;
	out = malloc(size);
	if (!out)
		return NULL;
	end = out;
	for (const char *const *f = first; *f; f++)
		end += sprintf(end, "%s%s", f == first ? "" : ":", *f);
	/* An empty entry stays: in LD_LIBRARY_PATH it means the current directory. */
	for (list = list && *list ? list : NULL; list;) {
		size_t len = strcspn(list, separators);
		bool known = false;

		for (const char *const *f = first; *f && !known; f++)
			known = strlen(*f) == len && !strncmp(*f, list, len);
		if (!known)
			end += sprintf(end, ":%.*s", (int)len, list);
		list = list[len] ? list + len + 1 : NULL;
	}
	return out;
}

int cli_vars_loader(struct cli_vars *vars)
{
	static struct cli_paths paths;
	const char *theirs = getenv("ASAN_OPTIONS");
	char *asan = NULL;
	int ret = cli_paths_find(&paths);

	if (ret) {
		cli_paths_complain(ret);
		return -1;
	}
	if (strpbrk(paths.dir, " :;")) {
		cli_error("its libraries are in '%s', and the loader can not preload from a path "
			  "with a blank, a colon or a semicolon; move Weft elsewhere",
			  paths.dir);
		return -1;
	}
	set(vars, "LD_PRELOAD",
	    prepend((const char *const[]){paths.verbs, paths.probe, NULL}, getenv("LD_PRELOAD"),
		    " :"));
	/* For those who dlopen libibverbs.so.1 in a fresh namespace, or start programs
	 * that drop LD_PRELOAD. */
	/* A program that carries AddressSanitizer refuses to start behind any preloaded
	 * library. Only such programs read this; what the user says comes after it. */
	if (asprintf(&asan, "verify_asan_link_order=0%s%s", theirs ? ":" : "",
		     theirs ? theirs : "") < 0)
		asan = NULL;
	if (!theirs || !strstr(theirs, "verify_asan_link_order"))
		set(vars, "ASAN_OPTIONS", asan);
	else
		free(asan);
	/* Where libfabric looks for providers, instead of its own place. */
	if (paths.ofi[0])
		set(vars, "FI_PROVIDER_PATH",
		    prepend((const char *const[]){paths.dir, NULL}, getenv("FI_PROVIDER_PATH"),
			    ":"));
	set(vars, "LD_LIBRARY_PATH",
	    prepend((const char *const[]){paths.dir, NULL}, getenv("LD_LIBRARY_PATH"), ":;"));
	return 0;
}

static void print_quoted(const char *s, FILE *to)
{
	fputc('\'', to);
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", to);
		else
			fputc(*s, to);
	}
	fputc('\'', to);
}

void cli_vars_print(const struct cli_vars *vars, FILE *to)
{
	for (int i = 0; i < vars->n; i++) {
		fprintf(to, "export %s=", vars->var[i].name);
		print_quoted(vars->var[i].value, to);
		fputc('\n', to);
	}
}

int cli_vars_apply(const struct cli_vars *vars)
{
	for (int i = 0; i < vars->n; i++)
		if (setenv(vars->var[i].name, vars->var[i].value, 1))
			return -errno;
	return 0;
}

void cli_vars_free(struct cli_vars *vars)
{
	for (int i = 0; i < vars->n; i++)
		free(vars->var[i].value);
	vars->n = 0;
}
