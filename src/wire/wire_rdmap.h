/* DDP (RFC 5041) and RDMAP (RFC 5040, RFC 7306): the header of every segment and
 * the payloads of the messages that have one of their own.
 *
 *   tagged   | DDP ctrl | RDMAP ctrl | STag (4) | TO (8) |                      14
 *   untagged | DDP ctrl | RDMAP ctrl | ULP (4) | QN (4) | MSN (4) | MO (4) |    18
 *
 * The decoders validate what can be validated without knowing any connection:
 * versions, the tagged bit against the opcode, queue numbers, lengths. What is
 * wrong is reported as the Terminate code that RFC 5040/5041 assign to it.
 *
 * Pure: no sockets, no allocation. Decoders accept any bytes.
 */
#ifndef WEFT_WIRE_RDMAP_H
#define WEFT_WIRE_RDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_opcode {
	WIRE_OP_WRITE = 0x0,
	WIRE_OP_READ_REQ = 0x1,
	WIRE_OP_READ_RESP = 0x2,
	WIRE_OP_SEND = 0x3,
	WIRE_OP_SEND_INV = 0x4,
	WIRE_OP_SEND_SE = 0x5,
	WIRE_OP_SEND_SE_INV = 0x6,
	WIRE_OP_TERMINATE = 0x7,
	WIRE_OP_IMM = 0x8,    /* RFC 7306 */
	WIRE_OP_IMM_SE = 0x9, /* RFC 7306 */
	WIRE_OP_ATOMIC_REQ = 0xa,
	WIRE_OP_ATOMIC_RESP = 0xb,
	/* Weft's own, only between Weft devices (wire_weft.h): RFC 5040 and 7306
	 * leave 0xc to 0xf unassigned. */
	WIRE_OP_SEND_IMM = 0xc, /* the ULP word is the immediate value */
	WIRE_OP_SEND_IMM_SE = 0xd,
	WIRE_OP_CONTROL = 0xe,
};

enum wire_qn {
	WIRE_QN_SEND = 0,
	WIRE_QN_READ_REQ = 1, /* atomic requests too */
	WIRE_QN_TERMINATE = 2,
	WIRE_QN_ATOMIC_RESP = 3,
	WIRE_QN_CONTROL = 4, /* Weft's own */
};

#define WIRE_TAGGED_HDR   14
#define WIRE_UNTAGGED_HDR 18
#define WIRE_HDR_MAX      WIRE_UNTAGGED_HDR

/* The header of one DDP segment, whichever kind. */
struct wire_seg {
	uint8_t opcode;
	bool tagged;
	bool last; /* L: the last segment of its message */
	union {
		struct {
			uint32_t stag;
			uint64_t to;
		};
		struct {
			uint32_t ulp; /* STag to invalidate, immediate, or reserved */
			uint32_t qn;
			uint32_t msn;
			uint32_t mo;
		};
	};
};

/* Terminate: who found what (RFC 5040 section 4.8, RFC 5041 section 7). IANA's
 * RDDP registry has the whole list; RFC 7306 added nothing to it. */
enum wire_layer { WIRE_LAYER_RDMAP = 0, WIRE_LAYER_DDP = 1, WIRE_LAYER_LLP = 2 };

enum wire_rdmap_etype {
	WIRE_ETYPE_RDMAP_CATASTROPHIC = 0,
	WIRE_ETYPE_RDMAP_PROTECTION = 1,
	WIRE_ETYPE_RDMAP_OPERATION = 2,
};
enum wire_rdmap_ecode {
	/* type 1, remote protection */
	WIRE_RDMAP_INVALID_STAG = 0x00,
	WIRE_RDMAP_BASE_BOUNDS = 0x01,
	WIRE_RDMAP_ACCESS = 0x02,
	WIRE_RDMAP_STAG_STREAM = 0x03,
	WIRE_RDMAP_TO_WRAP = 0x04,
	WIRE_RDMAP_STAG_NOT_INVALIDATABLE = 0x09, /* of type 2 as well */
	/* type 2, remote operation */
	WIRE_RDMAP_VERSION = 0x05,
	WIRE_RDMAP_OPCODE = 0x06,
	WIRE_RDMAP_CATASTROPHIC_STREAM = 0x07,
	WIRE_RDMAP_CATASTROPHIC_GLOBAL = 0x08,
	WIRE_RDMAP_UNSPECIFIED = 0xff, /* of both types */
};
enum wire_ddp_etype {
	WIRE_ETYPE_DDP_CATASTROPHIC = 0,
	WIRE_ETYPE_DDP_TAGGED = 1,
	WIRE_ETYPE_DDP_UNTAGGED = 2,
};
enum wire_ddp_ecode {
	/* type 1, tagged buffer */
	WIRE_DDP_T_INVALID_STAG = 0x00,
	WIRE_DDP_T_BASE_BOUNDS = 0x01,
	WIRE_DDP_T_STAG_STREAM = 0x02,
	WIRE_DDP_T_TO_WRAP = 0x03,
	WIRE_DDP_T_VERSION = 0x04,
	/* type 2, untagged buffer */
	WIRE_DDP_U_INVALID_QN = 0x01,
	WIRE_DDP_U_NO_BUFFER = 0x02,
	WIRE_DDP_U_MSN_RANGE = 0x03,
	WIRE_DDP_U_INVALID_MO = 0x04,
	WIRE_DDP_U_TOO_LONG = 0x05,
	WIRE_DDP_U_VERSION = 0x06,
};
/* RFC 5044 section 8, RFC 6581. MPA is error type 0 of the LLP. */
enum wire_llp_etype { WIRE_ETYPE_LLP_MPA = 0 };
enum wire_mpa_ecode {
	WIRE_MPA_CLOSED = 0x01,
	WIRE_MPA_CRC = 0x02,
	WIRE_MPA_MARKER = 0x03,
	WIRE_MPA_INVALID_REQ_REP = 0x04,
	WIRE_MPA_LOCAL_CATASTROPHIC = 0x05, /* from here on RFC 6581 */
	WIRE_MPA_INSUFFICIENT_IRD = 0x06,
	WIRE_MPA_NO_MATCHING_RTR = 0x07,
};

