/* A server: each connection gets a process, which plays as many peers as it is asked for. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fan_hosts.h"

#define FIRST_MS (600 * 1000) /* how long one waits for the first connection */

/* Does not return. */
static void serve_one(const struct fan_opts *o, struct bench_ctl *ctl, unsigned int nth,
		      pid_t parent)
{
	struct bench_env env = {.role = BENCH_SERVER,
				.ctl = *ctl,
				.dev_name = o->dev,
				.ib_port = o->ib_port,
				.gid_index = o->gid_index};
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fan_pin(o, 1 + nth);
	ret = fan_serve(&env);
	/* A root that was killed is nothing to speak of. */
	if (ret && ret != -ECONNRESET)
		fprintf(stderr, "weft bench verbs: serve: %s\n", strerror(-ret));
	bench_dev_close(env.dev);
	bench_ctl_close(&env.ctl);
	fflush(NULL);
	_exit(ret ? 1 : 0);
}

static unsigned int reap(unsigned int running)
{
	while (running && waitpid(-1, NULL, WNOHANG) > 0)
		running--;
	return running;
}

static int tell_port(int listener, int ready)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	if (getsockname(listener, (struct sockaddr *)&sin, &len))
		return -errno;
	if (dprintf(ready, "%u\n", ntohs(sin.sin_port)) < 0)
		return -EIO;
	close(ready);
	return 0;
}

/* Accepts until the last connection is closed; waits for the first one for a while. */
static int accept_all(const struct fan_opts *o, int listener)
{
	unsigned int running = 0, nth = 0;
	pid_t self = getpid();
	int waited = 0;

	for (;;) {
		struct bench_ctl ctl = {.fd = -1};
		int ret = running < FAN_MAX_PROCS ? bench_ctl_accept(&ctl, listener, 200)
						  : (usleep(200000), -ETIMEDOUT);

		running = reap(running);
		if (ret == -ETIMEDOUT) {
			waited += 200;
			if (o->keep || running)
				continue;
			if (nth)
				return 0;
			if (waited > FIRST_MS)
				return ret;
			continue;
		}
		if (ret)
			continue; /* somebody who went away at once */

		pid_t child = fork();

		if (!child) {
			close(listener);
			serve_one(o, &ctl, nth, self);
		}
		running += child > 0;
		nth++;
		bench_ctl_close(&ctl);
	}
}

int fan_server(const struct fan_opts *o, int ready)
{
	int listener = bench_ctl_listen(o->bind, o->port), ret;

	if (listener < 0) {
		fprintf(stderr, "weft bench verbs: cannot listen on port %d: %s\n", o->port,
			strerror(-listener));
		return listener;
	}
	ret = ready >= 0 ? tell_port(listener, ready) : 0;
	if (!ret)
		ret = accept_all(o, listener);
	close(listener);
	return ret;
}
