/* The rig: what every test of the device needs, in few words.
 *
 * Tests link the static library and call rnic_*; the op tables in the context make
 * the inline functions of <infiniband/verbs.h> work, so nothing is preloaded. The
 * device is loopback (WEFT_ADDR=127.0.0.1, set before main).
 *
 * An `end` is a queue pair with its completion queues and one registered buffer; two
 * ends connected to each other are a pair. Ends may live in one process or in two:
 * rig_spawn starts a second process with a socket between them, over which ends
 * exchange their addresses.
 *
 * Everything checks itself: a failure is a failed cmocka test in the main process,
 * and an exit code in a spawned one. All waiting has a deadline, and every test an
 * alarm.
 */
#ifndef WEFT_RIG_H
#define WEFT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <errno.h>
#include <unistd.h>

#include <cmocka.h>

#include "util_clock.h"
#include "util_rand.h"
#include "rnic.h"
#include "rnic_engine.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* gcc says __SANITIZE_*__, clang says so by __has_feature. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define RIG_ASAN 1
#else
#define RIG_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define RIG_TSAN 1
#else
#define RIG_TSAN 0
#endif

#define RIG_MS   UTIL_NS_PER_MS
#define RIG_WAIT 10000 /* ms: what must happen, happens long before */

/* ---- checks ---- */

void rig_check(bool ok, const char *what, const char *file, int line);
void rig_check_eq(long long got, long long want, const char *what, const char *file, int line);

#define CHECK(cond)    rig_check(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b) rig_check_eq((long long)(a), (long long)(b), #a, __FILE__, __LINE__)
#define CHECK_0(call)  CHECK_EQ(call, 0)

/* ---- tests ---- */

/* Bounds each test by an alarm. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

/* splitmix64, seeded from WEFT_TEST_SEED or the clock, and printed. */
struct util_rand *rig_rand(void);
uint64_t rig_now_ms(void);
void rig_sleep_ms(unsigned int ms);
/* User and system time of all threads of this process. */
uint64_t rig_cpu_ns(void);
int rig_open_fds(void);
/* Looks at memory that a peer may be writing to, as programs that spin on it do. */
uint8_t rig_peek(const uint8_t *p);
/* Waits until that byte has this value. */
void rig_wait_byte(const uint8_t *p, uint8_t want);

/* ---- a device ---- */

struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

void rig_open(struct rig *r);
void rig_close(struct rig *r);
struct rnic_engine *rig_engine(const struct rig *r);
struct rnic_stats rig_stats(const struct rig *r);

/* ---- ends ---- */

struct rig_opts {
	enum ibv_qp_type type; /* RC unless set */
	uint32_t send_wr, recv_wr, sge, inl;
	uint32_t cqe; /* of either queue */
	bool one_cq;  /* one completion queue for both directions */
	bool sig_all;
	bool ex;               /* with ibv_wr_* */
	uint32_t create_flags; /* with ex */
	struct ibv_srq *srq;
	struct ibv_cq *cq; /* somebody else's, for both directions */
	struct ibv_comp_channel *channel;
	size_t buf_len;
	unsigned int mr_access, qp_access;
	uint8_t rd_atomic, dest_rd_atomic, rnr_retry, rnr_timer, timeout, retry_cnt;
	uint32_t qkey;
};

/* What works for most tests; the others change a field or two. */
struct rig_opts rig_defaults(void);

/* What a peer has to know. Sent as it is between processes of one machine. */
struct rig_addr {
	uint32_t qpn, psn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

struct end {
	struct rig *rig;
	struct rig_opts o;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex; /* NULL without */
	struct ibv_mr *mr;
	uint8_t *buf;
	uint32_t psn;
	struct rig_addr peer; /* once connected */
};

struct pair {
	struct rig rig;
	struct end a, b;
};

void end_make(struct end *e, struct rig *r, const struct rig_opts *o);
void end_destroy(struct end *e);
struct rig_addr end_addr(const struct end *e);
/* Transitions. Each checks that it succeeds. */
void end_init(struct end *e);
void end_rtr(struct end *e, const struct rig_addr *peer);
void end_rts(struct end *e);
void end_up(struct end *e, const struct rig_addr *peer); /* RESET to RTS */
int end_state(struct end *e, enum ibv_qp_state to);
enum ibv_qp_state end_query(struct end *e);

void pair_open(struct pair *p, const struct rig_opts *o);
void pair_connect(struct pair *p, const struct rig_opts *oa, const struct rig_opts *ob);
void pair_close(struct pair *p);

/* ---- work ---- */

struct ibv_sge end_sge(const struct end *e, size_t off, uint32_t len);

/* A signalled request of one element of the end's buffer; rdma and atomics go to
 * offset `to` of the peer's. Change the fields before posting. */
struct work {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
void work_init(struct work *w, const struct end *e, enum ibv_wr_opcode op, uint64_t wr_id,
	       size_t off, uint32_t len, size_t to);
int post(struct end *e, struct work *w);
/* Builds, posts and checks that it was taken. */
void end_send(struct end *e, uint64_t wr_id, size_t off, uint32_t len);
void end_write(struct end *e, uint64_t wr_id, size_t off, uint32_t len, size_t to);
void end_read(struct end *e, uint64_t wr_id, size_t off, uint32_t len, size_t to);
void end_add(struct end *e, uint64_t wr_id, size_t off, size_t to, uint64_t add);
void end_recv(struct end *e, uint64_t wr_id, size_t off, uint32_t len);
int try_recv(struct end *e, uint64_t wr_id, size_t off, uint32_t len);
int try_srq_recv(struct ibv_srq *srq, const struct end *e, uint64_t wr_id, size_t off,
		 uint32_t len);

/* ---- completions ---- */

bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms);
/* The next completion, which must have this number and status. */
struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, const char *file,
		     int line);
#define EXPECT(cq, wr_id, status) expect(cq, wr_id, status, __FILE__, __LINE__)
#define EXPECT_OK(cq, wr_id)      EXPECT(cq, wr_id, IBV_WC_SUCCESS)
/* None for a while. */
void expect_none(struct ibv_cq *cq, unsigned int ms);
/* n completions with ascending numbers from `first`, all of this status. */
void expect_run(struct ibv_cq *cq, uint64_t first, unsigned int n, enum ibv_wc_status status);

/* ---- asynchronous events ---- */

/* Waits for an event; the type that must come, and its object (any if NULL). */
void expect_event(struct rig *r, enum ibv_event_type type, const void *object);
bool wait_event(struct rig *r, struct ibv_async_event *ev, unsigned int ms);
void expect_no_event(struct rig *r, unsigned int ms);

/* ---- a second process ---- */

struct rig_proc {
	pid_t pid;
	int sock;
};

/* The function runs in a child that was forked before any device was open; its return
 * value is the exit code. */
void rig_spawn(struct rig_proc *p, void (*run)(int sock, void *arg), void *arg);
/* Waits for its end, which must be a clean one. */
void rig_join(struct rig_proc *p);
void rig_kill(struct rig_proc *p); /* SIGKILL, reaped */

void rig_put(int sock, const void *data, size_t len);
void rig_get(int sock, void *data, size_t len);
void rig_say(int sock, char c);
void rig_hear(int sock, char c);
/* Exchanges addresses and brings the end to RTS; both sides return when both are. */
void end_meet(struct end *e, int sock);

#endif
