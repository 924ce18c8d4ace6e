/* MPA, Marker PDU Aligned framing for TCP (RFC 5044), with the enhanced
 * connection setup of RFC 6581.
 *
 * Two things live here: the handshake frames that open a connection, and the
 * FPDU that carries one DDP segment:
 *
 *     | ULPDU length (2) | ULPDU | pad to 4 (0..3) | CRC32C (4) |
 *
 * The length counts the ULPDU only. The CRC covers everything before it, markers
 * included, and is stored least significant byte first. With markers, a 4-byte
 * marker stands at every 512th byte of the stream, counted from its first FPDU.
 *
 * Pure: no sockets, no allocation, no clock. Decoders accept any bytes.
 */
#ifndef WEFT_WIRE_MPA_H
#define WEFT_WIRE_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MPA_HS_HDR    20  /* key, flags, revision, private data length */
#define WIRE_MPA_PD_MAX    512 /* RFC 5044 section 7.1.1 */
#define WIRE_MPA_HS_MAX    (WIRE_MPA_HS_HDR + WIRE_MPA_PD_MAX)
#define WIRE_MPA_LEN_HDR   2
#define WIRE_MPA_CRC_LEN   4
#define WIRE_MPA_ULPDU_MAX 65535
/* With markers, FPDUPTR has to reach from the last marker of an FPDU back to its
 * start in 16 bits; this leaves room for that. */
#define WIRE_MPA_ULPDU_MARKED_MAX 64768
#define WIRE_MPA_MARKER_SPACING   512
#define WIRE_MPA_MARKER_LEN       4
/* An FPDU of the largest ULPDU, without and with the markers inside it. */
#define WIRE_MPA_FPDU_MAX (WIRE_MPA_LEN_HDR + WIRE_MPA_ULPDU_MAX + 3 + WIRE_MPA_CRC_LEN)
#define WIRE_MPA_FPDU_MARKED_MAX                                                                   \
	(WIRE_MPA_FPDU_MAX +                                                                       \
	 (WIRE_MPA_FPDU_MAX / (WIRE_MPA_MARKER_SPACING - WIRE_MPA_MARKER_LEN) + 2) *               \
		 WIRE_MPA_MARKER_LEN)

/* RFC 6581: what the four control bits leave for IRD and ORD, and the value that
 * says "no automatic negotiation". */
#define WIRE_MPA_ENH_MASK 0x3fff

/* One handshake frame. `enhanced` says that the private data starts with the
 * IRD/ORD words of RFC 6581; `pd` then holds what follows them. */
struct wire_mpa_hs {
	bool reply;        /* "MPA ID Rep Frame" rather than "MPA ID Req Frame" */
	bool markers;      /* M: the sender of this frame wants to receive markers */
	bool crc;          /* C: the sender of this frame wants CRCs */
	bool reject;       /* R: only in replies */
	bool enhanced;     /* S: revision 2 with IRD/ORD */
	bool p2p;          /* A: peer-to-peer, the initiator sends an RTR message */
	bool rtr_send;     /* B: that message is a zero-length Send */
	bool rtr_write;    /* C: ... a zero-length RDMA Write */
	bool rtr_read;     /* D: ... a zero-length RDMA Read */
	uint8_t revision;  /* 1 or 2 */
	uint16_t ird, ord; /* 14 bits each, when enhanced */
	uint16_t pd_len;
	uint8_t pd[WIRE_MPA_PD_MAX];
};

/* Returns the number of bytes written, -EINVAL for a frame that cannot be
 * expressed, -ENOSPC when cap is too small. */
int wire_mpa_hs_encode(const struct wire_mpa_hs *hs, void *buf, size_t cap);

/* Returns the number of bytes consumed, -EAGAIN when the frame is not complete
 * yet, -EPROTO when these bytes can never become one (wrong key, revision 0 or
 * above 2, reserved lengths, enhanced without room for IRD/ORD). Fails as early
 * as the first wrong byte, so that a foreign stream is refused at once. */
int wire_mpa_hs_decode(struct wire_mpa_hs *hs, const void *buf, size_t len);

static inline size_t wire_mpa_pad(size_t ulpdu_len)
{
	return -(WIRE_MPA_LEN_HDR + ulpdu_len) & 3;
}

/* Size on the wire of an unmarked FPDU. */
static inline size_t wire_mpa_fpdu_len(size_t ulpdu_len)
{
	return WIRE_MPA_LEN_HDR + ulpdu_len + wire_mpa_pad(ulpdu_len) + WIRE_MPA_CRC_LEN;
}

/* In an unmarked FPDU whose ULPDU is already at fpdu + 2: writes the length,
 * the pad and the CRC (zero when crc is false: the field is there nevertheless, but
 * RFC 5044 section 4.1 allows any value then and forbids to check it). Returns the
 * FPDU's length. ulpdu_len must not exceed WIRE_MPA_ULPDU_MAX. */
size_t wire_mpa_fpdu_seal(void *fpdu, size_t ulpdu_len, bool crc);

/* Looks at an unmarked stream that starts at an FPDU boundary. Returns the
 * FPDU's length when it is complete, with *ulpdu pointing into buf and its
 * length; -EAGAIN when more bytes are needed (then *need is the length of the
 * whole FPDU, or 0 if not even that is known); -EBADMSG when the CRC is wrong. */
int wire_mpa_fpdu_open(const void *buf, size_t len, bool crc, const uint8_t **ulpdu,
		       size_t *ulpdu_len, size_t *need);

/* Where a marked stream stands; zero it when the first FPDU begins. */
struct wire_mpa_mark {
	uint32_t pos; /* bytes since the last marker position, 0..511 */
};

/* Sender: turns one ULPDU into an FPDU with markers. dst needs
 * WIRE_MPA_FPDU_MARKED_MAX bytes. Returns the number of bytes written, or 0, with
 * nothing done, when ulpdu_len exceeds WIRE_MPA_ULPDU_MARKED_MAX. */
size_t wire_mpa_mark_fpdu(struct wire_mpa_mark *m, void *dst, const void *ulpdu, size_t ulpdu_len,
			  bool crc);

/* Receiver: as wire_mpa_fpdu_open for a stream with markers. On success copies
 * the ULPDU without markers into `ulpdu` (WIRE_MPA_ULPDU_MAX bytes), returns the
 * bytes consumed and advances m. Also -EPROTO when a marker does not point at
 * the start of its FPDU. On any error m is unchanged. */
int wire_mpa_mark_open(struct wire_mpa_mark *m, const void *buf, size_t len, bool crc,
		       uint8_t *ulpdu, size_t *ulpdu_len, size_t *need);

#endif
