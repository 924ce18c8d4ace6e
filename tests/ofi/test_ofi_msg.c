/* Messages between two endpoints of one process. */
#include "ofi_node.h"

#include <stdlib.h>
#include <string.h>
#include "util_clock.h"

#define LONGEST (1 << 20)

static struct node a, b;
static uint8_t *tx, *rx;

static void begin(const struct node_conf *conf)
{
	static const struct node_conf plain;

	pair_open(&a, &b, conf ? conf : &plain);
	tx = malloc(LONGEST);
	rx = malloc(LONGEST);
	assert_true(tx && rx);
}

static void end(void)
{
	pair_close(&a, &b);
	free(tx);
	free(rx);
}

static const size_t sizes[] = {0, 1, 100, 4096, 8192, 8193, 100000, LONGEST};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_tagged(void **state)
{
	int ctx[2];

	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < 2 * SIZES; i++) {
		size_t len = sizes[i / 2];
		struct fi_cq_tagged_entry e;
		fi_addr_t src = 99;

		fill(tx, len, i);
		if (i % 2)
			RETRY(&b, fi_trecv(b.ep, rx, LONGEST, NULL, 0, 0x100 + i, 0, &ctx[1]));
		RETRY(&a, fi_tsenddata(a.ep, tx, len, NULL, i + 7, 1, 0x100 + i, &ctx[0]));
		if (!(i % 2))
			RETRY(&b, fi_trecv(b.ep, rx, LONGEST, NULL, FI_ADDR_UNSPEC, 0x100, 0xff,
					   &ctx[1]));
		e = node_wait_from(&b, b.rx, &src);
		assert_ptr_equal(e.op_context, &ctx[1]);
		assert_int_equal(e.len, len);
		assert_int_equal(e.tag, 0x100 + i);
		assert_int_equal(e.data, i + 7);
		assert_int_equal(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		assert_int_equal(src, 0);
		check_filled(rx, len, i);
		e = node_wait(&a, a.tx);
		assert_ptr_equal(e.op_context, &ctx[0]);
		assert_int_equal(e.flags, FI_SEND | FI_TAGGED);
	}
	end();
}

static void test_untagged(void **state)
{
	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < SIZES; i++) {
		struct iovec iov[3] = {{tx, sizes[i] / 3},
				       {tx + sizes[i] / 3, sizes[i] / 3},
				       {tx + 2 * (sizes[i] / 3), sizes[i] - 2 * (sizes[i] / 3)}};
		struct iovec to[2] = {{rx, sizes[i] / 2}, {rx + sizes[i] / 2, LONGEST / 2}};
		struct fi_cq_tagged_entry e;

		fill(tx, sizes[i], i);
		RETRY(&a, fi_sendv(a.ep, iov, NULL, 3, 1, NULL));
		RETRY(&b, fi_recvv(b.ep, to, NULL, 2, 0, NULL));
		e = node_wait(&b, b.rx);
		assert_int_equal(e.len, sizes[i]);
		assert_int_equal(e.flags, FI_RECV | FI_MSG);
		check_filled(rx, sizes[i], i);
		node_wait(&a, a.tx);
	}
	/* tagged and untagged do not meet */
	RETRY(&b, fi_trecv(b.ep, rx, 10, NULL, 0, 0, UINT64_MAX, NULL));
	RETRY(&a, fi_send(a.ep, tx, 4, NULL, 1, NULL));
	node_wait(&a, a.tx);
	node_quiet(&b, b.rx);
	RETRY(&b, fi_recv(b.ep, rx, 10, NULL, 0, NULL));
	assert_int_equal(node_wait(&b, b.rx).flags, FI_RECV | FI_MSG);
	end();
}

/* Nothing but the message itself tells of an injected one, and its buffer is ours at once. */
static void test_inject(void **state)
{
	size_t most;

	(void)state;
	begin(NULL);
	most = a.info->tx_attr->inject_size;
	for (unsigned int i = 0; i < 4; i++) {
		size_t len = i % 2 ? most : 10;
		struct fi_cq_tagged_entry e;

		fill(tx, len, i);
		switch (i / 2) {
		case 0:
			RETRY(&a, fi_tinjectdata(a.ep, tx, len, 5, 1, 3));
			memset(tx, 0, len);
			RETRY(&b, fi_trecv(b.ep, rx, LONGEST, NULL, 0, 3, 0, NULL));
			break;
		default:
			RETRY(&a, fi_inject(a.ep, tx, len, 1));
			memset(tx, 0, len);
			RETRY(&b, fi_recv(b.ep, rx, LONGEST, NULL, 0, NULL));
		}
		e = node_wait(&b, b.rx);
		assert_int_equal(e.len, len);
		assert_int_equal(e.data, i / 2 ? 0 : 5);
		check_filled(rx, len, i);
	}
	node_quiet(&a, a.tx);
	assert_int_equal(fi_tinject(a.ep, tx, most + 1, 1, 3), -FI_EMSGSIZE);
	assert_int_equal(fi_injectdata(a.ep, tx, most + 1, 0, 1), -FI_EMSGSIZE);
	end();
}

