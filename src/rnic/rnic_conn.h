/* Connections: MPA on TCP below RC and UC queue pairs.
 *
 * There is no connection manager: the number of a queue pair is the port of a listener
 * (16 bits) and an index (8 bits), so whoever knows the peer's address and number can
 * connect. Both queue pairs learn of each other independently, at RTR; the one with
 * the lower number connects, the other waits. The MPA private data names both (the
 * hello of wire_weft.h). A connection that comes before its queue pair is ready is
 * held for a while.
 *
 * RFC 5044 lets the accepting side send only after it has received: the connecting
 * side therefore sends a control message at once.
 */
#ifndef WEFT_RNIC_CONN_H
#define WEFT_RNIC_CONN_H

#include "wire_mpa.h"
#include "rnic_qp.h"

enum rnic_conn_state {
	RNIC_CONN_CONNECTING, /* TCP */
	RNIC_CONN_REQUEST,    /* we sent the request and wait for the reply */
	RNIC_CONN_ACCEPTED,   /* we wait for the request */
	RNIC_CONN_HELD,       /* request is here, the queue pair is not ready */
	RNIC_CONN_REPLIED,    /* we sent the reply and wait for the first FPDU */
	RNIC_CONN_UP,
	RNIC_CONN_LINGER, /* said all we had to say; waits for the peer's end */
};

/* A response that the peer is owed. */
struct rnic_job {
	bool atomic;
	uint32_t stag; /* read: the peer's sink. atomic: request id */
	uint64_t to;
	uint32_t len, off;
	uint32_t src_key;
	uint64_t src; /* iova; atomic: the value */
};

struct rnic_conn {
	struct rnic_io io; /* first */
	struct rnic_engine *e;
	enum rnic_conn_state state;
	struct rnic_qp *qp;      /* NULL: not yet, or not any more */
	struct list_head link;   /* on e->conns */
	struct rnic_timer timer; /* handshake, linger */
	struct in_addr peer;
	struct wire_hello hello; /* the peer's, while held */
	bool crc, tx_marked, rx_marked;

	/* Receive: a frame of which only a part is here. */
	uint8_t *part;
	size_t part_len, part_cap;
	struct wire_mpa_mark rx_mark, tx_mark;

	/* Transmit: bytes that the kernel did not take. */
	uint8_t *pend;
	size_t pend_len, pend_off, pend_cap;

	/* Control messages that are owed. */
	struct rnic_due due;
	uint32_t ctl_msn;
	uint64_t unacked; /* bytes of messages executed since the last acknowledgement */
	bool owe_ack, owe_rnr, owe_damaged, owe_pace, owe_ready, owe_retry, owe_probe;
	bool lazy;        /* the peer does not wait for acknowledgements */
	bool lazy_wanted; /* what we told the peer of ourselves */
	uint32_t ready_seq, retry_seq;
	struct rnic_job *jobs; /* ring */
	uint32_t job_head, job_tail, job_cap, job_max;
	uint32_t atomic_msn;
	bool turn;      /* whose turn it is: responses or requests */
	bool want_pump; /* something changed that may let frames go out */
	bool owe_term;
	bool failed; /* a response could not be built: the queue pair goes to error */
	struct wire_term term;
	struct ibv_pd *pd; /* whose memory responses may read */
};

struct rnic_listener {
	struct rnic_io io; /* first */
	struct list_head link;
	struct rnic_ctx *ctx;
	struct rnic_timer pause; /* out of descriptors */
	uint16_t port;
	uint16_t used;
	uint8_t next; /* indices are handed out in turn, so that none returns soon */
	uint8_t map[32];
};

/* ---- rnic_listen.c ---- */

/* Finds a number for an RC or UC queue pair. 0 or -errno. */
int rnic_listen_get(struct rnic_qp *qp);
void rnic_listen_put(struct rnic_qp *qp);

/* ---- rnic_conn.c: opening and closing ---- */

/* The queue pair reached RTR: connect, or look for a connection that is held. */
void rnic_conn_start(struct rnic_qp *qp);
void rnic_conn_accepted(struct rnic_engine *e, int fd, struct in_addr peer);
/* There is no socket for one: a word about it, once. What waits for it goes on trying, as long as
 * its queue pair does. */
void rnic_conn_scarce(int err);
/* The queue pair has no more use for it. What is owed is still sent, if it can be
 * sent within a second. */
void rnic_conn_release(struct rnic_conn *c);
/* The peer is gone: closed, reset, or talked nonsense. */
void rnic_conn_lost(struct rnic_conn *c);
/* Answers a violation: Terminate, then release. The queue pair goes to error. */
void rnic_conn_terminate(struct rnic_conn *c, struct wire_term *why, const uint8_t *ulpdu,
			 size_t len);
/* Whether the peer expects the sequence number that we start with. */
bool rnic_conn_psn_fits(const struct rnic_qp *qp, const struct rnic_conn *c);
/* It does not, as we learn at RTS. */
void rnic_conn_disown(struct rnic_conn *c);
void rnic_conn_free(struct rnic_io *io);

/* ---- rnic_tx.c, rnic_rx.c: traffic ---- */

/* Sends whatever can be sent. */
void rnic_stream_pump(struct rnic_conn *c);
bool rnic_stream_ready(struct rnic_io *io, uint32_t events);
/* Hands these bytes to the kernel, or keeps what it does not take. 0 or -errno. */
int rnic_stream_write(struct rnic_conn *c, const uint8_t *buf, size_t len);
/* A message of this length was executed. The acknowledgement goes out with the next
 * frame, or when nothing more comes, or when enough is owed. */
void rnic_stream_owe_ack(struct rnic_conn *c, size_t bytes);

/* ---- rnic_frame.c: one FPDU in a buffer ---- */

struct rnic_frame {
	uint8_t *fpdu;
	size_t ulpdu_len; /* built so far, without direct payload */
	size_t direct;    /* length of payload that is not copied into the frame */
	uint32_t crc;
};

/* Begins an FPDU with a DDP header; the payload is appended behind it and the frame
 * closed. The buffer must have room for WIRE_MPA_FPDU_MAX. */
void rnic_frame_begin(struct rnic_frame *f, uint8_t *buf, const struct wire_seg *seg,
		      size_t payload_len, bool crc);
static inline uint8_t *rnic_frame_payload(struct rnic_frame *f)
{
	return f->fpdu + WIRE_MPA_LEN_HDR + f->ulpdu_len;
}
void rnic_frame_add(struct rnic_frame *f, const void *data, size_t len, bool crc);
size_t rnic_frame_end(struct rnic_frame *f, bool crc);
size_t rnic_frame_control(struct rnic_conn *c, uint8_t *buf, uint8_t type, uint8_t arg,
			  uint32_t seq);

/* Builds the next response frame of a connection; 0 when none is owed. */
size_t rnic_rsp_frame(struct rnic_conn *c, uint8_t *buf);

#endif
