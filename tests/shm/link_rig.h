/* What the tests of links share: doorbells, ports with names of their own, a link between
 * two ends in one process, and raw sockets that say what no shm_link would. */
#ifndef WEFT_TESTS_SHM_LINK_RIG_H
#define WEFT_TESTS_SHM_LINK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shm_link.h"
#include "shm_msg.h"

#define RIG_RING SHM_RING_MIN

/* For cmocka_unit_test_setup_teardown: fails a test that leaks descriptors. */
int rig_count_before(void **state);
int rig_count_after(void **state);

int rig_bell(void);
uint64_t rig_bell_count(int bell); /* how often it was rung since the last time */
uint64_t rig_name(void);           /* one that nobody uses */

/* A port and two ends that are up. */
struct rig {
	struct shm_port port;
	struct shm_link a, b; /* a has connected, b has accepted */
	int bell_a, bell_b;
};

void rig_up(struct rig *r, uint32_t ring);
void rig_down(struct rig *r);

/* Waits until fd is readable; fails after ten seconds. */
void rig_wait(int fd);

/* Raw ends: a socket that listens under a name, or is connected to it. */
int rig_raw_listen(uint64_t name);
int rig_raw_connect(uint64_t name);
/* Sends any bytes with any descriptors. */
void rig_raw_send(int sock, const void *buf, size_t len, const int *fds, int n);

int rig_memfd(size_t bytes, int seals);

#endif
