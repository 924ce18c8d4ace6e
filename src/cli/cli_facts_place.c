/* What was measured on. */
#include "cli_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli_output.h"

static void add_text(json_t *to, const char *name, const char *text)
{
	json_object_set_new(to, name, cli_json_text(text));
}

json_t *cli_facts_place(const char *weft)
{
	json_t *e = json_object(), *mpis = cli_facts_mpis(), *mpi;
	struct utsname un;
	char text[160], when[32], line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");
	time_t now = time(NULL);
	double load[3] = {0};
	size_t i;

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime(&now));
	add_text(e, "when", when);
	add_text(e, "weft", weft);
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');

		if (!colon)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		add_text(e, "processor", colon + 2);
		break;
	}
	if (f)
		fclose(f);
	uname(&un);
	getloadavg(load, 3);
	snprintf(text, sizeof(text), "%ld, load %.1f", sysconf(_SC_NPROCESSORS_ONLN), load[0]);
	add_text(e, "cores", text);
	snprintf(text, sizeof(text), "%.60s %.60s", un.release, un.machine);
	add_text(e, "Linux", text);
	json_array_foreach (mpis, i, mpi) {
		const char *name = json_string_value(json_object_get(mpi, "name"));
		const char *version = json_string_value(json_object_get(mpi, "version"));

		if (name && version)
			add_text(e, name, version);
	}
	json_decref(mpis);
	return e;
}