static void test_order_and_sources(void **state)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	(void)state;
	begin(NULL);
	/* b sends to itself, too */
	for (int i = 0; i < 20; i++) {
		tx[i] = (uint8_t)i;
		RETRY(&a, fi_tinject(a.ep, tx + i, 1, 1, 7));
	}
	RETRY(&b, fi_tinject(b.ep, "x", 1, 1, 7));
	/* only of the one that is named */
	RETRY(&b, fi_trecv(b.ep, rx, 1, NULL, 1, 7, 0, NULL));
	node_wait_from(&b, b.rx, &src);
	assert_int_equal(rx[0], 'x');
	assert_int_equal(src, 1);
	for (int i = 0; i < 20; i++) {
		RETRY(&b, fi_trecv(b.ep, rx, 1, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, NULL));
		e = node_wait_from(&b, b.rx, &src);
		assert_int_equal(rx[0], i);
		assert_int_equal(e.tag, 7);
		assert_int_equal(src, 0);
	}
	end();
}

static void test_truncation(void **state)
{
	int ctx;

	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < 4; i++) {
		size_t len = i / 2 ? 100000 : 1000;
		struct fi_cq_err_entry err;

		fill(tx, len, i);
		if (i % 2)
			RETRY(&b, fi_trecv(b.ep, rx, 300, NULL, 0, 1, 0, &ctx));
		RETRY(&a, fi_tsend(a.ep, tx, len, NULL, 1, 1, NULL));
		if (!(i % 2))
			RETRY(&b, fi_trecv(b.ep, rx, 300, NULL, 0, 1, 0, &ctx));
		err = node_wait_err(&b, b.rx);
		assert_int_equal(err.err, FI_ETRUNC);
		assert_ptr_equal(err.op_context, &ctx);
		assert_int_equal(err.len, 300);
		assert_int_equal(err.olen, len - 300);
		assert_int_equal(err.tag, 1);
		assert_non_null(fi_cq_strerror(b.rx, err.prov_errno, NULL, NULL, 0));
		check_filled(rx, 300, i);
		node_wait(&a, a.tx);
	}
	end();
}

static void test_cancel(void **state)
{
	int ctx[3];
	struct fi_cq_err_entry err;

	(void)state;
	begin(NULL);
	assert_int_equal(fi_cancel(&b.ep->fid, &ctx[0]), -FI_ENOENT);
	for (int i = 0; i < 3; i++)
		RETRY(&b, fi_trecv(b.ep, rx + i, i == 2 ? LONGEST - 2 : 1, NULL,
				   i ? 0 : FI_ADDR_UNSPEC, 5, 0, &ctx[i]));
	OK(fi_cancel(&b.ep->fid, &ctx[0]));
	err = node_wait_err(&b, b.rx);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &ctx[0]);
	/* one that has told its sender */
	OK(fi_cancel(&b.ep->fid, &ctx[2]));
	err = node_wait_err(&b, b.rx);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &ctx[2]);
	RETRY(&a, fi_tinject(a.ep, "y", 1, 1, 5));
	assert_ptr_equal(node_wait(&b, b.rx).op_context, &ctx[1]);
	assert_int_equal(rx[1], 'y');
	assert_int_equal(fi_cancel(&b.ep->fid, &ctx[1]), -FI_ENOENT);
	end();
}

static void wait_unexpected(void)
{
	node_wait(&a, a.tx);
	for (int i = 0; i < 1000; i++)
		node_drive(&a);
}

