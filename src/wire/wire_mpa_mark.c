/* The FPDU of a stream with markers: RFC 5044 section 4.3.
 *
 * A marker stands at every stream position that is a multiple of 512, the first
 * one right before the first FPDU. It belongs to the FPDU that it interrupts, or,
 * between two of them, to the following one, and is covered by that FPDU's CRC.
 * It holds 16 reserved bits and FPDUPTR, the distance in the stream (earlier
 * markers included) from the ULPDU length field back to it, or 0 when the length
 * field follows. FPDUs are multiples of four, so a marker never splits the length
 * field or the CRC, only ULPDU and pad.
 */
#include "wire_mpa.h"

#include <errno.h>

#include "wire_bytes.h"
#include "wire_crc32c.h"

#define SPACING    WIRE_MPA_MARKER_SPACING
#define MARKER_LEN WIRE_MPA_MARKER_LEN
/* Senders zero the low two bits of FPDUPTR, receivers take them for zero. */
#define FPDUPTR_MASK 0xfffcU

/* Bytes on the stream for `content` bytes when it stands `pos` bytes after the
 * last marker position. */
static size_t marked_len(uint32_t pos, size_t content)
{
	size_t lead = pos ? SPACING - pos : 0; /* content before the first marker */
	size_t per_marker = SPACING - MARKER_LEN;

	if (content <= lead)
		return content;
	return content + (content - lead + per_marker - 1) / per_marker * MARKER_LEN;
}

/* A walk along the stream bytes of one FPDU. */
struct walk {
	uint32_t pos; /* as in struct wire_mpa_mark */
	size_t off;   /* bytes walked */
	size_t start; /* offset of the ULPDU length field */
};

static struct walk walk_begin(uint32_t pos)
{
	return (struct walk){.pos = pos, .off = 0, .start = pos ? 0 : MARKER_LEN};
}

static void walk_by(struct walk *w, size_t n)
{
	w->off += n;
	w->pos = (uint32_t)((w->pos + n) % SPACING);
}

/* What FPDUPTR has to be for a marker here. */
static size_t walk_fpduptr(const struct walk *w)
{
	return w->off < w->start ? 0 : w->off - w->start;
}

/* How much of n content bytes fits before the next marker. */
static size_t walk_room(const struct walk *w, size_t n)
{
	size_t room = SPACING - w->pos;

	return n < room ? n : room;
}

/* Appends n bytes of content, zeros when data is NULL, with the markers that
 * fall due before any of them. */
static void mark_put(struct walk *w, uint8_t *dst, const uint8_t *data, size_t n)
{
	while (n) {
		size_t k;

		if (w->pos == 0) {
			put_be32(dst + w->off, (uint32_t)walk_fpduptr(w));
			walk_by(w, MARKER_LEN);
		}
		k = walk_room(w, n);
		if (data) {
			memcpy(dst + w->off, data, k);
			data += k;
		} else {
			memset(dst + w->off, 0, k);
		}
		walk_by(w, k);
		n -= k;
	}
}

size_t wire_mpa_mark_fpdu(struct wire_mpa_mark *m, void *dst, const void *ulpdu, size_t ulpdu_len,
			  bool crc)
{
	struct walk w = walk_begin(m->pos);
	uint8_t field[WIRE_MPA_CRC_LEN];

	if (ulpdu_len > WIRE_MPA_ULPDU_MARKED_MAX)
		return 0;
	put_be16(field, (uint16_t)ulpdu_len);
	mark_put(&w, dst, field, WIRE_MPA_LEN_HDR);
	mark_put(&w, dst, ulpdu, ulpdu_len);
	mark_put(&w, dst, NULL, wire_mpa_pad(ulpdu_len));
	/* A marker that falls due right here comes before the CRC and is covered by
	 * it, so it must be in place before the sum is taken. */
	mark_put(&w, dst, NULL, WIRE_MPA_CRC_LEN);
	if (crc) {
		size_t covered = w.off - WIRE_MPA_CRC_LEN;

		put_le32((uint8_t *)dst + covered, wire_crc32c(0, dst, covered));
	}
	m->pos = w.pos;
	return w.off;
}

/* The inverse: takes n bytes of content, to dst unless that is NULL, and checks
 * the markers on the way. */
static int mark_get(struct walk *w, const uint8_t *src, uint8_t *dst, size_t n)
{
	while (n) {
		size_t k;

		if (w->pos == 0) {
			if ((get_be32(src + w->off) & FPDUPTR_MASK) != walk_fpduptr(w))
				return -EPROTO;
			walk_by(w, MARKER_LEN);
		}
		k = walk_room(w, n);
		if (dst) {
			memcpy(dst, src + w->off, k);
			dst += k;
		}
		walk_by(w, k);
		n -= k;
	}
	return 0;
}

int wire_mpa_mark_open(struct wire_mpa_mark *m, const void *buf, size_t len, bool crc,
		       uint8_t *ulpdu, size_t *ulpdu_len, size_t *need)
{
	struct walk w = walk_begin(m->pos);
	const uint8_t *b = buf;
	size_t n, total, covered;

	*need = 0;
	if (len < w.start + WIRE_MPA_LEN_HDR)
		return -EAGAIN;
	n = get_be16(b + w.start);
	total = marked_len(m->pos, wire_mpa_fpdu_len(n));
	*need = total;
	if (len < total)
		return -EAGAIN;
	/* First the CRC: a marker that was damaged on the way is no sign that the
	 * two sides disagree about the framing, which is what -EPROTO says. */
	covered = total - WIRE_MPA_CRC_LEN;
	if (crc && get_le32(b + covered) != wire_crc32c(0, b, covered))
		return -EBADMSG;
	if (mark_get(&w, b, NULL, WIRE_MPA_LEN_HDR) || mark_get(&w, b, ulpdu, n) ||
	    mark_get(&w, b, NULL, wire_mpa_pad(n) + WIRE_MPA_CRC_LEN))
		return -EPROTO;
	*ulpdu_len = n;
	m->pos = w.pos;
	return (int)total;
}
