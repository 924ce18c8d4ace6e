/* Runs a fuzz target over files, so that the corpus is a regression test that
 * needs no special compiler. Arguments: files, or directories of them. */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *buf = NULL;
	struct stat st;
	size_t n;

	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		return -1;
	}
	buf = malloc((size_t)st.st_size + 1);
	HOLDS(buf);
	n = fread(buf, 1, (size_t)st.st_size, f);
	fclose(f);
	if (n != (size_t)st.st_size) {
		fprintf(stderr, "%s: read %zu of %zu bytes\n", path, n, (size_t)st.st_size);
		free(buf);
		return -1;
	}
	LLVMFuzzerTestOneInput(buf, n);
	free(buf);
	return 1;
}

/* Returns the number of files run, or -1. */
static int replay(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int count = 0;

	if (!dir)
		return replay_file(path);
	while (count >= 0 && (e = readdir(dir))) {
		char file[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		count = replay_file(file) < 0 ? -1 : count + 1;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);

		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs\n", total);
	return total ? 0 : 1; /* an empty corpus proves nothing */
}
