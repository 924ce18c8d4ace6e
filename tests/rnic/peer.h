/* A peer that is no device: a socket in the hands of the test, which speaks the
 * protocol by means of wire/ and breaks it wherever it likes.
 *
 * The victim is an ordinary end. Its peer's number is lower than its own, so that it
 * waits for the connection. A `court` is a victim in the middle of memory that nobody
 * may touch, beside a pair of honest ends that must not notice anything.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include "rig.h"
#include "wire_mpa.h"
#include "wire_rdmap.h"
#include "wire_weft.h"

#define PEER_QPN 0x000105
#define PEER_PSN 0x00abcd

struct peer {
	int fd;
	bool crc;
	uint32_t ctl_msn;
	uint8_t rx[2 * 65536 + 1024];
	size_t rx_len;
};

/* ---- the socket ---- */

void peer_dial(struct peer *p, uint16_t port);
void peer_hang_up(struct peer *p);
/* Whatever the victim does with them: closing early is its right. */
void peer_write(struct peer *p, const void *bytes, size_t len);
/* Waits until the victim has closed the connection; what it says before is dropped. */
bool peer_closed(struct peer *p, unsigned int ms);

/* ---- the handshake ---- */

struct rig_addr peer_addr(const struct end *victim);
struct wire_hello peer_hello(const struct end *victim);
size_t peer_request(const struct wire_hello *h, uint8_t *buf); /* WIRE_MPA_HS_MAX bytes */
/* Reads the answer: 1 accepted, 0 rejected, -1 closed without one. */
int peer_answer(struct peer *p, unsigned int ms);
/* All of it, and the first word; the victim is ready to receive. */
void peer_meet(struct peer *p, const struct end *victim);

/* ---- frames ---- */

/* A whole FPDU with a good checksum. Returns its length. */
size_t peer_seal(uint8_t *fpdu, const void *ulpdu, size_t len);
void peer_ulpdu(struct peer *p, const void *ulpdu, size_t len);
void peer_frame(struct peer *p, const struct wire_seg *seg, const void *payload, size_t len);
void peer_control(struct peer *p, uint8_t type, uint8_t arg, uint32_t seq);
/* The next frame from the victim; false when there is none in time or it closed. */
bool peer_next(struct peer *p, struct wire_seg *seg, uint8_t *payload, size_t *len,
	       unsigned int ms);
/* Skips control messages other than this type (0: all of them). */
bool peer_next_data(struct peer *p, struct wire_seg *seg, uint8_t *payload, size_t *len);
bool peer_next_control(struct peer *p, uint8_t type, struct wire_ctl *ctl);

/* ---- the court ---- */

#define COURT_OPEN (64 * 1024) /* bytes that the peer may read and write */

struct court {
	struct rig rig;
	struct pair honest; /* shares the rig */
	uint8_t *map;       /* canary | open region | canary, all mapped */
	size_t side;        /* length of either canary */
	struct ibv_mr *open_mr, *closed_mr, *foreign_mr;
	struct ibv_pd *foreign_pd;
	struct end victim;
	uint64_t rounds;
};

void court_open(struct court *c);
void court_close(struct court *c);
/* The victim, new and at RTS, waiting for its peer. */
void court_victim(struct court *c);
void court_dismiss(struct court *c);
uint8_t *court_memory(const struct court *c); /* the open region */
/* Nothing outside of the open region has changed, and honest traffic flows. */
void court_check(struct court *c);

#endif
