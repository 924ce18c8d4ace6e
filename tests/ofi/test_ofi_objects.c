/* Objects: made, bound, asked, closed; and everything that is refused. */
#include "ofi_node.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct node_conf plain;

static atomic_bool stop;

static void test_av(void **state)
{
	struct node n;
	uint8_t names[3 * ADDR_LEN], back[ADDR_LEN + 4];
	fi_addr_t got[3], svc;
	size_t len = sizeof(back);
	char text[100];
	int errs[3] = {9, 9, 9};

	(void)state;
	node_open(&n, &plain);
	for (uint8_t i = 0; i < 3; i++) {
		memcpy(names + i * ADDR_LEN, n.name, ADDR_LEN);
		names[i * ADDR_LEN + 16] = (uint8_t)(i + 1); /* of the queue pair's number */
	}
	assert_int_equal(fi_av_insert(n.av, names, 3, got, FI_SYNC_ERR, errs), 3);
	assert_true(got[0] == 0 && got[1] == 1 && got[2] == 2 && !errs[0] && !errs[2]);
	OK(fi_av_lookup(n.av, 1, back, &len));
	assert_int_equal(len, ADDR_LEN);
	assert_memory_equal(back, names + ADDR_LEN, ADDR_LEN);
	len = 4;
	OK(fi_av_lookup(n.av, 1, back, &len));
	assert_int_equal(len, ADDR_LEN);
	assert_int_equal(fi_av_lookup(n.av, 3, back, &len), -FI_EINVAL);
	/* as text, and back */
	len = sizeof(text);
	assert_ptr_equal(fi_av_straddr(n.av, names, text, &len), text);
	assert_int_equal(len, strlen(text) + 1);
	assert_int_equal(strncmp(text, "fi_weft://[", 11), 0);
	assert_int_equal(fi_av_insertsvc(n.av, text, NULL, &svc, 0, NULL), 1);
	len = sizeof(back);
	OK(fi_av_lookup(n.av, svc, back, &len));
	assert_memory_equal(back, names, ADDR_LEN);
	assert_int_equal(fi_av_insertsvc(n.av, "localhost", "1", &svc, 0, NULL), -FI_EINVAL);
	/* removed, and the place taken again */
	OK(fi_av_remove(n.av, &got[1], 1, 0));
	assert_int_equal(fi_av_lookup(n.av, 1, back, &len), -FI_EINVAL);
	assert_int_equal(fi_av_remove(n.av, &got[1], 1, 0), -FI_EINVAL);
	assert_int_equal(fi_send(n.ep, text, 1, NULL, got[1], NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(n.av, names, 1, got, 0, NULL), 1);
	assert_int_equal(got[0], 1);
	assert_int_equal(fi_av_insert(n.av, names, 1, got, FI_PEEK, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_av_insert(n.av, NULL, 1, got, 0, NULL), -FI_EINVAL);
	node_close(&n);
}

/* Addresses differ if anything in them does. */
static void test_av_whole(void **state)
{
	static const size_t parts[] = {0, 11, 15, 16, 18, 20, 24, 25};
	uint8_t name[ADDR_LEN], back[ADDR_LEN];
	struct node n;

	(void)state;
	node_open(&n, &plain);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t len = sizeof(back);
		fi_addr_t got[2];
		char text[100];

		memcpy(name, n.name, ADDR_LEN);
		name[parts[i]] ^= 1;
		assert_int_equal(fi_av_insert(n.av, name, 1, &got[0], 0, NULL), 1);
		OK(fi_av_lookup(n.av, got[0], back, &len));
		assert_memory_equal(back, name, ADDR_LEN);
		len = sizeof(text);
		fi_av_straddr(n.av, name, text, &len);
		assert_int_equal(fi_av_insertsvc(n.av, text, NULL, &got[1], 0, NULL), 1);
		OK(fi_av_lookup(n.av, got[1], back, &len));
		assert_memory_equal(back, name, ADDR_LEN);
		/* no network of this device: not taken for the one that is like it */
		if (parts[i] < 12)
			assert_int_not_equal(fi_send(n.ep, text, 1, NULL, got[0], NULL), 0);
	}
	node_close(&n);
}

/* Who a message is from: the whole address counts, and of duplicates the oldest. */
static void test_av_source(void **state)
{
	struct node a, b;
	uint8_t name[ADDR_LEN], buf[8];
	fi_addr_t like, twin[2], to, src;

	(void)state;
	node_open(&a, &plain);
	node_open(&b, &plain);
	a.others[0] = b.others[1] = &a;
	a.others[1] = b.others[0] = &b;
	memcpy(name, a.name, ADDR_LEN);
	name[20] ^= 1; /* the key of an earlier endpoint with the same number */
	assert_int_equal(fi_av_insert(b.av, name, 1, &like, 0, NULL), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_av_insert(b.av, a.name, 1, &twin[i], 0, NULL), 1);
	assert_int_equal(fi_av_insert(a.av, b.name, 1, &to, 0, NULL), 1);
	for (int i = 0; i < 3; i++) {
		/* from either twin, then with only one left */
		RETRY(&b, fi_recv(b.ep, buf, sizeof(buf), NULL, twin[i > 0], NULL));
		RETRY(&a, fi_send(a.ep, "12345678", 8, NULL, to, NULL));
		node_wait(&a, a.tx);
		node_wait_from(&b, b.rx, &src);
		assert_int_equal(src, twin[i == 2]);
		if (i == 1)
			OK(fi_av_remove(b.av, &twin[0], 1, 0));
	}
	pair_close(&a, &b);
}

static void test_av_open(void **state)
{
	struct node n;
	struct fi_av_attr attr = {.name = "shared"};
	struct fid_av *av;

	(void)state;
	node_open(&n, &plain);
	assert_int_equal(fi_av_open(n.domain, &attr, &av, NULL), -FI_ENOSYS);
	attr = (struct fi_av_attr){.flags = FI_EVENT};
	assert_int_equal(fi_av_open(n.domain, &attr, &av, NULL), -FI_ENOSYS);
	attr = (struct fi_av_attr){.rx_ctx_bits = 2};
	assert_int_equal(fi_av_open(n.domain, &attr, &av, NULL), -FI_EINVAL);
	attr = (struct fi_av_attr){.type = 7};
	assert_int_equal(fi_av_open(n.domain, &attr, &av, NULL), -FI_EINVAL);
	attr = (struct fi_av_attr){.type = FI_AV_UNSPEC, .count = 1000};
	OK(fi_av_open(n.domain, &attr, &av, NULL));
	assert_int_not_equal(attr.type, FI_AV_UNSPEC);
	OK(fi_close(&av->fid));
	attr = (struct fi_av_attr){.type = FI_AV_MAP};
	OK(fi_av_open(n.domain, &attr, &av, NULL));
	assert_int_equal(fi_av_insert(av, n.name, 1, NULL, 0, NULL), -FI_EINVAL);
	OK(fi_close(&av->fid));
	node_close(&n);
}

/* Many addresses: chunks, buckets, chains. */
static void test_av_many(void **state)
{
	struct node n;
	uint8_t name[ADDR_LEN], back[ADDR_LEN];
	size_t len;

	(void)state;
	node_open(&n, &plain);
	memcpy(name, n.name, ADDR_LEN);
	for (uint32_t i = 0; i < 5000; i++) {
		fi_addr_t fi;

		memcpy(name + 16, &i, 4);
		assert_int_equal(fi_av_insert(n.av, name, 1, &fi, 0, NULL), 1);
		assert_int_equal(fi, i);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		len = sizeof(back);
		OK(fi_av_lookup(n.av, i, back, &len));
		assert_memory_equal(back + 16, &i, 4);
	}
	node_close(&n);
}

static void test_eq(void **state)
{
	struct node n;
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fi_eq_entry in = {.context = &n, .data = 5}, out = {0};
	struct fi_eq_err_entry err;
	struct fid_eq *eq;
	struct fid *fids[1];
	uint32_t event = 0;
	int fd = -1;

	(void)state;
	node_open(&n, &plain);
	OK(fi_eq_open(n.fabric, &attr, &eq, NULL));
	fids[0] = &eq->fid;
	OK(fi_trywait(n.fabric, fids, 1));
	OK(fi_control(&eq->fid, FI_GETWAIT, &fd));
	assert_true(fd >= 0);
	assert_int_equal(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), 5, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	assert_int_equal(fi_trywait(n.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(eq, &event, &out, 4, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_read(eq, &event, &out, sizeof(out), FI_PEEK), sizeof(out));
	assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), -1, 0), sizeof(out));
	assert_true(event == FI_NOTIFY && out.context == &n && out.data == 5);
	assert_int_equal(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), FI_PEEK), -FI_EBADFLAGS);
	assert_non_null(fi_eq_strerror(eq, FI_EIO, NULL, NULL, 0));
	fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0); /* left behind */
	assert_int_equal(fi_close(&n.fabric->fid), -FI_EBUSY);
	OK(fi_close(&eq->fid));
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	assert_int_equal(fi_eq_open(n.fabric, &attr, &eq, NULL), -FI_ENOSYS);
	node_close(&n);
}

