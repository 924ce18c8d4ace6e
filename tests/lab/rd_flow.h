/* rd_flow: streams over the links of a lab, RD's and TCP's, and what became of them.
 *
 *	rd_flow recv [-p PORT] [-n SENDERS] [-O SECONDS] [-T SECONDS] [--json]
 *	rd_flow send HOST [-p PORT] [-t SECONDS] [-d SECONDS] [-s SIZE] [-w] [-l LABEL]
 *	             [-N NAME] [-c ALGORITHM]
 *
 * The receiver waits for its senders, says go to all at once, and prints a line for each when
 * all have ended. Each sends as fast as it can for -t seconds, after -d seconds: Sends of SIZE
 * bytes, or Writes (-w), each with an immediate that says whose it is; or, with -c, a TCP stream
 * with that congestion control. What counts as rate is what arrived in these seconds, without
 * the first -O of them.
 *
 * Lines on the control connection, sender's left:
 *
 *	rd NAME SECONDS DELAY SIZE   → NUMBER GID QPN RKEY ADDRESS
 *	tcp NAME SECONDS DELAY SIZE  → NUMBER
 *	data NUMBER                    (a connection of its own: the stream follows)
 *	                             → go
 *	done BYTES NOTES             → bye
 */
#ifndef WEFT_TEST_RD_FLOW_H
#define WEFT_TEST_RD_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_MAX      64        /* senders */
#define FLOW_SIZE_MAX (1 << 20) /* bytes of a message */
#define FLOW_WINDOW   32        /* requests of a sender at a time */

struct flow_opts {
	const char *host, *name, *tcp; /* tcp: its congestion control */
	uint16_t port;
	uint32_t size, label;
	double seconds, delay, omit, limit;
	int senders;
	bool writes, json;
};

int flow_recv(const struct flow_opts *o);
int flow_send(const struct flow_opts *o);

#endif