/* Looks, claims, throws away. */
static void test_peek(void **state)
{
	struct fi_context ctx;
	struct iovec iov = {NULL, LONGEST};
	struct fi_msg_tagged m = {.addr = 0, .tag = 9, .context = &ctx};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	(void)state;
	begin(NULL);
	OK(fi_trecvmsg(b.ep, &m, FI_PEEK));
	err = node_wait_err(&b, b.rx);
	assert_int_equal(err.err, FI_ENOMSG);
	assert_ptr_equal(err.op_context, &ctx);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? 50000 : 50;

		fill(tx, len, (unsigned int)i);
		RETRY(&a, fi_tsenddata(a.ep, tx, len, NULL, 44, 1, 9, NULL));
		if (!i)
			wait_unexpected();
		do { /* a long one is not done before it is received */
			ssize_t n;

			node_drive(&a);
			OK(fi_trecvmsg(b.ep, &m, FI_PEEK));
			n = fi_cq_read(b.rx, &e, 1);
			if (n == -FI_EAVAIL)
				assert_int_equal(fi_cq_readerr(b.rx, &err, 0), 1);
			else
				assert_int_equal(n, 1);
			if (n == 1)
				break;
		} while (true);
		assert_int_equal(e.len, len);
		assert_int_equal(e.tag, 9);
		assert_int_equal(e.data, 44);
		assert_null(e.buf);
		/* it is still there; now it is ours alone */
		OK(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_CLAIM));
		e = node_wait(&b, b.rx);
		assert_int_equal(e.len, len);
		OK(fi_trecvmsg(b.ep, &m, FI_PEEK));
		assert_int_equal(node_wait_err(&b, b.rx).err, FI_ENOMSG);
		iov.iov_base = rx;
		m.msg_iov = &iov;
		m.iov_count = 1;
		OK(fi_trecvmsg(b.ep, &m, FI_CLAIM));
		e = node_wait(&b, b.rx);
		assert_ptr_equal(e.op_context, &ctx);
		assert_int_equal(e.len, len);
		check_filled(rx, len, (unsigned int)i);
		if (i)
			node_wait(&a, a.tx);
		/* nothing is claimed any more */
		assert_int_equal(fi_trecvmsg(b.ep, &m, FI_CLAIM), -FI_EINVAL);
		m.iov_count = 0;
	}
	end();
}

static void test_discard(void **state)
{
	struct fi_context ctx;
	struct fi_msg_tagged m = {.addr = 0, .tag = 9, .context = &ctx};

	(void)state;
	begin(NULL);
	for (int i = 0; i < 4; i++) {
		size_t len = i % 2 ? 50000 : 50;

		fill(tx, len, 1);
		RETRY(&a, fi_tsend(a.ep, tx, len, NULL, 1, 9, NULL));
		for (int k = 0; k < 2000; k++)
			node_drive(&a);
		if (i / 2) {
			OK(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_DISCARD));
			assert_int_equal(node_wait(&b, b.rx).len, len);
		} else {
			OK(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_CLAIM));
			node_wait(&b, b.rx);
			OK(fi_trecvmsg(b.ep, &m, FI_CLAIM | FI_DISCARD));
			assert_ptr_equal(node_wait(&b, b.rx).op_context, &ctx);
		}
		node_wait(&a, a.tx);
		OK(fi_trecvmsg(b.ep, &m, FI_PEEK));
		assert_int_equal(node_wait_err(&b, b.rx).err, FI_ENOMSG);
	}
	node_quiet(&b, b.rx);
	end();
}

static void test_selective(void **state)
{
	struct node_conf conf = {.bind_flags = FI_SELECTIVE_COMPLETION};
	struct iovec iov, to;
	struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = 1, .tag = 2};
	struct fi_msg_tagged r = {.msg_iov = &to, .iov_count = 1, .addr = 0, .tag = 2};
	int ctx;

	(void)state;
	begin(&conf);
	iov = (struct iovec){tx, 10};
	to = (struct iovec){rx, 5};
	m.context = &ctx;
	/* silent ones */
	RETRY(&b, fi_trecv(b.ep, rx, 10, NULL, 0, 2, 0, NULL));
	RETRY(&a, fi_tsend(a.ep, tx, 10, NULL, 1, 2, NULL));
	RETRY(&b, fi_trecv(b.ep, rx, 10, NULL, 0, 2, 0, NULL));
	RETRY(&a, fi_tsendmsg(a.ep, &m, 0));
	node_quiet(&a, a.tx);
	node_quiet(&b, b.rx);
	/* loud ones */
	to.iov_len = 10;
	RETRY(&b, fi_trecvmsg(b.ep, &r, FI_COMPLETION));
	RETRY(&a, fi_tsendmsg(a.ep, &m, FI_COMPLETION));
	assert_ptr_equal(node_wait(&a, a.tx).op_context, &ctx);
	node_wait(&b, b.rx);
	/* errors are always told */
	to.iov_len = 5;
	RETRY(&b, fi_trecvmsg(b.ep, &r, 0));
	RETRY(&a, fi_tsendmsg(a.ep, &m, FI_INJECT));
	assert_int_equal(node_wait_err(&b, b.rx).err, FI_ETRUNC);
	/* a message of no pieces, as Open MPI's acknowledgements are */
	m.iov_count = 0;
	m.msg_iov = NULL;
	m.context = NULL;
	to.iov_len = 0;
	RETRY(&b, fi_trecvmsg(b.ep, &r, FI_COMPLETION));
	RETRY(&a, fi_tsendmsg(a.ep, &m, 0));
	assert_int_equal(node_wait(&b, b.rx).len, 0);
	node_quiet(&a, a.tx);
	end();
}