static void test_endpoint_states(void **state)
{
	struct node n;
	struct fid_ep *ep;
	struct fid_av *av2;
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	uint8_t name[ADDR_LEN];
	size_t len = sizeof(name);

	(void)state;
	node_open(&n, &plain);
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_getname(&ep->fid, name, &len), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(ep, name, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(ep, name, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_ep_bind(ep, &n.av->fid, 0));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &n.tx->fid, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &n.tx->fid, 0), -FI_EINVAL);
	OK(fi_ep_bind(ep, &n.tx->fid, FI_TRANSMIT | FI_RECV));
	assert_int_equal(fi_ep_bind(ep, &n.rx->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &n.domain->fid, 0), -FI_EINVAL);
	OK(fi_av_open(n.domain, &attr, &av2, NULL));
	assert_int_equal(fi_ep_bind(ep, &av2->fid, 0), -FI_EINVAL);
	OK(fi_close(&av2->fid));
	OK(fi_enable(ep));
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(ep, &n.rx->fid, FI_RECV), -FI_EOPBADSTATE);
	len = 3;
	assert_int_equal(fi_getname(&ep->fid, name, &len), -FI_ETOOSMALL);
	assert_int_equal(len, ADDR_LEN);
	OK(fi_getname(&ep->fid, name, &len));
	assert_memory_not_equal(name, n.name, ADDR_LEN);
	assert_int_equal(fi_close(&n.tx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&n.av->fid), -FI_EBUSY);
	OK(fi_close(&ep->fid));
	node_close(&n);
}

