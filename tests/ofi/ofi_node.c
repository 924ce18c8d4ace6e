#include "ofi_node.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util_clock.h"

#define PATIENCE (10 * UTIL_NS_PER_S)
#define QUIET    (20 * UTIL_NS_PER_MS)

static struct fi_info *get_info(const struct node_conf *conf)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	assert_non_null(hints);
	hints->caps = conf->caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = MR_BITS;
	hints->domain_attr->av_type = conf->av_type;
	hints->tx_attr->op_flags = conf->tx_op_flags;
	hints->fabric_attr->prov_name = strdup("weft");
	OK(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info));
	assert_string_equal(info->fabric_attr->prov_name, "weft");
	fi_freeinfo(hints);
	return info;
}

void node_open(struct node *n, const struct node_conf *conf)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = conf->wait_obj};
	struct fi_av_attr av = {.type = conf->av_type};
	struct fi_cntr_attr cntr = {.wait_obj = FI_WAIT_UNSPEC};
	size_t len = sizeof(n->name);

	memset(n, 0, sizeof(*n));
	n->info = get_info(conf);
	OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->tx, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->rx, NULL));
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->tx->fid, FI_TRANSMIT | conf->bind_flags));
	OK(fi_ep_bind(n->ep, &n->rx->fid, FI_RECV | conf->bind_flags));
	if (conf->cntr) {
		OK(fi_cntr_open(n->domain, &cntr, &n->cntr, NULL));
		OK(fi_ep_bind(n->ep, &n->cntr->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE));
	}
	OK(fi_enable(n->ep));
	OK(fi_getname(&n->ep->fid, n->name, &len));
	assert_int_equal(len, ADDR_LEN);
}

void node_close(struct node *n)
{
	OK(fi_close(&n->ep->fid));
	OK(fi_close(&n->tx->fid));
	OK(fi_close(&n->rx->fid));
	if (n->cntr)
		OK(fi_close(&n->cntr->fid));
	OK(fi_close(&n->av->fid));
	OK(fi_close(&n->domain->fid));
	OK(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

void pair_open(struct node *a, struct node *b, const struct node_conf *conf)
{
	uint8_t names[2 * ADDR_LEN];
	fi_addr_t got[2];

	node_open(a, conf);
	node_open(b, conf);
	a->others[0] = b->others[1] = a;
	a->others[1] = b->others[0] = b;
	memcpy(names, a->name, ADDR_LEN);
	memcpy(names + ADDR_LEN, b->name, ADDR_LEN);
	assert_int_equal(fi_av_insert(a->av, names, 2, got, 0, NULL), 2);
	assert_true(got[0] == 0 && got[1] == 1);
	assert_int_equal(fi_av_insert(b->av, names, 2, got, 0, NULL), 2);
	assert_true(got[0] == 0 && got[1] == 1);
}

void pair_close(struct node *a, struct node *b)
{
	node_close(a);
	node_close(b);
}

void node_drive(struct node *n)
{
	for (int i = 0; i < 2; i++)
		if (n->others[i])
			fi_cq_read(n->others[i]->tx, NULL, 0);
	if (!n->others[0])
		fi_cq_read(n->tx, NULL, 0);
}

static ssize_t next(struct node *n, struct fid_cq *cq, struct fi_cq_tagged_entry *e, fi_addr_t *src,
		    uint64_t patience)
{
	uint64_t end = util_now_ns() + patience;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(cq, e, 1, src)) == -FI_EAGAIN && util_now_ns() < end)
		node_drive(n);
	return ret;
}

struct fi_cq_tagged_entry node_wait_from(struct node *n, struct fid_cq *cq, fi_addr_t *src)
{
	struct fi_cq_tagged_entry e;

	assert_int_equal(next(n, cq, &e, src, PATIENCE), 1);
	return e;
}

struct fi_cq_tagged_entry node_wait(struct node *n, struct fid_cq *cq)
{
	fi_addr_t src;

	return node_wait_from(n, cq, &src);
}

struct fi_cq_err_entry node_wait_err(struct node *n, struct fid_cq *cq)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	assert_int_equal(next(n, cq, &e, &src, PATIENCE), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

void node_quiet(struct node *n, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	assert_int_equal(next(n, cq, &e, &src, QUIET), -FI_EAGAIN);
}

void fill(void *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

void check_filled(const void *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)buf)[i] != (uint8_t)(i * 7 + (i >> 8) + seed))
			fail_msg("byte %zu of %zu is wrong", i, len);
}

int node_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	(void)argv;
	if (len < 0)
		return 99;
	path[len] = '\0';
	slash = strrchr(path, '/'); /* BUILD/bin/test: the plugin is in BUILD/lib */
	strcpy(slash, "/../lib");
	setenv("FI_PROVIDER_PATH", path, 0);
	setenv("FI_PROVIDER", "weft", 0);
	alarm(100);
	return argc > 1 ? 99 : _cmocka_run_group_tests("ofi", tests, n, NULL, NULL);
}