static void test_levels(void **state)
{
	static const uint64_t levels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					  FI_DELIVERY_COMPLETE};
	struct iovec iov;
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = 1};

	(void)state;
	begin(NULL);
	for (int i = 0; i < 6; i++) {
		iov = (struct iovec){tx, i / 3 ? 100000 : 100};
		fill(tx, iov.iov_len, (unsigned int)i);
		RETRY(&b, fi_recv(b.ep, rx, LONGEST, NULL, 0, NULL));
		RETRY(&a, fi_sendmsg(a.ep, &m, levels[i % 3]));
		node_wait(&a, a.tx);
		node_wait(&b, b.rx);
		check_filled(rx, iov.iov_len, (unsigned int)i);
	}
	end();
}

static void test_multi_recv(void **state)
{
	struct iovec iov;
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	size_t least = 1000, len = sizeof(least), used = 0;
	int ctx;
	bool over = false;

	(void)state;
	begin(NULL);
	OK(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	least = 0;
	OK(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &len));
	assert_int_equal(least, 1000);
	iov = (struct iovec){rx, 50000};
	m.context = &ctx;
	fill(tx, 20000, 1);
	RETRY(&a, fi_inject(a.ep, tx, 500, 1)); /* before there is a receive */
	for (int i = 0; i < 1000; i++)
		node_drive(&a);
	RETRY(&b, fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	for (int i = 0; !over; i++) {
		size_t size = i == 3 ? 20000 : 500;
		struct fi_cq_tagged_entry e;

		if (i)
			RETRY(&a, fi_send(a.ep, tx, size, NULL, 1, NULL));
		e = node_wait(&b, b.rx);
		assert_ptr_equal(e.op_context, &ctx);
		if (i)
			node_wait(&a, a.tx);
		assert_int_equal(e.flags & ~FI_MULTI_RECV, FI_RECV | FI_MSG);
		assert_int_equal(e.len, size);
		assert_ptr_equal(e.buf, rx + used);
		check_filled(e.buf, size, 1);
		used += size;
		if (50000 - used < 1000) {
			/* the last one says so itself, or a completion of its own does */
			if (!(e.flags & FI_MULTI_RECV)) {
				e = node_wait(&b, b.rx);
				assert_ptr_equal(e.op_context, &ctx);
				assert_int_equal(e.flags, FI_MULTI_RECV); /* it is no message */
			}
			over = true;
		}
	}
	node_quiet(&b, b.rx);
	/* cancelled before it is full */
	RETRY(&b, fi_recvmsg(b.ep, &m, FI_MULTI_RECV));
	RETRY(&a, fi_inject(a.ep, tx, 500, 1));
	node_wait(&b, b.rx);
	OK(fi_cancel(&b.ep->fid, &ctx));
	assert_int_equal(node_wait_err(&b, b.rx).err, FI_ECANCELED);
	end();
}

static void test_arguments(void **state)
{
	struct iovec iov[5] = {{0}};
	struct fi_msg_tagged t = {.msg_iov = iov, .iov_count = 1, .addr = 1};
	struct fi_msg m = {.msg_iov = iov, .iov_count = 1, .addr = 1};

	(void)state;
	begin(NULL);
	assert_int_equal(fi_tsend(a.ep, tx, 1, NULL, 2, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(a.ep, tx, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecv(a.ep, rx, 1, NULL, 77, 0, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsendv(a.ep, iov, NULL, 5, 1, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsendmsg(a.ep, &t, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(a.ep, &m, FI_FENCE), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(a.ep, &t, FI_DISCARD), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(a.ep, &t, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(a.ep, &m, FI_INJECT), -FI_EBADFLAGS);
	t.addr = 0;
	assert_int_equal(fi_trecvmsg(a.ep, &t, FI_CLAIM), -FI_EINVAL); /* no context */
	m.iov_count = 2;
	assert_int_equal(fi_recvmsg(a.ep, &m, FI_MULTI_RECV), -FI_EINVAL);
	/* lengths that mean nothing */
	iov[0] = (struct iovec){tx, SIZE_MAX};
	iov[1] = (struct iovec){tx, 2};
	assert_int_equal(fi_sendv(a.ep, iov, NULL, 2, 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_recvv(a.ep, iov, NULL, 2, 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(a.ep, &m, FI_INJECT), -FI_EINVAL);
	assert_int_equal(fi_send(a.ep, tx, (size_t)UINT32_MAX + 1, NULL, 1, NULL), -FI_EMSGSIZE);
	end();
}

/* As a default of receives it is no matter for recvmsg alone. */
static void test_multi_recv_default(void **state)
{
	uint64_t flags = FI_RECV | FI_MULTI_RECV;
	struct iovec iov[2] = {{rx, 100}, {rx + 100, 100}};

	(void)state;
	begin(NULL);
	OK(fi_control(&b.ep->fid, FI_SETOPSFLAG, &flags));
	assert_int_equal(fi_recvv(b.ep, iov, NULL, 0, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	assert_int_equal(fi_recvv(b.ep, iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	OK(fi_recvv(b.ep, iov, NULL, 1, FI_ADDR_UNSPEC, NULL));
	end();
}

/* A message that was claimed, and is not received, goes with the endpoint. */
static void test_claimed_and_closed(void **state)
{
	struct fi_context ctx;
	struct fi_msg_tagged m = {.addr = 0, .tag = 9, .context = &ctx};

	(void)state;
	begin(NULL);
	RETRY(&a, fi_tsend(a.ep, tx, 50, NULL, 1, 9, NULL));
	node_wait(&a, a.tx);
	for (int i = 0; i < 100; i++)
		node_drive(&b);
	OK(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_CLAIM));
	node_wait(&b, b.rx);
	end();
}

/* Who reads until there is no more, with room for many, gets what comes later just as well. */
static void test_drained(void **state)
{
	struct fi_cq_tagged_entry e[4];
	uint64_t until = util_now_ns() + 10 * UTIL_NS_PER_S;
	int got = 0, ended = 0;

	(void)state;
	begin(NULL);
	for (int i = 0; i < 50; i++) {
		ssize_t n;

		RETRY(&b, fi_trecv(b.ep, rx, 8, NULL, 0, 7, 0, NULL));
		RETRY(&a, fi_tinject(a.ep, tx, 8, 1, 7));
		while (got <= i && util_now_ns() < until) {
			fi_cq_read(a.tx, e, 4);
			while ((n = fi_cq_read(b.rx, e, 4)) > 0)
				got += (int)n;
			assert_int_equal(n, -FI_EAGAIN);
			ended++;
		}
		assert_int_equal(got, i + 1);
	}
	assert_true(ended >= 50);
	end();
}

/* More than the queues hold: some calls have to be repeated, nothing is lost. */
static void test_flood(void **state)
{
	int refused = 0;

	(void)state;
	begin(NULL);
	for (unsigned int i = 0; i < 5000; i++) {
		ssize_t ret;

		fill(tx, 100, i);
		while ((ret = fi_tinject(a.ep, tx, 100, 1, i)) == -FI_EAGAIN) {
			refused++;
			node_drive(&a);
		}
		assert_int_equal(ret, 0);
	}
	for (unsigned int i = 0; i < 5000; i++) {
		RETRY(&b, fi_trecv(b.ep, rx, 100, NULL, 0, i, 0, NULL));
		node_wait(&b, b.rx);
		check_filled(rx, 100, i);
	}
	print_message("%d calls were repeated\n", refused);
	end();
}

NODE_MAIN(cmocka_unit_test(test_tagged), cmocka_unit_test(test_untagged),
	  cmocka_unit_test(test_inject), cmocka_unit_test(test_order_and_sources),
	  cmocka_unit_test(test_truncation), cmocka_unit_test(test_cancel),
	  cmocka_unit_test(test_peek), cmocka_unit_test(test_discard),
	  cmocka_unit_test(test_selective), cmocka_unit_test(test_levels),
	  cmocka_unit_test(test_multi_recv), cmocka_unit_test(test_multi_recv_default),
	  cmocka_unit_test(test_claimed_and_closed), cmocka_unit_test(test_arguments),
	  cmocka_unit_test(test_drained), cmocka_unit_test(test_flood))
