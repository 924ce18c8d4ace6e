/* rd_paths: one RD queue pair that sends to one peer over several paths at once, and what each
 * of them was like meanwhile.
 *
 *	rd_paths recv [-p PORT] [-T LIMIT]
 *	rd_paths send HOST [-p PORT] [-T LIMIT] [-S SEED] [-l LABELS | -a] [-1 PATH]
 *	              [-n MESSAGES] [-t SECONDS] [-s SIZE] [-w WINDOW] [-x]
 *
 * The paths are the flow labels 1 to LABELS, or (-a) as many as the hosts have addresses: path i
 * from our address i to the peer's address i. With -1 only that one of them is used. The sender
 * keeps WINDOW messages on each path, until it has sent MESSAGES over each or SECONDS are over;
 * with -x it leaves silent paths alone, but for a message now and then that tells when they are
 * back. It says "going" on standard error when it begins, and prints at the end, as JSON, what the
 * device said of the paths every 20 ms.
 *
 * The receiver checks that every message comes once, in the order of posting over all paths, and
 * that every byte is right.
 *
 * Lines on the control connection, sender's left:
 *
 *	paths SIZE SEED  → GID QPN RKEY ADDRESS
 *	                 → NUMBER-OF-GIDS
 *	                 → GID (each of them)
 *	done MESSAGES    → bye
 */
#ifndef WEFT_TEST_RD_PATHS_H
#define WEFT_TEST_RD_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATHS_MAX        16
#define PATHS_SIZE_MAX   65536
#define PATHS_WINDOW_MAX 64

struct paths_opts {
	const char *host;
	uint16_t port;
	uint64_t seed;
	double limit, seconds;
	uint32_t labels, messages, size, window;
	int only; /* -1: all */
	bool addresses, avoid;
};

/* What message number i is: of odd lengths, none much shorter than the others. */
uint32_t paths_length(uint64_t seed, uint32_t size, uint32_t i);
void paths_fill(uint64_t seed, uint32_t i, uint8_t *buf, size_t len);

int paths_send(const struct paths_opts *o);

#endif
