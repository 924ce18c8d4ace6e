/* An endpoint and all that it needs, for tests that speak libfabric only. The plugin is found
 * through FI_PROVIDER_PATH, which main() has set to where it was built. */
#ifndef WEFT_TEST_OFI_NODE_H
#define WEFT_TEST_OFI_NODE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <cmocka.h>

#define VERSION  FI_VERSION(1, 17)
#define ADDR_LEN 28
#define MR_BITS  (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *tx, *rx;
	struct fid_cntr *cntr; /* of everything, if wanted */
	struct fid_ep *ep;
	uint8_t name[ADDR_LEN];
	struct node *others[2]; /* that are driven while this one waits */
};

struct node_conf {
	uint64_t caps;       /* 0: all */
	uint64_t bind_flags; /* FI_SELECTIVE_COMPLETION */
	uint64_t tx_op_flags;
	enum fi_wait_obj wait_obj;
	enum fi_av_type av_type;
	bool cntr;
};

/* Calls that must succeed. */
#define OK(call) assert_int_equal((long)(call), 0)

void node_open(struct node *n, const struct node_conf *conf);
void node_close(struct node *n);
/* Two nodes of one process that know each other: a is 0 and b is 1 in both vectors. */
void pair_open(struct node *a, struct node *b, const struct node_conf *conf);
void pair_close(struct node *a, struct node *b);

/* The next completion, within ten seconds; it is not an error. */
struct fi_cq_tagged_entry node_wait(struct node *n, struct fid_cq *cq);
struct fi_cq_tagged_entry node_wait_from(struct node *n, struct fid_cq *cq, fi_addr_t *src);
/* The next completion, which is an error. */
struct fi_cq_err_entry node_wait_err(struct node *n, struct fid_cq *cq);
/* Nothing comes for some milliseconds. */
void node_quiet(struct node *n, struct fid_cq *cq);
/* A call that may have to be repeated. */
#define RETRY(n, call)                                                                             \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
		while ((ret_ = (call)) == -FI_EAGAIN)                                              \
			node_drive(n);                                                             \
		assert_int_equal(ret_, 0);                                                         \
	} while (0)
void node_drive(struct node *n);

void fill(void *buf, size_t len, unsigned int seed);
void check_filled(const void *buf, size_t len, unsigned int seed);

int node_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
#define NODE_MAIN(...)                                                                             \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                                   \
                                                                                                   \
		return node_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));             \
	}

#endif
