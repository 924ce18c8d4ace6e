/* What endpoints show of their paths: the format, the file and its owner, and who reads it. Owners
 * are processes of their own: a process' own locks do not keep it from anything. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "msg_use.h"
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"

static char dir[PATH_MAX];

static int set_up(void **state)
{
	(void)state;
	util_log_set_level(UTIL_LOG_ERROR);
	snprintf(dir, sizeof(dir), "/tmp/weft-test-live-XXXXXX");
	return !mkdtemp(dir) || setenv("WEFT_LIVE_DIR", dir, 1);
}

static int tear_down(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

/* ---- owners ---- */

struct owner {
	pid_t pid;
	int to, from; /* bytes that are orders, and answers */
};

static void order(struct owner *o)
{
	char c = 'x';

	assert_int_equal(write(o->to, &c, 1), 1);
	assert_int_equal(read(o->from, &c, 1), 1);
}

/* In the owner: the last order was carried out; waits for the next. False: there is none. */
static bool next(int in, int out)
{
	char c = 'x';

	return write(out, &c, 1) == 1 && read(in, &c, 1) == 1;
}

/* The program ends when no more orders come. */
static struct owner start(void (*program)(int in, int out))
{
	int in[2], out[2];
	struct owner o;
	char c;

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	o = (struct owner){.pid = fork(), .to = in[1], .from = out[0]};
	assert_true(o.pid >= 0);
	if (!o.pid) {
		close(in[1]);
		close(out[0]);
		program(in[0], out[1]);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(o.from, &c, 1), 1);
	return o;
}

static void end(struct owner *o, int sig)
{
	int status;

	if (sig)
		kill(o->pid, sig);
	close(o->to);
	assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
	if (!sig)
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	close(o->from);
}

static void need(bool ok)
{
	if (!ok)
		_exit(1);
}

static void conf_of(struct stripe_conf *c, const char *text)
{
	char why[128];

	need(!stripe_parse(c, text, why, sizeof(why)));
}

static void write_all(struct msg_live *l, uint32_t peer, uint32_t paths, uint64_t value,
		      uint32_t down)
{
	struct msg_live_path path[STRIPE_PATHS_MAX] = {0};

	for (uint32_t i = 0; i < paths; i++)
		path[i] = (struct msg_live_path){(double)value, value, value, value};
	msg_live_write(l, peer, path, down);
}

static size_t count(void)
{
	struct msg_live_proc *procs;
	char path[PATH_MAX];
	size_t n;

	assert_int_equal(msg_live_read(&procs, &n, path), 0);
	msg_live_free(procs, n);
	return n;
}

