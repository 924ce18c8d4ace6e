/* A server: each connection gets a process, which plays as many peers as it is asked for. */
#include <arpa/inet.h>
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
#define STRANGER 3            /* exit status: that was no root */

/* Who it was, and what to do about it. */
static void complain(const struct bench_ctl *ctl, int err)
{
	char host[INET_ADDRSTRLEN] = "?";
	const char *what = strerror(-err);

	if (err == -EPROTO)
		what = "what it sent is not understood; is it `weft bench verbs --peers`?";
	else if (err == -EPROTONOSUPPORT)
		what = "it is of another version, and speaks not `" FAN_PROTOCOL
		       "`; use the same Weft on both hosts";
	else if (err == -ETIMEDOUT)
		what = "it was silent for too long, or took nothing that was sent to it";
	inet_ntop(AF_INET, &ctl->peer.sin_addr, host, sizeof(host));
	fprintf(stderr, "weft bench verbs: serve: %s, port %u: %s\n", host,
		ntohs(ctl->peer.sin_port), what);
}

/* Does not return. */
static void serve_one(const struct fan_opts *o, struct bench_ctl *ctl, unsigned int nth,
		      pid_t parent)
{
	struct bench_env env = {.role = BENCH_SERVER,
				.ctl = *ctl,
				.dev_name = o->dev,
				.ib_port = o->ib_port,
				.gid_index = o->gid_index};
	bool known = false;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fan_pin(o, 1 + nth);
	ret = fan_serve(&env, &known);
	/* A root that was killed is nothing to speak of. */
	if (ret && ret != -ECONNRESET)
		complain(ctl, ret);
	bench_dev_close(env.dev);
	bench_ctl_close(&env.ctl);
	fflush(NULL);
	_exit(!known ? STRANGER : ret ? 1 : 0);
}

/* Returns how many have ended; *served becomes true if one of them had a root. */
static unsigned int reap(bool *served)
{
	unsigned int ended = 0;
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0) {
		ended++;
		*served |= !WIFEXITED(status) || WEXITSTATUS(status) != STRANGER;
	}
	return ended;
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

/* Accepts until the last root has gone; waits for the first one for a while. Who only knocks is
 * none of them. */
static int accept_all(const struct fan_opts *o, int listener)
{
	unsigned int running = 0, nth = 0;
	pid_t self = getpid();
	bool served = false;
	int waited = 0;

	for (;;) {
		struct bench_ctl ctl = {.fd = -1};
		int ret = running < FAN_MAX_PROCS ? bench_ctl_accept(&ctl, listener, 200)
						  : (usleep(200000), -ETIMEDOUT);

		running -= reap(&served);
		if (ret == -ETIMEDOUT) {
			waited += 200;
			if (o->keep || running)
				continue;
			if (served)
				return 0;
			if (waited > FIRST_MS)
				return ret;
			continue;
		}
		if (ret) {
			/* Somebody who went away at once; or we have no descriptors. */
			usleep(10000);
			continue;
		}

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
