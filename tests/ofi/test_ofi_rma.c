/* Memory of a peer: read, written, changed; and what is counted. */
#include "util_clock.h"
#include "ofi_node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN (1 << 20)

static struct node a, b;
static uint8_t *mem, *buf; /* b's, which a uses */
static struct fid_mr *mr;
static uint64_t key;

static void begin(const struct node_conf *conf)
{
	static const struct node_conf plain;

	pair_open(&a, &b, conf ? conf : &plain);
	mem = malloc(LEN);
	buf = malloc(LEN);
	assert_true(mem && buf);
	OK(fi_mr_reg(b.domain, mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	key = fi_mr_key(mr);
}

static void end(void)
{
	OK(fi_close(&mr->fid));
	pair_close(&a, &b);
	free(mem);
	free(buf);
}

static void test_read_write(void **state)
{
	static const size_t sizes[] = {1, 100, 5000, 100000, LEN};
	struct fi_cq_tagged_entry e;
	int ctx;

	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < 5; i++) {
		size_t len = sizes[i], off = LEN - len;

		fill(buf, len, i);
		RETRY(&a, fi_write(a.ep, buf, len, NULL, 1, (uintptr_t)mem + off, key, &ctx));
		e = node_wait(&a, a.tx);
		assert_ptr_equal(e.op_context, &ctx);
		assert_int_equal(e.flags, FI_RMA | FI_WRITE);
		check_filled(mem + off, len, i);
		memset(buf, 0, len);
		RETRY(&a, fi_read(a.ep, buf, len, NULL, 1, (uintptr_t)mem + off, key, &ctx));
		assert_int_equal(node_wait(&a, a.tx).flags, FI_RMA | FI_READ);
		check_filled(buf, len, i);
	}
	node_quiet(&b, b.rx);
	end();
}

/* A send queue that is full of what nobody is told the end of, and a read that waits for room. */
static void test_full(void **state)
{
	uint64_t until;
	int ctx, n;

	(void)state;
	begin(NULL);
	for (int turn = 0; turn < 5; turn++) {
		uint8_t x[64] = {0};
		struct fi_cq_tagged_entry e;

		fill(mem, LEN, (unsigned int)turn);
		for (n = 0; n < 100000 && !fi_tinject(a.ep, x, sizeof(x), 1, 5); n++)
			;
		assert_int_equal(fi_read(a.ep, buf, LEN, NULL, 1, (uintptr_t)mem, key, &ctx), 0);
		until = util_now_ns() + 20 * UTIL_NS_PER_S;
		while (fi_cq_read(a.tx, &e, 1) != 1) {
			fi_cq_read(b.rx, &e, 0);
			assert_true(util_now_ns() < until);
		}
		check_filled(buf, LEN, (unsigned int)turn);
	}
	end();
}

static void test_pieces(void **state)
{
	struct iovec iov[2];
	struct fi_rma_iov remote[3];
	struct fi_msg_rma m = {
		.msg_iov = iov, .iov_count = 2, .addr = 1, .rma_iov = remote, .rma_iov_count = 3};

	(void)state;
	begin(NULL);
	fill(buf, 6000, 1);
	iov[0] = (struct iovec){buf, 1000};
	iov[1] = (struct iovec){buf + 1000, 5000};
	for (int i = 0; i < 3; i++)
		remote[i] = (struct fi_rma_iov){(uintptr_t)mem + (size_t)i * 50000, 2000, key};
	RETRY(&a, fi_writemsg(a.ep, &m, FI_DELIVERY_COMPLETE));
	node_wait(&a, a.tx);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(mem + i * 50000, buf + i * 2000, 2000);
	memset(buf, 0, 6000);
	RETRY(&a, fi_readmsg(a.ep, &m, 0));
	node_wait(&a, a.tx);
	check_filled(buf, 6000, 1);
	RETRY(&a, fi_writev(a.ep, iov, NULL, 2, 1, (uintptr_t)mem, key, NULL));
	node_wait(&a, a.tx);
	check_filled(mem, 6000, 1);
	memset(buf, 0, 6000);
	RETRY(&a, fi_readv(a.ep, iov, NULL, 2, 1, (uintptr_t)mem, key, NULL));
	node_wait(&a, a.tx);
	check_filled(buf, 6000, 1);
	end();
}

static void test_inject_and_data(void **state)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src = 77;

	(void)state;
	begin(NULL);
	fill(buf, 1000, 4);
	RETRY(&a, fi_inject_write(a.ep, buf, 1000, 1, (uintptr_t)mem, key));
	memset(buf, 0, 1000);
	RETRY(&a, fi_writedata(a.ep, buf, 10, NULL, 1234, 1, (uintptr_t)mem + 4000, key, NULL));
	e = node_wait_from(&b, b.rx, &src);
	assert_int_equal(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_int_equal(e.data, 1234);
	assert_int_equal(e.len, 10);
	assert_int_equal(src, 0);
	node_wait(&a, a.tx);
	RETRY(&a, fi_inject_writedata(a.ep, buf, 10, 1235, 1, (uintptr_t)mem + 4000, key));
	assert_int_equal(node_wait(&b, b.rx).data, 1235);
	check_filled(mem, 1000, 4);
	node_quiet(&a, a.tx);
	assert_int_equal(fi_inject_write(a.ep, buf, a.info->tx_attr->inject_size + 1, 1,
					 (uintptr_t)mem, key),
			 -FI_EMSGSIZE);
	end();
}

/* A connection does not survive a wrong key. */
static bool rc(void)
{
	const char *text = getenv("FI_WEFT_TRANSPORT");

	return text && !strcmp(text, "rc");
}

/* All of it is there when its data is, whichever way that goes: with the last bytes, or, if its
 * first bit is set or there are none, by itself. */
static void test_data(void **state)
{
	static const uint32_t data[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
	static const size_t sizes[] = {0, 1, 5000, LEN};

	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < 20; i++) {
		size_t len = sizes[i / 5];
		struct fi_cq_tagged_entry e;
		fi_addr_t src = 77;

		fill(buf, len, i);
		RETRY(&a, fi_writedata(a.ep, buf, len, NULL, data[i % 5], 1, (uintptr_t)mem, key,
				       NULL));
		e = node_wait_from(&b, b.rx, &src);
		check_filled(mem, len, i);
		assert_int_equal(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		assert_int_equal(e.data, data[i % 5]);
		assert_int_equal(e.len, len);
		assert_int_equal(src, 0);
		node_wait(&a, a.tx);
	}
	node_quiet(&b, b.rx);
	end();
}

/* Each comes once, with many under way, the first of them from somebody who is not known yet. (No
 * order is promised.) */
static void test_data_many(void **state)
{
	enum { TIMES = 2000 };
	bool seen[TIMES] = {false};

	(void)state;
	begin(NULL);
	for (uint32_t sent = 0, got = 0; got < TIMES;) {
		struct fi_cq_tagged_entry e;

		if (sent < TIMES && !fi_writedata(a.ep, buf, 1 + sent % 3000, NULL, sent, 1,
						  (uintptr_t)mem, key, NULL))
			sent++;
		node_drive(&a);
		while (fi_cq_read(a.tx, &e, 1) == 1)
			;
		if (fi_cq_read(b.rx, &e, 1) != 1)
			continue;
		assert_true(e.data < TIMES && !seen[e.data]);
		assert_int_equal(e.len, 1 + e.data % 3000);
		seen[e.data] = true;
		got++;
	}
	end();
}

/* What is refused is told to nobody there. */
static void test_data_refused(void **state)
{
	(void)state;
	if (rc())
		skip();
	begin(NULL);
	RETRY(&a, fi_writedata(a.ep, buf, 10, NULL, 5, 1, (uintptr_t)mem, key ^ 1, NULL));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	node_quiet(&b, b.rx);
	end();
}

/* The writer has left it to the device, and its program reads other queues only: its next step,
 * which is to send the data, is taken all the same. */
static void test_data_unread(void **state)
{
	struct fi_cq_tagged_entry e;

	(void)state;
	begin(NULL);
	RETRY(&a, fi_writedata(a.ep, buf, LEN, NULL, 0x80000001, 1, (uintptr_t)mem, key, NULL));
	for (uint64_t until = util_now_ns() + 10 * UTIL_NS_PER_S; fi_cq_read(b.rx, &e, 1) != 1;)
		assert_true(util_now_ns() < until);
	assert_int_equal(e.data, 0x80000001);
	end();
}

static void test_errors(void **state)
{
	struct iovec iov[5];
	struct fi_rma_iov remote;
	struct fi_msg_rma m = {
		.msg_iov = iov, .iov_count = 1, .addr = 1, .rma_iov = &remote, .rma_iov_count = 1};
	struct fid_mr *ro;
	int ctx;

	(void)state;
	if (rc())
		skip();
	begin(NULL);
	RETRY(&a, fi_write(a.ep, buf, 10, NULL, 1, (uintptr_t)mem, key ^ 0x5555, &ctx));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	RETRY(&a, fi_read(a.ep, buf, 10, NULL, 1, (uintptr_t)mem + LEN - 5, key, &ctx));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	OK(fi_mr_reg(b.domain, mem, LEN, FI_REMOTE_READ, 0, 0, 0, &ro, NULL));
	RETRY(&a, fi_write(a.ep, buf, 10, NULL, 1, (uintptr_t)mem, fi_mr_key(ro), &ctx));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	RETRY(&a, fi_read(a.ep, buf, 10, NULL, 1, (uintptr_t)mem, fi_mr_key(ro), &ctx));
	node_wait(&a, a.tx);
	OK(fi_close(&ro->fid));
	/* lengths that differ, too many pieces, flags, nobody */
	iov[0] = (struct iovec){buf, 10};
	remote = (struct fi_rma_iov){(uintptr_t)mem, 11, key};
	assert_int_equal(fi_writemsg(a.ep, &m, 0), -FI_EINVAL);
	remote.len = 10;
	assert_int_equal(fi_writemsg(a.ep, &m, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(a.ep, &m, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	m.rma_iov_count = 5;
	assert_int_equal(fi_readmsg(a.ep, &m, 0), -FI_EINVAL);
	m.rma_iov_count = 1;
	remote.key = UINT64_MAX;
	assert_int_equal(fi_readmsg(a.ep, &m, 0), -FI_EINVAL);
	assert_int_equal(fi_readv(a.ep, iov, NULL, 5, 1, (uintptr_t)mem, key, NULL), -FI_EINVAL);
	assert_int_equal(fi_write(a.ep, buf, 1, NULL, 9, (uintptr_t)mem, key, NULL), -FI_EINVAL);
	end();
}

static void test_regions(void **state)
{
	struct iovec iov[2];
	struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = 1, .access = FI_REMOTE_READ};
	struct fid_mr *m;

	(void)state;
	begin(NULL);
	iov[0] = iov[1] = (struct iovec){mem, 100};
	OK(fi_mr_regattr(b.domain, &attr, 0, &m));
	OK(fi_mr_enable(m));
	OK(fi_close(&m->fid));
	OK(fi_mr_regv(b.domain, iov, 1, FI_SEND | FI_RECV, 0, 0, 0, &m, NULL));
	assert_non_null(fi_mr_desc(m));
	assert_int_equal(fi_mr_key(m), FI_KEY_NOTAVAIL);
	OK(fi_close(&m->fid));
	assert_int_equal(fi_mr_regv(b.domain, iov, 2, FI_SEND, 0, 0, 0, &m, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(b.domain, &attr, FI_RMA_EVENT, &m), -FI_EBADFLAGS);
	attr.access = FI_MULTICAST;
	assert_int_equal(fi_mr_regattr(b.domain, &attr, 0, &m), -FI_EINVAL);
	attr.access = FI_REMOTE_READ;
	attr.iface = FI_HMEM_CUDA;
	assert_int_equal(fi_mr_regattr(b.domain, &attr, 0, &m), -FI_EINVAL);
	assert_int_equal(fi_close(&b.domain->fid), -FI_EBUSY);
	end();
}

static void test_atomics(void **state)
{
	uint64_t *target, one = 1, before = 99, compare = 6, two[2] = {10, 20};
	struct fi_ioc ioc[2] = {{&two[0], 1}, {&two[1], 1}};
	double *real, half = 0.5, was = 0;

	(void)state;
	begin(NULL);
	target = (uint64_t *)mem;
	target[0] = 5;
	target[1] = 7;
	RETRY(&a, fi_atomic(a.ep, &one, 1, NULL, 1, (uintptr_t)mem, key, FI_UINT64, FI_SUM, NULL));
	assert_int_equal(node_wait(&a, a.tx).flags, FI_ATOMIC | FI_WRITE);
	assert_int_equal(target[0], 6);
	RETRY(&a, fi_fetch_atomic(a.ep, &one, 1, NULL, &before, NULL, 1, (uintptr_t)mem, key,
				  FI_UINT64, FI_SUM, NULL));
	assert_int_equal(node_wait(&a, a.tx).flags, FI_ATOMIC | FI_READ);
	assert_true(target[0] == 7 && before == 6);
	/* in vain, then not */
	for (int i = 0; i < 2; i++) {
		RETRY(&a, fi_compare_atomic(a.ep, &one, 1, NULL, &compare, NULL, &before, NULL, 1,
					    (uintptr_t)mem, key, FI_UINT64, FI_CSWAP, NULL));
		node_wait(&a, a.tx);
		assert_int_equal(before, 7);
		assert_int_equal(target[0], i ? 1 : 7);
		compare = 7;
	}
	RETRY(&a, fi_fetch_atomic(a.ep, NULL, 1, NULL, &before, NULL, 1, (uintptr_t)mem + 8, key,
				  FI_UINT64, FI_ATOMIC_READ, NULL));
	node_wait(&a, a.tx);
	assert_int_equal(before, 7);
	RETRY(&a, fi_atomicv(a.ep, ioc, NULL, 2, 1, (uintptr_t)mem, key, FI_UINT64, FI_ATOMIC_WRITE,
			     NULL));
	node_wait(&a, a.tx);
	assert_true(target[0] == 10 && target[1] == 20);
	RETRY(&a, fi_inject_atomic(a.ep, &one, 1, 1, (uintptr_t)mem, key, FI_UINT64, FI_SUM));
	real = (double *)(mem + 64);
	*real = 2;
	RETRY(&a, fi_fetch_atomic(a.ep, &half, 1, NULL, &was, NULL, 1, (uintptr_t)mem + 64, key,
				  FI_DOUBLE, FI_PROD, NULL));
	node_wait(&a, a.tx);
	assert_true(*real == 1 && was == 2);
	assert_int_equal(target[0], 11); /* in order: the injected one was before */
	node_quiet(&a, a.tx);
	end();
}

static void test_atomic_messages(void **state)
{
	uint32_t operand[8], compare[8], result[8] = {0}, *target;
	struct fi_ioc in[2] = {{operand, 3}, {operand + 3, 5}}, cmp = {compare, 8};
	struct fi_ioc out[2] = {{result, 4}, {result + 4, 4}};
	struct fi_rma_ioc remote;
	struct fi_msg_atomic m = {.msg_iov = in,
				  .iov_count = 2,
				  .addr = 1,
				  .rma_iov = &remote,
				  .rma_iov_count = 1,
				  .datatype = FI_UINT32,
				  .op = FI_BXOR};

	(void)state;
	begin(NULL);
	target = (uint32_t *)mem;
	remote = (struct fi_rma_ioc){(uintptr_t)mem, 8, key};
	for (uint32_t i = 0; i < 8; i++) {
		target[i] = i;
		operand[i] = 0xf0;
		compare[i] = i % 2 ? 0xf0 | i : 1000;
	}
	RETRY(&a, fi_atomicmsg(a.ep, &m, 0));
	node_wait(&a, a.tx);
	RETRY(&a, fi_fetch_atomicmsg(a.ep, &m, out, NULL, 2, FI_COMPLETION));
	node_wait(&a, a.tx);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(result[i] == (i ^ 0xf0) && target[i] == i);
	RETRY(&a, fi_atomicmsg(a.ep, &m, FI_DELIVERY_COMPLETE));
	node_wait(&a, a.tx);
	m.op = FI_CSWAP;
	RETRY(&a, fi_compare_atomicmsg(a.ep, &m, &cmp, NULL, 1, out, NULL, 2, 0));
	node_wait(&a, a.tx);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(result[i], i ^ 0xf0);
		assert_int_equal(target[i], i % 2 ? 0xf0 : i ^ 0xf0);
	}
	end();
}

static void test_atomic_errors(void **state)
{
	uint64_t v = 1, r;
	size_t count;
	struct fi_atomic_attr attr;
	struct fid_mr *ro;

	(void)state;
	begin(NULL);
	OK(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &count));
	assert_true(count >= 1);
	OK(fi_compare_atomicvalid(a.ep, FI_UINT64, FI_CSWAP, &count));
	assert_int_equal(fi_atomicvalid(a.ep, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
	assert_int_equal(fi_fetch_atomicvalid(a.ep, FI_UINT64, FI_CSWAP, &count), -FI_EOPNOTSUPP);
	OK(fi_query_atomic(a.domain, FI_INT32, FI_MIN, &attr, FI_FETCH_ATOMIC));
	assert_int_equal(attr.size, 4);
	assert_int_equal(fi_query_atomic(a.domain, FI_INT32, FI_MIN, &attr, FI_TAGGED),
			 -FI_EBADFLAGS);
	assert_int_equal(
		fi_atomic(a.ep, &v, 1, NULL, 1, (uintptr_t)mem, key, FI_DOUBLE, FI_BAND, NULL),
		-FI_EOPNOTSUPP);
	OK(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &count));
	assert_int_equal(fi_atomic(a.ep, buf, count + 1, NULL, 1, (uintptr_t)mem, key, FI_UINT64,
				   FI_SUM, NULL),
			 -FI_EMSGSIZE);
	assert_int_equal(
		fi_atomic(a.ep, buf, 0, NULL, 1, (uintptr_t)mem, key, FI_UINT64, FI_SUM, NULL),
		-FI_EINVAL);
	RETRY(&a,
	      fi_atomic(a.ep, &v, 1, NULL, 1, (uintptr_t)mem, key ^ 0x77, FI_UINT64, FI_SUM, NULL));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	RETRY(&a, fi_atomic(a.ep, &v, 1, NULL, 1, (uintptr_t)mem + LEN - 4, key, FI_UINT64, FI_SUM,
			    NULL));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	OK(fi_mr_reg(b.domain, mem, LEN, FI_REMOTE_READ, 0, 0, 0, &ro, NULL));
	RETRY(&a, fi_fetch_atomic(a.ep, &v, 1, NULL, &r, NULL, 1, (uintptr_t)mem, fi_mr_key(ro),
				  FI_UINT64, FI_SUM, NULL));
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	OK(fi_close(&ro->fid));
	end();
}

/* Lists that are none, and memory that has gone: an error, and nobody dies. */
/* Far below all others: what another thread maps while the page is gone is put above it. */
static uint8_t *far_page(size_t page)
{
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *near = mmap(NULL, page, prot, flags, -1, 0), *far;

	assert_ptr_not_equal(near, MAP_FAILED);
	far = mmap((void *)((uintptr_t)near - ((uintptr_t)1 << 33)), page, prot, flags, -1, 0);
	assert_ptr_not_equal(far, MAP_FAILED);
	munmap(near, page);
	return far;
}

static void test_atomic_nonsense(void **state)
{
	struct fi_ioc ioc[2] = {{buf, SIZE_MAX}, {buf, 2}};
	long page = sysconf(_SC_PAGESIZE);
	uint64_t v = 1;
	struct fid_mr *lost;
	uint8_t *gone;

	(void)state;
	begin(NULL);
	assert_int_equal(
		fi_atomicv(a.ep, ioc, NULL, 2, 1, (uintptr_t)mem, key, FI_UINT8, FI_SUM, NULL),
		-FI_EINVAL);
	assert_int_equal(fi_atomicv(a.ep, ioc, NULL, (size_t)1 << 40, 1, (uintptr_t)mem, key,
				    FI_UINT8, FI_SUM, NULL),
			 -FI_EINVAL);
	assert_int_equal(
		fi_atomicv(a.ep, NULL, NULL, 1, 1, (uintptr_t)mem, key, FI_UINT8, FI_SUM, NULL),
		-FI_EINVAL);
	for (int i = 0; i < 2; i++) {
		gone = far_page((size_t)page);
		OK(fi_mr_reg(b.domain, gone, (size_t)page, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0,
			     0, &lost, NULL));
		if (i)
			assert_int_equal(mprotect(gone, (size_t)page, PROT_READ), 0);
		else
			assert_int_equal(munmap(gone, (size_t)page), 0);
		RETRY(&a, fi_atomic(a.ep, &v, 1, NULL, 1, (uintptr_t)gone, fi_mr_key(lost),
				    FI_UINT64, FI_SUM, NULL));
		assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
		OK(fi_close(&lost->fid));
	}
	munmap(gone, (size_t)page);
	end();
}

static void wait_count(uint64_t n)
{
	for (int i = 0; i < 10000000 && fi_cntr_read(a.cntr) < n; i++)
		node_drive(&a);
	assert_int_equal(fi_cntr_read(a.cntr), n);
}

static void test_counters(void **state)
{
	struct node_conf conf = {.cntr = true, .bind_flags = FI_SELECTIVE_COMPLETION};
	uint64_t one = 1, r;

	(void)state;
	begin(&conf);
	RETRY(&a, fi_write(a.ep, buf, 10, NULL, 1, (uintptr_t)mem, key, NULL));
	RETRY(&a, fi_inject_write(a.ep, buf, 10, 1, (uintptr_t)mem, key));
	/* Each of those that are under way together has memory of its own. */
	RETRY(&a, fi_read(a.ep, buf + 64, 10, NULL, 1, (uintptr_t)mem, key, NULL));
	RETRY(&a, fi_fetch_atomic(a.ep, &one, 1, NULL, &r, NULL, 1, (uintptr_t)mem, key, FI_UINT64,
				  FI_SUM, NULL));
	RETRY(&a, fi_tinject(a.ep, buf, 10, 1, 5));
	RETRY(&b, fi_trecv(b.ep, buf + 128, 10, NULL, 0, 5, 0, NULL));
	wait_count(5);
	assert_int_equal(fi_cntr_readerr(a.cntr), 0);
	for (int i = 0; i < 10000000 && fi_cntr_read(b.cntr) < 1; i++)
		node_drive(&b);
	assert_int_equal(fi_cntr_read(b.cntr), 1);
	/* the last one: see rc() */
	RETRY(&a, fi_write(a.ep, buf, 10, NULL, 1, (uintptr_t)mem, key ^ 0x99, NULL));
	for (int i = 0; i < 10000000 && !fi_cntr_readerr(a.cntr); i++)
		node_drive(&a);
	assert_int_equal(fi_cntr_readerr(a.cntr), 1);
	assert_int_equal(node_wait_err(&a, a.tx).err, FI_EACCES);
	OK(fi_cntr_set(a.cntr, 100));
	OK(fi_cntr_add(a.cntr, 2));
	OK(fi_cntr_seterr(a.cntr, 3));
	OK(fi_cntr_adderr(a.cntr, 4));
	assert_int_equal(fi_cntr_read(a.cntr), 102);
	assert_int_equal(fi_cntr_readerr(a.cntr), 7);
	node_quiet(&a, a.tx);
	end();
}

NODE_MAIN(cmocka_unit_test(test_read_write), cmocka_unit_test(test_full),
	  cmocka_unit_test(test_pieces), cmocka_unit_test(test_inject_and_data),
	  cmocka_unit_test(test_data), cmocka_unit_test(test_data_many),
	  cmocka_unit_test(test_data_refused), cmocka_unit_test(test_data_unread),
	  cmocka_unit_test(test_errors), cmocka_unit_test(test_regions),
	  cmocka_unit_test(test_atomics), cmocka_unit_test(test_atomic_messages),
	  cmocka_unit_test(test_atomic_nonsense), cmocka_unit_test(test_atomic_errors),
	  cmocka_unit_test(test_counters))