static size_t files(void)
{
	char command[PATH_MAX + 32], text[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", dir);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	pclose(f);
	return strtoul(text, NULL, 10);
}

/* ---- the format ---- */

static void test_head_is_checked(void **state)
{
	struct msg_live_head good = {.magic = MSG_LIVE_MAGIC, .pid = 7, .peers = 3}, h = good;

	(void)state;
	memset(h.host, 'a', sizeof(h.host));
	strcpy(h.program, "a\033[2Jb");
	assert_int_equal(msg_live_check_head(&h), 0);
	assert_int_equal(strlen(h.host), sizeof(h.host) - 1);
	assert_string_equal(h.program, "a?[2Jb");
	h = good;
	h.magic++;
	assert_int_equal(msg_live_check_head(&h), -EPROTO);
	h = good;
	h.peers = MSG_LIVE_PEERS + 1;
	assert_int_equal(msg_live_check_head(&h), -EPROTO);
	h = good;
	h.pid = 0;
	assert_int_equal(msg_live_check_head(&h), -EPROTO);
}

static void test_peer_is_checked(void **state)
{
	struct msg_live_peer good = {.seq = 2, .paths = 3, .down = 0xff}, p = good;

	(void)state;
	p.path[0].weight = NAN;
	p.path[1].weight = -1;
	p.path[2].weight = 0.5;
	memset(p.policy, 0xff, sizeof(p.policy));
	assert_int_equal(msg_live_check_peer(&p), 0);
	assert_true(p.path[0].weight == 0 && p.path[1].weight == 0 && p.path[2].weight == 0.5);
	assert_int_equal(p.down, 7);
	assert_int_equal(strspn(p.policy, "?"), sizeof(p.policy) - 1);
	p = good;
	p.seq = 3;
	assert_int_equal(msg_live_check_peer(&p), -EPROTO);
	p = good;
	p.paths = STRIPE_PATHS_MAX + 1;
	assert_int_equal(msg_live_check_peer(&p), -EPROTO);
	p = good;
	p.paths = STRIPE_PATHS_MAX;
	assert_int_equal(msg_live_check_peer(&p), 0);
	assert_int_equal(p.down, 0xff);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(msg_live_is_name("1-0123456789abcdef"));
	assert_true(msg_live_is_name("4194304-0123456789abcdef"));
	assert_false(msg_live_is_name("."));
	assert_false(msg_live_is_name("-0123456789abcdef"));
	assert_false(msg_live_is_name("1-0123456789abcde"));
	assert_false(msg_live_is_name("1-0123456789abcdef0"));
	assert_false(msg_live_is_name("1-0123456789abcdeF"));
	assert_false(msg_live_is_name("12345678901-0123456789abcdef"));
	assert_false(msg_live_is_name("1-0123456789abcdef/../x"));
}

/* ---- what is counted ---- */

static void test_busy_while_anything_is_under_way(void **state)
{
	struct msg_use u = {0};

	(void)state;
	msg_use_begin(&u, 3, 100);
	msg_use_begin(&u, 3, 150);
	msg_use_end(&u, 3, 10, 200);
	assert_int_equal(u.path[3].busy, 0);
	msg_use_end(&u, 3, 20, 300);
	assert_int_equal(u.path[3].busy, 200);
	/* Idle until then; and this one did not arrive. */
	msg_use_begin(&u, 3, 1000);
	msg_use_end(&u, 3, 0, 1005);
	assert_int_equal(u.path[3].busy, 205);
	assert_int_equal(u.path[3].bytes, 30);
	assert_int_equal(u.path[3].pieces, 2);
	assert_int_equal(u.path[2].busy, 0);
}

/* ---- written and read ---- */

static void two_peers(int in, int out)
{
	struct stripe_conf hop, bss;
	struct msg_live *l = msg_live_open();
	uint32_t a, b;

	need(l);
	conf_of(&hop, "hop:8");
	conf_of(&bss, "bss:4,2");
	a = msg_live_add(l, 0x0100007f, &hop);
	b = msg_live_add(l, 0x0200007f, &bss);
	need(a == 0 && b == 1);
	write_all(l, a, 8, 11, 0);
	write_all(l, b, 4, 12, 1 << 2);
	while (next(in, out))
		write_all(l, b, 4, 13, 0);
	msg_live_close(l);
}

static void test_other_process_reads(void **state)
{
	struct owner o = start(two_peers);
	struct msg_live_proc *p;
	char path[PATH_MAX], host[MSG_LIVE_TEXT_MAX] = "";
	size_t n;

	(void)state;
	gethostname(host, sizeof(host) - 1);
	assert_int_equal(msg_live_read(&p, &n, path), 0);
	assert_int_equal(n, 1);
	assert_int_equal(p->pid, o.pid);
	assert_int_equal(p->head.pid, o.pid);
	assert_string_equal(p->head.host, host);
	assert_string_equal(p->head.program, "test_msg_live");
	assert_int_equal(p->head.peers, 2);
	assert_int_equal(p->peer[0].ip, 0x0100007f);
	assert_int_equal(p->peer[0].paths, 8);
	assert_string_equal(p->peer[0].policy, "hop:8");
	assert_int_equal(p->peer[0].path[7].bytes, 11);
	assert_string_equal(p->peer[1].policy, "bss:4,2");
	assert_int_equal(p->peer[1].path[3].pieces, 12);
	assert_true(p->peer[1].path[3].weight == 12.0);
	assert_int_equal(p->peer[1].down, 1 << 2);
	msg_live_free(p, n);
	order(&o);
	assert_int_equal(msg_live_read(&p, &n, path), 0);
	assert_int_equal(p->peer[1].path[3].busy, 13);
	assert_int_equal(p->peer[1].down, 0);
	msg_live_free(p, n);
	end(&o, 0);
	assert_int_equal(count(), 0);
	assert_int_equal(files(), 0);
}

static void test_killed_is_removed(void **state)
{
	struct owner a = start(two_peers), b = start(two_peers), c;

	(void)state;
	assert_int_equal(count(), 2);
	end(&a, SIGKILL);
	assert_int_equal(files(), 2);
	assert_int_equal(count(), 1);
	assert_int_equal(files(), 1);
	/* Nobody looks, but somebody else comes. */
	end(&b, SIGKILL);
	c = start(two_peers);
	assert_int_equal(files(), 1);
	end(&c, 0);
	assert_int_equal(files(), 0);
}

static void with_child(int in, int out)
{
	struct msg_live *l = msg_live_open();
	struct stripe_conf conf;
	uint32_t peer;
	pid_t child;

	need(l);
	conf_of(&conf, "even:2");
	peer = msg_live_add(l, 1, &conf);
	write_all(l, peer, 2, 1, 0);
	child = fork();
	if (!child) {
		write_all(l, peer, 2, 99, 3);
		need(msg_live_add(l, 2, &conf) == UINT32_MAX);
		while (next(in, out))
			;
		msg_live_close(l);
		_exit(0);
	}
	/* The orders are the child's. */
	pause();
}

static void test_child_of_fork_does_nothing(void **state)
{
	struct owner o = start(with_child);
	struct msg_live_proc *p;
	char path[PATH_MAX];
	size_t n;

	(void)state;
	assert_int_equal(msg_live_read(&p, &n, path), 0);
	assert_int_equal(n, 1);
	assert_int_equal(p->head.peers, 1);
	assert_int_equal(p->peer[0].path[0].bytes, 1);
	msg_live_free(p, n);
	/* It lives on, but what it has inherited does not count. */
	kill(o.pid, SIGKILL);
	assert_int_equal(waitpid(o.pid, NULL, 0), o.pid);
	order(&o);
	assert_int_equal(count(), 0);
	assert_int_equal(files(), 0);
	close(o.to);
	close(o.from);
}

static void child_closes(int in, int out)
{
	struct msg_live *l = msg_live_open();
	pid_t child = fork();

	need(l);
	if (!child) {
		msg_live_close(l);
		_exit(0);
	}
	need(waitpid(child, NULL, 0) == child);
	while (next(in, out))
		;
	msg_live_close(l);
}

static void test_child_may_close(void **state)
{
	struct owner o = start(child_closes);

	(void)state;
	assert_int_equal(count(), 1);
	end(&o, 0);
	assert_int_equal(files(), 0);
}

static void many_peers(int in, int out)
{
	struct msg_live *l = msg_live_open(), *second = msg_live_open();
	struct stripe_conf conf;

	need(l && second);
	conf_of(&conf, "even:16");
	for (uint32_t i = 0; i < 1000; i++) {
		need(msg_live_add(l, i, &conf) == i);
		write_all(l, i, 16, i, 0);
	}
	msg_live_drop(l, 500);
	while (next(in, out))
		;
	msg_live_close(l);
	msg_live_close(second);
}

/* What is mapped must not become shorter. */
static void test_nobody_else_writes(void **state)
{
	struct owner o = start(two_peers);
	struct msg_live_proc *p;
	char path[PATH_MAX], file[PATH_MAX + MSG_LIVE_NAME_MAX + 1];
	struct stat st;
	size_t n;

	(void)state;
	assert_int_equal(msg_live_read(&p, &n, path), 0);
	assert_int_equal(n, 1);
	snprintf(file, sizeof(file), "%s/%s", dir, p->name);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	if (geteuid())
		assert_int_equal(truncate(file, 0), -1);
	msg_live_free(p, n);
	order(&o);
	end(&o, 0);
	assert_int_equal(files(), 0);
}

/* Nobody else may enter it, however it is written. */
static void test_slash_at_the_end(void **state)
{
	char where[PATH_MAX + 16];
	struct owner o;

	(void)state;
	snprintf(where, sizeof(where), "%s/new//", dir);
	setenv("WEFT_LIVE_DIR", where, 1);
	o = start(two_peers);
	assert_int_equal(count(), 1);
	end(&o, 0);
	assert_int_equal(rmdir(where), 0);
	setenv("WEFT_LIVE_DIR", dir, 1);
}

/* Nothing is shown then, and nobody is killed for it. */
static void small_files(int in, int out)
{
	struct rlimit most = {32768, 32768};

	need(!setrlimit(RLIMIT_FSIZE, &most));
	need(!msg_live_open());
	while (next(in, out))
		;
}

static void test_limit_of_files(void **state)
{
	struct owner o = start(small_files);

	(void)state;
	end(&o, 0);
}

static void test_many_peers_and_two_endpoints(void **state)
{
	struct owner o = start(many_peers);
	struct msg_live_proc *p, *all;
	char path[PATH_MAX];
	size_t n;

	(void)state;
	assert_int_equal(msg_live_read(&p, &n, path), 0);
	assert_int_equal(n, 2);
	all = p[0].head.peers ? &p[0] : &p[1];
	assert_int_equal(all->head.peers, 1000);
	assert_int_equal(all->peer[500].paths, 0);
	for (uint32_t i = 0; i < 1000; i++)
		if (i != 500)
			assert_int_equal(all->peer[i].path[15].bytes, i);
	msg_live_free(p, n);
	end(&o, 0);
}

static void busy_writer(int in, int out)
{
	struct msg_live *l = msg_live_open();
	uint64_t until = util_now_ns() + 60 * UTIL_NS_PER_S;
	struct stripe_conf conf;
	uint32_t peer;
	char c = 'x';

	(void)in;
	need(l);
	conf_of(&conf, "even:16");
	peer = msg_live_add(l, 1, &conf);
	for (uint64_t i = 1; util_now_ns() < until; i++) {
		write_all(l, peer, 16, i, i % 2 ? 0xffff : 0);
		if (i == 1)
			need(write(out, &c, 1) == 1);
		/* Sometimes there is time to read between. */
		for (volatile int k = 0; k < 2000; k++)
			;
	}
	msg_live_close(l);
}

static void test_never_half_written(void **state)
{
	uint64_t until = util_now_ns() + UTIL_NS_PER_S, last = 0, changes = 0;
	struct owner o = start(busy_writer);

	(void)state;
	while (util_now_ns() < until) {
		struct msg_live_proc *p;
		char path[PATH_MAX];
		size_t n;

		assert_int_equal(msg_live_read(&p, &n, path), 0);
		assert_int_equal(n, 1);
		for (uint32_t i = 0; i < p->peer[0].paths; i++) {
			const struct msg_live_path *is = &p->peer[0].path[i];
			uint64_t all = p->peer[0].path[0].bytes;

			assert_true(is->bytes == all && is->pieces == all && is->busy == all &&
				    is->weight == (double)all);
			assert_int_equal(p->peer[0].down, all % 2 ? 0xffff : 0);
		}
		if (p->peer[0].paths && p->peer[0].path[0].bytes != last) {
			assert_true(p->peer[0].path[0].bytes > last);
			last = p->peer[0].path[0].bytes;
			changes++;
		}
		msg_live_free(p, n);
	}
	assert_true(changes > 10);
	end(&o, SIGKILL);
	assert_int_equal(count(), 0);
}

/* ---- what is none ---- */

#define STRANGE "77-0123456789abcdef"

/* Holds a file of that name, whatever is in it. */
static void holder(int in, int out)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/" STRANGE, dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	need(fd >= 0 && !fcntl(fd, F_SETLK, &all));
	while (next(in, out))
		;
	unlink(path);
}

