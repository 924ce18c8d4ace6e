/* A second process. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "rig.h"

extern bool rig_in_child;

void rig_spawn(struct rig_proc *p, void (*run)(int sock, void *arg), void *arg)
{
	int fd[2];

	CHECK_0(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	fflush(NULL);
	p->pid = fork();
	CHECK(p->pid >= 0);
	if (!p->pid) {
		static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};

		rig_in_child = true;
		/* cmocka's handlers would jump back into the tests. */
		for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
			signal(faults[i], SIG_DFL);
		/* A test that fails must not leave processes behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		close(fd[0]);
		run(fd[1], arg);
		fflush(NULL);
		_exit(0);
	}
	close(fd[1]);
	p->sock = fd[0];
}

void rig_join(struct rig_proc *p)
{
	int status = 0;

	close(p->sock);
	CHECK(waitpid(p->pid, &status, 0) == p->pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

void rig_kill(struct rig_proc *p)
{
	int status;

	CHECK_0(kill(p->pid, SIGKILL));
	CHECK(waitpid(p->pid, &status, 0) == p->pid);
	close(p->sock);
}

void rig_put(int sock, const void *data, size_t len)
{
	CHECK(send(sock, data, len, MSG_NOSIGNAL) == (ssize_t)len);
}

void rig_get(int sock, void *data, size_t len)
{
	CHECK(recv(sock, data, len, MSG_WAITALL) == (ssize_t)len);
}

void rig_say(int sock, char c)
{
	rig_put(sock, &c, 1);
}

void rig_hear(int sock, char c)
{
	char got = 0;

	rig_get(sock, &got, 1);
	CHECK_EQ(got, c);
}

void end_meet(struct end *e, int sock)
{
	struct rig_addr own = end_addr(e), peer;

	rig_put(sock, &own, sizeof(own));
	rig_get(sock, &peer, sizeof(peer));
	end_up(e, &peer);
	e->peer = peer; /* also for UD, where it only says where the memory is */
	rig_say(sock, 'U');
	rig_hear(sock, 'U');
}
