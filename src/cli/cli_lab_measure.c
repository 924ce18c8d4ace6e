/* The load of all cables over some time. */
#include "cli_lab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "util_clock.h"

int cli_lab_measure_open(struct cli_lab_measure *m, const struct lab *lab, struct lab_error *e)
{
	int ret;

	memset(m, 0, sizeof(*m));
	m->lab = lab;
	m->cables = fabric_cables(&lab->spec.tree);
	m->now = calloc(m->cables, sizeof(*m->now));
	if (!m->now)
		ret = lab_fail(e, ENOMEM, "out of memory");
	else
		ret = lab_watch_open(&m->watch, lab, e);
	if (!ret)
		ret = cli_lab_measure_look(m, e);
	if (ret)
		cli_lab_measure_close(m);
	return ret;
}

int cli_lab_measure_look(struct cli_lab_measure *m, struct lab_error *e)
{
	return lab_watch_sample(m->watch, m->now, &m->seconds, e);
}

void cli_lab_measure_close(struct cli_lab_measure *m)
{
	if (m->watch)
		lab_watch_close(m->watch);
	free(m->now);
	memset(m, 0, sizeof(*m));
}

void cli_lab_wait(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / UTIL_NS_PER_S),
			      .tv_nsec = (long)(ns % UTIL_NS_PER_S)};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

int cli_lab_measure_once(struct cli_lab_measure *m, const struct lab *lab, uint64_t interval)
{
	struct lab_error e;

	if (cli_lab_measure_open(m, lab, &e))
		return cli_error("%s", e.text);
	cli_lab_wait(interval);
	if (!cli_lab_measure_look(m, &e))
		return CLI_OK;
	cli_error("%s", e.text);
	cli_lab_measure_close(m);
	return CLI_FAILED;
}