static void test_flags_of_operations(void **state)
{
	struct node n;
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE;
	size_t v = 0, len = sizeof(v);

	(void)state;
	node_open(&n, &plain);
	OK(fi_control(&n.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	OK(fi_control(&n.ep->fid, FI_GETOPSFLAG, &flags));
	assert_int_equal(flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	flags = FI_RECV | FI_INJECT;
	assert_int_equal(fi_control(&n.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_COMPLETION;
	assert_int_equal(fi_control(&n.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	assert_int_equal(fi_control(&n.ep->fid, FI_BACKLOG, &flags), -FI_ENOSYS);
	assert_int_equal(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &v, &len),
			 -FI_ENOPROTOOPT);
	assert_int_equal(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v, 1),
			 -FI_EINVAL);
	node_close(&n);
}

static void test_queues(void **state)
{
	struct node n;
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_SET};
	struct fi_cntr_attr cattr = {.wait_obj = FI_WAIT_MUTEX_COND};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	int fd;

	(void)state;
	node_open(&n, &plain);
	assert_int_equal(fi_cq_open(n.domain, &attr, &cq, NULL), -FI_ENOSYS);
	attr = (struct fi_cq_attr){.flags = FI_PEEK};
	assert_int_equal(fi_cq_open(n.domain, &attr, &cq, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_cntr_open(n.domain, &cattr, &cntr, NULL), -FI_ENOSYS);
	/* without a wait object there is nothing to wait with */
	assert_int_equal(fi_cq_sread(n.rx, &e, 1, NULL, 1), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(n.rx), -FI_ENOSYS);
	assert_int_equal(fi_control(&n.rx->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	assert_int_equal(fi_cq_read(n.rx, &e, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(n.rx, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(n.rx, &err, FI_PEEK), -FI_EBADFLAGS);
	node_close(&n);
}

/* Smaller entries, several at a time. */
static void test_formats(void **state)
{
	static const enum fi_cq_format formats[] = {FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT,
						    FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
						    FI_CQ_FORMAT_TAGGED};
	static const size_t sizes[] = {sizeof(struct fi_cq_entry), sizeof(struct fi_cq_entry),
				       sizeof(struct fi_cq_msg_entry),
				       sizeof(struct fi_cq_data_entry),
				       sizeof(struct fi_cq_tagged_entry)};

	(void)state;
	for (size_t k = 0; k < 5; k++) {
		struct node n;
		struct fi_cq_attr attr = {.format = formats[k]};
		uint8_t buf[4 * sizeof(struct fi_cq_tagged_entry)];
		struct fid_cq *cq;
		struct fid_ep *ep;
		fi_addr_t self;
		uint8_t name[ADDR_LEN], rx[4];
		size_t len = sizeof(name);
		int ctx[3], got = 0;

		node_open(&n, &plain);
		OK(fi_cq_open(n.domain, &attr, &cq, NULL));
		OK(fi_endpoint(n.domain, n.info, &ep, NULL));
		OK(fi_ep_bind(ep, &n.av->fid, 0));
		OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(ep));
		OK(fi_getname(&ep->fid, name, &len));
		assert_int_equal(fi_av_insert(n.av, name, 1, &self, 0, NULL), 1);
		for (int i = 0; i < 3; i++) {
			OK(fi_trecv(ep, rx + i, 1, NULL, self, 0, 0, &ctx[i]));
			for (ssize_t ret = -FI_EAGAIN; ret; fi_cq_read(cq, NULL, 0))
				ret = fi_tinject(ep, "z", 1, self, 0);
		}
		while (got < 3) {
			ssize_t r = fi_cq_read(cq, buf, 4);

			assert_true(r > 0 || r == -FI_EAGAIN);
			for (ssize_t i = 0; i < r; i++) {
				void *context;

				memcpy(&context, buf + (size_t)i * sizes[k], sizeof(context));
				assert_ptr_equal(context, &ctx[got++]);
			}
		}
		OK(fi_close(&ep->fid));
		OK(fi_close(&cq->fid));
		node_close(&n);
	}
}

/* An endpoint goes with receives posted, messages under way and completions unread. */
static void test_close_in_the_middle(void **state)
{
	struct node a, b;
	static uint8_t buf[100000], in[10];

	(void)state;
	for (int i = 0; i < 5; i++) {
		pair_open(&a, &b, &plain);
		for (int k = 0; k < 10; k++) {
			OK(fi_trecv(b.ep, in, 10, NULL, 0, (uint64_t)k, 0, NULL));
			RETRY(&a, fi_tsend(a.ep, buf, k % 2 ? 10 : sizeof(buf), NULL, 1,
					   100 + (uint64_t)k, NULL));
			RETRY(&a, fi_tinject(a.ep, buf, 10, 1, 5));
		}
		for (int k = 0; k < 100 * i; k++)
			node_drive(&a);
		pair_close(&a, &b);
	}
}

static void *read_on(void *arg)
{
	struct node *n = arg;

	while (!atomic_load(&stop)) {
		struct fi_cq_tagged_entry e[8];
		fi_addr_t src[8];

		fi_cq_readfrom(n->rx, e, 8, src);
	}
	return NULL;
}

/* Endpoints come and go, and others read the queue that they share. */
static void test_close_while_reading(void **state)
{
	static uint8_t in[100], out[10];
	pthread_t thread[2];
	struct node a;

	(void)state;
	node_open(&a, &plain);
	atomic_store(&stop, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_on, &a), 0);
	for (int i = 0; i < 100; i++) {
		uint8_t name[ADDR_LEN];
		size_t len = sizeof(name);
		struct fid_ep *ep;
		fi_addr_t to;

		OK(fi_endpoint(a.domain, a.info, &ep, NULL));
		OK(fi_ep_bind(ep, &a.av->fid, 0));
		OK(fi_ep_bind(ep, &a.tx->fid, FI_TRANSMIT));
		OK(fi_ep_bind(ep, &a.rx->fid, FI_RECV));
		OK(fi_enable(ep));
		OK(fi_getname(&ep->fid, name, &len));
		assert_int_equal(fi_av_insert(a.av, name, 1, &to, 0, NULL), 1);
		for (int k = 0; k < 20; k++)
			OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
		for (int k = 0; k < 20; k++)
			fi_inject(a.ep, out, sizeof(out), to);
		for (int k = 0; k < i; k++)
			fi_cq_read(a.tx, NULL, 0);
		OK(fi_close(&ep->fid));
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	node_close(&a);
}

static void test_not_there(void **state)
{
	struct node n;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_wait *wait;
	struct fid_poll *poll;

	(void)state;
	node_open(&n, &plain);
	assert_int_equal(fi_passive_ep(n.fabric, n.info, &pep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_scalable_ep(n.domain, n.info, &ep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_wait_open(n.fabric, NULL, &wait), -FI_ENOSYS);
	assert_int_equal(fi_poll_open(n.domain, NULL, &poll), -FI_ENOSYS);
	assert_int_equal(fi_connect(n.ep, NULL, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_setname(&n.ep->fid, NULL, 0), -FI_ENOSYS);
	n.info->ep_attr->type = FI_EP_MSG;
	assert_int_equal(fi_endpoint(n.domain, n.info, &ep, NULL), -FI_EINVAL);
	node_close(&n);
}

NODE_MAIN(cmocka_unit_test(test_av), cmocka_unit_test(test_av_whole),
	  cmocka_unit_test(test_av_source), cmocka_unit_test(test_av_open),
	  cmocka_unit_test(test_av_many), cmocka_unit_test(test_eq),
	  cmocka_unit_test(test_endpoint_states), cmocka_unit_test(test_flags_of_operations),
	  cmocka_unit_test(test_queues), cmocka_unit_test(test_formats),
	  cmocka_unit_test(test_close_while_reading), cmocka_unit_test(test_close_in_the_middle),
	  cmocka_unit_test(test_not_there))
