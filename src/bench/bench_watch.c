#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_time.h"
#include "bench_watch.h"

#define SETTLE_MS   1000 /* until the parent's threads have gone to sleep */
#define MAX_TRACKED 1024

struct task {
	int tid;
	char name[16];
	uint64_t cpu_ns, slices, ticks, vol, invol;
};

struct snap {
	uint64_t when;
	size_t n;
	struct task task[MAX_TRACKED];
};

static FILE *open_task(pid_t pid, int tid, const char *file)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, tid, file);
	return fopen(path, "re");
}

static void read_status(FILE *f, struct task *t)
{
	char line[256];
	unsigned long long v;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &v) == 1)
			t->vol = v;
		else if (sscanf(line, "nonvoluntary_ctxt_switches: %llu", &v) == 1)
			t->invol = v;
		else
			sscanf(line, "Name: %15[^\n]", t->name);
	}
}

static void read_task(pid_t pid, int tid, struct task *t)
{
	unsigned long long cpu = 0, slices = 0, utime = 0, stime = 0;
	char line[1024], *p;
	FILE *f;

	*t = (struct task){.tid = tid};
	f = open_task(pid, tid, "schedstat");
	if (f) {
		if (fscanf(f, "%llu %*u %llu", &cpu, &slices) != 2)
			cpu = slices = 0;
		fclose(f);
	}
	f = open_task(pid, tid, "stat");
	if (f) {
		/* The name in parentheses may hold anything: start behind the last one. */
		if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')))
			sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			       &utime, &stime);
		fclose(f);
	}
	f = open_task(pid, tid, "status");
	if (f) {
		read_status(f, t);
		fclose(f);
	}
	t->cpu_ns = cpu;
	t->slices = slices;
	t->ticks = utime + stime;
}

static void take(pid_t pid, struct snap *s)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	s->n = 0;
	s->when = bench_now();
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return;
	while ((e = readdir(d)) && s->n < MAX_TRACKED)
		if (e->d_name[0] != '.')
			read_task(pid, atoi(e->d_name), &s->task[s->n++]);
	closedir(d);
}

static const struct task *find(const struct snap *s, int tid)
{
	static const struct task none;

	for (size_t i = 0; i < s->n; i++)
		if (s->task[i].tid == tid)
			return &s->task[i];
	return &none; /* a thread that was born in between: all of its time counts */
}

static void difference(const struct snap *a, const struct snap *b, struct bench_usage *u)
{
	memset(u, 0, sizeof(*u));
	u->wall_ns = b->when - a->when;
	u->threads = (uint32_t)b->n;
	for (size_t i = 0; i < b->n; i++) {
		const struct task *now = &b->task[i], *then = find(a, now->tid);

		u->cpu_ns += now->cpu_ns - then->cpu_ns;
		u->ticks += now->ticks - then->ticks;
		u->slices += now->slices - then->slices;
		u->vol += now->vol - then->vol;
		u->invol += now->invol - then->invol;
		if (u->n == BENCH_MAX_THREADS)
			continue;
		memcpy(u->thread[u->n].name, now->name, sizeof(now->name));
		u->thread[u->n].cpu_ns = now->cpu_ns - then->cpu_ns;
		u->thread[u->n++].slices = now->slices - then->slices;
	}
}

static void watch(pid_t parent, int req, int rsp)
{
	static struct snap before, after;
	struct bench_usage usage;
	uint32_t seconds;

	while (read(req, &seconds, sizeof(seconds)) == sizeof(seconds)) {
		usleep(SETTLE_MS * 1000);
		take(parent, &before);
		for (unsigned int left = seconds; left;)
			left = sleep(left);
		take(parent, &after);
		difference(&before, &after, &usage);
		if (write(rsp, &usage, sizeof(usage)) != sizeof(usage))
			break;
	}
	_exit(0);
}

int bench_watch_start(struct bench_watch *w)
{
	pid_t parent = getpid();
	int req[2], rsp[2];

	if (pipe(req) || pipe(rsp))
		return -errno;
	w->pid = fork();
	if (w->pid < 0)
		return -errno;
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(req[1]);
		close(rsp[0]);
		watch(parent, req[0], rsp[1]);
	}
	close(req[0]);
	close(rsp[1]);
	w->req = req[1];
	w->rsp = rsp[0];
	return 0;
}

int bench_watch_run(struct bench_watch *w, uint32_t seconds, struct bench_usage *usage)
{
	if (write(w->req, &seconds, sizeof(seconds)) != sizeof(seconds))
		return -errno;
	/* Smaller than PIPE_BUF, so it comes in one piece. */
	return read(w->rsp, usage, sizeof(*usage)) == sizeof(*usage) ? 0 : -EIO;
}

void bench_watch_stop(struct bench_watch *w)
{
	close(w->req);
	close(w->rsp);
	waitpid(w->pid, NULL, 0);
}