static void test_any_bytes(void **state)
{
	struct msg_live_head head = {.magic = MSG_LIVE_MAGIC, .pid = 9, .peers = MSG_LIVE_PEERS};
	struct owner o = start(holder);
	char path[PATH_MAX + 64];
	struct util_rand r = {0};
	uint8_t bytes[4096];

	(void)state;
	util_rand_seed(&r, 5);
	snprintf(path, sizeof(path), "%s/" STRANGE, dir);
	for (int i = 0; i < 400; i++) {
		size_t len = (size_t)util_rand_below(&r, sizeof(bytes));
		int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		struct msg_live_proc *p;
		char where[PATH_MAX];
		size_t n;

		assert_true(fd >= 0);
		util_rand_bytes(&r, bytes, sizeof(bytes));
		if (i % 2)
			memcpy(bytes, &head, sizeof(head));
		assert_int_equal(write(fd, bytes, len), (ssize_t)len);
		close(fd);
		assert_int_equal(msg_live_read(&p, &n, where), 0);
		assert_int_equal(n, i % 2 && len >= sizeof(head));
		for (uint32_t k = 0; n && k < p->head.peers; k++)
			assert_true(p->peer[k].paths <= STRIPE_PATHS_MAX &&
				    (!p->peer[k].paths || msg_live_at(k + 1) <= len));
		msg_live_free(p, n);
	}
	end(&o, 0);
}