/* On the wire: | layer (4 bits), type (4) | code (8) | M D R, reserved (13) |, then
 * the segment's length if M or D, its DDP header if D, the Read Request if R. */
struct wire_term {
	uint8_t layer, etype, ecode;
	bool has_len;     /* M: ddp_len is valid */
	bool has_ddp;     /* D: the DDP header of the offending segment follows */
	bool has_rdmap;   /* R: ... and its RDMAP header (a Read Request) */
	uint16_t ddp_len; /* of the offending segment */
	uint8_t hdr_len;  /* 14 or 18, when has_ddp */
	uint8_t hdr[WIRE_HDR_MAX];
	uint8_t rreq[28];
};

struct wire_read_req {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t len;
	uint32_t src_stag;
	uint64_t src_to;
};

enum wire_atomic_op { WIRE_ATOMIC_FETCH_ADD = 0, WIRE_ATOMIC_CMP_SWAP = 2 };

struct wire_atomic_req {
	uint8_t op;
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t add_swap, add_swap_mask;
	uint64_t compare, compare_mask;
};

struct wire_atomic_resp {
	uint32_t id;
	uint64_t value;
};

#define WIRE_READ_REQ_LEN    28
#define WIRE_ATOMIC_REQ_LEN  52
#define WIRE_ATOMIC_RESP_LEN 12
#define WIRE_IMM_LEN         8 /* RFC 7306; ours holds the 32-bit value in the first four */
#define WIRE_TERM_MAX        (4 + 2 + WIRE_HDR_MAX + WIRE_READ_REQ_LEN)

/* Returns the header length, 14 or 18. buf needs WIRE_HDR_MAX bytes. The tagged
 * bit and the versions follow from the opcode and the RFCs. */
size_t wire_seg_encode(const struct wire_seg *seg, void *buf);

/* Decodes the header at the start of a ULPDU. Returns the header length, or
 * -EPROTO with *why set to the Terminate that answers it (the offending header
 * is not yet in it). Versions are checked, reserved bits are not. A segment that
 * ends within its header is DDP's catastrophic error, a queue above 4 DDP's invalid
 * QN, an opcode on another's queue or in the wrong kind of segment RDMAP's
 * unexpected opcode. */
int wire_seg_decode(struct wire_seg *seg, const void *ulpdu, size_t len, struct wire_term *why);

/* Payload codecs. Encoders return the length; decoders 0, or -EPROTO for a wrong
 * length or contents. */
size_t wire_read_req_encode(const struct wire_read_req *r, void *buf);
int wire_read_req_decode(struct wire_read_req *r, const void *buf, size_t len);
size_t wire_atomic_req_encode(const struct wire_atomic_req *a, void *buf);
int wire_atomic_req_decode(struct wire_atomic_req *a, const void *buf, size_t len);
size_t wire_atomic_resp_encode(const struct wire_atomic_resp *a, void *buf);
int wire_atomic_resp_decode(struct wire_atomic_resp *a, const void *buf, size_t len);
size_t wire_imm_encode(uint32_t imm, void *buf);
int wire_imm_decode(uint32_t *imm, const void *buf, size_t len);
size_t wire_term_encode(const struct wire_term *t, void *buf);
/* Even with -EPROTO, layer, type and code are set if four bytes are there, so that
 * a malformed Terminate can still be logged. */
int wire_term_decode(struct wire_term *t, const void *buf, size_t len);

/* Completes a Terminate with the headers of the segment that caused it, taken
 * from its ULPDU: RFC 5040 section 4.8. Does nothing for catastrophic and LLP
 * errors, which are about no segment in particular. */
void wire_term_cite(struct wire_term *t, const void *ulpdu, size_t len);

/* Plain words, for logs: "DDP: tagged buffer error: base or bounds violation". */
const char *wire_term_str(const struct wire_term *t);
const char *wire_opcode_str(uint8_t opcode);

#endif
