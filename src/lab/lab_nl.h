/* rtnetlink, as much as a lab needs: requests are collected and sent in batches, because a
 * large lab takes tens of thousands of them.
 *
 * A netlink socket belongs to the network namespace that it was opened in, whatever
 * namespace its owner is in later. So one socket per node configures the whole lab.
 */
#ifndef WEFT_LAB_NL_H
#define WEFT_LAB_NL_H

#include <libmnl/libmnl.h>
#include <stdint.h>

#include "lab.h"

#define LAB_NL_BATCH 64 /* requests; their answers fit any socket buffer */

struct lab_nl {
	int fd;
	uint32_t seq;                   /* of the last request that was put */
	uint32_t n;                     /* requests in buf */
	size_t len;                     /* bytes in buf */
	char *buf;                      /* NULL until first used */
	const char *what[LAB_NL_BATCH]; /* for messages: what each request is to make */
};

/* Whoever opens many: makes sure that `need` files can be open at once. */
int lab_raise_files(uint64_t need, struct lab_error *e);

/* In the namespace that the caller is in. */
int lab_nl_open(struct lab_nl *nl, struct lab_error *e);
/* In a node's. The caller stays in that network namespace, and in the lab's user namespace. */
int lab_nl_open_on(struct lab_nl *nl, const struct lab *lab, struct fabric_node n,
		   struct lab_error *e);
void lab_nl_close(struct lab_nl *nl);

/* Room for one request, at most LAB_NL_REQUEST_MAX bytes long: its header and `extra` zeroed
 * bytes of the family's own header. Sends what has been collected when there is no room.
 * `what` completes the sentence "can not make …". NULL on failure, with e filled in.
 * The caller adds attributes with mnl_attr_put and then calls lab_nl_done. */
#define LAB_NL_REQUEST_MAX 49152
struct nlmsghdr *lab_nl_put(struct lab_nl *nl, uint16_t type, uint16_t flags, size_t extra,
			    const char *what, struct lab_error *e);
void lab_nl_done(struct lab_nl *nl, struct nlmsghdr *h);

/* Sends what has been collected and waits for the kernel's verdict. */
int lab_nl_flush(struct lab_nl *nl, struct lab_error *e);

/* Calls fn for all objects of a kind. `header` is the size of the family's own header, which
 * begins with the address family, whatever the kind. `what` completes "cannot list …". */
int lab_nl_dump(struct lab_nl *nl, uint16_t type, size_t header, uint8_t family, mnl_cb_t fn,
		void *arg, const char *what, struct lab_error *e);

#endif
