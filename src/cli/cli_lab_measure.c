/* The load of all cables over some time. */
#include "cli_lab.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli.h"
#include "util_clock.h"

int cli_lab_measure_open(struct cli_lab_measure *m, const struct lab *lab, struct lab_error *e)
{
	int ret;

	memset(m, 0, sizeof(*m));
	m->lab = lab;
	m->holder = (int)syscall(SYS_pidfd_open, lab->holder, 0);
	m->cables = fabric_cables(&lab->spec.tree);
	m->before = calloc(m->cables, sizeof(*m->before));
	m->now = calloc(m->cables, sizeof(*m->now));
	if (!m->before || !m->now)
		ret = lab_fail(e, ENOMEM, "out of memory");
	else
		ret = lab_watch_open(&m->watch, lab, e);
	if (!ret)
		ret = cli_lab_measure_look(m, e);
	if (ret)
		cli_lab_measure_close(m);
	return ret;
}

/* A kernel without pidfds can not tell; then the counters just stand still. */
static bool gone(const struct cli_lab_measure *m)
{
	struct pollfd p = {.fd = m->holder, .events = POLLIN};

	return m->holder >= 0 && poll(&p, 1, 0) == 1;
}

int cli_lab_measure_look(struct cli_lab_measure *m, struct lab_error *e)
{
	struct lab_load *swap = m->before;
	uint64_t at = util_now_ns();

	if (gone(m))
		return lab_fail(e, ESRCH, "lab %s is gone", m->lab->spec.name);
	m->before = m->now;
	m->now = swap;
	m->seconds = (double)(at - m->at) / UTIL_NS_PER_S;
	m->at = at;
	return lab_watch_sample(m->watch, m->now, e);
}

void cli_lab_measure_close(struct cli_lab_measure *m)
{
	if (m->watch)
		lab_watch_close(m->watch);
	if (m->holder >= 0)
		close(m->holder);
	free(m->before);
	free(m->now);
	memset(m, 0, sizeof(*m));
	m->holder = -1;
}

int cli_lab_measure_once(struct cli_lab_measure *m, const struct lab *lab, uint64_t interval)
{
	struct timespec ts = {.tv_sec = (time_t)(interval / UTIL_NS_PER_S),
			      .tv_nsec = (long)(interval % UTIL_NS_PER_S)};
	struct lab_error e;

	if (cli_lab_measure_open(m, lab, &e))
		return cli_error("%s", e.text);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	if (!cli_lab_measure_look(m, &e))
		return CLI_OK;
	cli_error("%s", e.text);
	cli_lab_measure_close(m);
	return CLI_FAILED;
}

/* Counters begin anew when an interface or queue does. */
uint64_t cli_lab_since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

double cli_lab_mbit(const struct cli_lab_measure *m, uint32_t cable, bool up)
{
	const struct lab_load *a = &m->before[cable], *b = &m->now[cable];
	uint64_t bytes = up ? cli_lab_since(b->up.bytes, a->up.bytes)
			    : cli_lab_since(b->down.bytes, a->down.bytes);

	return m->seconds > 0 ? (double)bytes * 8e-6 / m->seconds : 0;
}
