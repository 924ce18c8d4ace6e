/* Which MPI a program is linked to, and where that MPI's launcher is. */
#include "cli_run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

const struct run_mpi_kind run_mpi_kinds[RUN_MPIS] = {
	[RUN_OPENMPI] = {"openmpi", "Open MPI", "openmpi-bin", "libopenmpi-dev"},
	[RUN_MPICH] = {"mpich", "MPICH", "mpich", "libmpich-dev"},
};

/* ---- programs ---- */

static bool is_program(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* As execvp(3) looks for it. */
static bool find_in_path(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");

	while (dirs && *dirs) {
		int len = (int)strcspn(dirs, ":");

		/* An empty entry is the current directory. */
		snprintf(path, PATH_MAX, "%.*s%s%s", len, dirs, len ? "/" : "./", name);
		if (is_program(path))
			return true;
		dirs += len + (dirs[len] != '\0');
	}
	return false;
}

int run_find_program(const char *program, char path[PATH_MAX])
{
	if (!strchr(program, '/')) {
		if (find_in_path(program, path))
			return 0;
		cli_error("program '%s' was not found in PATH", program);
		return CLI_NOT_FOUND;
	}
	snprintf(path, PATH_MAX, "%s", program);
	if (is_program(path))
		return 0;
	if (access(path, F_OK)) {
		cli_error("program '%s' was not found", program);
		return CLI_NOT_FOUND;
	}
	cli_error("cannot execute '%s': it is not an executable file", program);
	return CLI_NOT_EXECUTABLE;
}

/* ---- linkage ---- */

/* The loader that a dynamically linked program of this machine's kind asks for. */
static bool find_loader(const char *path, char loader[PATH_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	if (fd < 0)
		return false;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part) ||
	    head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		head.e_phnum = 0;
	for (int i = 0; i < head.e_phnum && !found; i++) {
		off_t at = (off_t)(head.e_phoff + (size_t)i * sizeof(part));

		if (pread(fd, &part, sizeof(part), at) != sizeof(part))
			break;
		if (part.p_type != PT_INTERP || part.p_filesz < 2 || part.p_filesz >= PATH_MAX)
			continue;
		found = pread(fd, loader, part.p_filesz, (off_t)part.p_offset) ==
			(ssize_t)part.p_filesz;
		loader[part.p_filesz] = '\0';
	}
	close(fd);
	return found;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The MPI that a shared library belongs to, by its name; or RUN_MPIS. libmpi.so.12 is the
 * name that MPICH and its relatives have agreed on; Open MPI's has had other numbers since
 * 2015 (40 now). */
static enum run_mpi mpi_of(const char *soname)
{
	if (begins(soname, "libmpich.so.") || begins(soname, "libmpi.so.12") ||
	    begins(soname, "libmpich-") || begins(soname, "libmpichfort.so."))
		return RUN_MPICH;
	if (begins(soname, "libmpi.so.") || begins(soname, "libmpi_mpifh.so.") ||
	    begins(soname, "libopen-rte.so."))
		return RUN_OPENMPI;
	return RUN_MPIS;
}

/* "\tlibmpi.so.40 => /lib/libmpi.so.40 (0x7f…)", or "=> not found", or a path alone. */
static void read_library(char *line, void *arg)
{
	struct run_linkage *l = arg;
	char *save = NULL, *name = strtok_r(line, " \t\n", &save);
	char *arrow = name ? strtok_r(NULL, " \t\n", &save) : NULL;
	char *path = arrow && !strcmp(arrow, "=>") ? strtok_r(NULL, "\t\n", &save) : name;
	char *end = path ? strstr(path, " (0x") : NULL;
	enum run_mpi mpi;

	if (!name)
		return;
	if (end)
		*end = '\0';
	mpi = mpi_of(strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	if (mpi == RUN_MPIS)
		return;
	l->to[mpi] = true;
	if (path && path[0] == '/' && !l->library[mpi][0])
		snprintf(l->library[mpi], PATH_MAX, "%s", path);
}

/* The loader is asked, as ldd(1) does, but started by its own name: then it can not happen
 * that the program runs, whatever it is. */
void run_linkage(const char *path, struct run_linkage *l)
{
	char loader[PATH_MAX];

	memset(l, 0, sizeof(*l));
	if (find_loader(path, loader))
		cli_each_line((char *[]){loader, "--list", (char *)path, NULL}, read_library, l);
}

/* ---- launchers ---- */

static const char *const launchers[RUN_MPIS][8] = {
	[RUN_OPENMPI] = {"mpirun.openmpi", "orterun", "mpirun", "mpiexec"},
	[RUN_MPICH] = {"mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpirun", "mpiexec"},
};

/* mpirun, mpiexec: everybody's launcher is called so. They differ in what they say. */
static void read_version(char *line, void *arg)
{
	bool *is = arg;

	/* Under another name than mpirun, Open MPI's presents itself as OpenRTE. */
	is[RUN_OPENMPI] |= strstr(line, "(Open MPI)") || strstr(line, "(OpenRTE)");
	is[RUN_MPICH] |= strstr(line, "HYDRA") != NULL;
}

static bool is_launcher(enum run_mpi mpi, const char *path)
{
	bool is[RUN_MPIS] = {false};

	if (is_program(path))
		cli_each_line((char *[]){(char *)path, "--version", NULL}, read_version, is);
	return is[mpi];
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* In bin/ beside one of the directories that the library is in: with two installations of one
 * MPI, this is the launcher that fits. Of prefix/lib/x86_64-linux-gnu/openmpi/lib that is
 * the fourth. Open MPI's takes being started by a path as a wish to have that prefix in
 * front of everything on all hosts, so it is started by name where that does the same. */
static bool find_beside(enum run_mpi mpi, const char *library, char launcher[PATH_MAX])
{
	char *real = realpath(library, NULL);
	char *dir = real;
	char path[PATH_MAX];

	for (int up = 0; dir && up < 5; up++) {
		dir = dirname(dir);
		if (!strcmp(dir, "/"))
			break;
		for (const char *const *name = launchers[mpi]; *name; name++) {
			if (snprintf(launcher, PATH_MAX, "%s/bin/%s", dir, *name) >= PATH_MAX ||
			    !is_launcher(mpi, launcher))
				continue;
			if (find_in_path(*name, path) && same_file(path, launcher))
				snprintf(launcher, PATH_MAX, "%s", *name);
			free(real);
			return true;
		}
	}
	free(real);
	return false;
}

int run_find_launcher(enum run_mpi mpi, const char *library, char launcher[PATH_MAX])
{
	char path[PATH_MAX];

	if (library && library[0] && find_beside(mpi, library, launcher))
		return 0;
	for (const char *const *name = launchers[mpi]; *name; name++) {
		if (!find_in_path(*name, path) || !is_launcher(mpi, path))
			continue;
		snprintf(launcher, PATH_MAX, "%s", *name);
		return 0;
	}
	return -ENOENT;
}