static void test_other_things_in_the_directory(void **state)
{
	char path[PATH_MAX + 64];

	(void)state;
	snprintf(path, sizeof(path), "%s/" STRANGE, dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(count(), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(count(), 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(count(), 0);
	rmdir(path);
	/* Not of the name: not touched. */
	snprintf(path, sizeof(path), "%s/notes", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(count(), 0);
	assert_int_equal(unlink(path), 0);
}

static void refused(const char *where, int err)
{
	struct msg_live_proc *p;
	char path[PATH_MAX];
	size_t n;

	setenv("WEFT_LIVE_DIR", where, 1);
	assert_null(msg_live_open());
	assert_int_equal(msg_live_read(&p, &n, path), err);
	assert_int_equal(n, 0);
	setenv("WEFT_LIVE_DIR", dir, 1);
}

static void test_directory_of_others(void **state)
{
	char path[PATH_MAX + 64];

	(void)state;
	chmod(dir, 0750);
	refused(dir, -EPERM);
	chmod(dir, 0701);
	refused(dir, -EPERM);
	chmod(dir, 0700);
	refused("/proc/nowhere", 0);
	refused("relative", -EINVAL);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/tmp", path), 0);
	refused(path, -ENOTDIR);
	strcat(path, "/");
	refused(path, -ENOTDIR);
	path[strlen(path) - 1] = '\0';
	unlink(path);
	if (!geteuid()) {
		assert_int_equal(chown(dir, 1, 1), 0);
		refused(dir, -EPERM);
		assert_int_equal(chown(dir, 0, 0), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_is_checked),
		cmocka_unit_test(test_peer_is_checked),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_busy_while_anything_is_under_way),
		cmocka_unit_test(test_other_process_reads),
		cmocka_unit_test(test_killed_is_removed),
		cmocka_unit_test(test_child_of_fork_does_nothing),
		cmocka_unit_test(test_child_may_close),
		cmocka_unit_test(test_many_peers_and_two_endpoints),
		cmocka_unit_test(test_nobody_else_writes),
		cmocka_unit_test(test_slash_at_the_end),
		cmocka_unit_test(test_limit_of_files),
		cmocka_unit_test(test_never_half_written),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_other_things_in_the_directory),
		cmocka_unit_test(test_directory_of_others),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
