/* The frames that open an MPA connection: RFC 5044 section 7.1, RFC 6581. */
#include "wire_mpa.h"

#include <errno.h>
#include <string.h>

#include "wire_bytes.h"

#define KEY_LEN 16
static const char key_req[KEY_LEN + 1] = "MPA ID Req Frame";
static const char key_rep[KEY_LEN + 1] = "MPA ID Rep Frame";

/* Byte 16. The remaining bits are reserved: zero when sent, not checked. */
#define FLAG_MARKERS  0x80
#define FLAG_CRC      0x40
#define FLAG_REJECT   0x20
#define FLAG_ENHANCED 0x10 /* RFC 6581 */

#define OFF_FLAGS    16
#define OFF_REVISION 17
#define OFF_PD_LEN   18

/* The two words of RFC 6581 before the private data, two control bits in each. */
#define ENH_LEN       4
#define ENH_P2P       0x8000 /* A, in the IRD word */
#define ENH_RTR_SEND  0x4000 /* B */
#define ENH_RTR_WRITE 0x8000 /* C, in the ORD word */
#define ENH_RTR_READ  0x4000 /* D */

static bool expressible(const struct wire_mpa_hs *hs)
{
	size_t room = WIRE_MPA_PD_MAX - (hs->enhanced ? ENH_LEN : 0);

	if (hs->revision != 1 && hs->revision != 2)
		return false;
	if (hs->pd_len > room)
		return false;
	if (hs->reject && !hs->reply)
		return false;
	if (hs->enhanced)
		return hs->revision == 2 && hs->ird <= WIRE_MPA_ENH_MASK &&
		       hs->ord <= WIRE_MPA_ENH_MASK;
	/* Without the words there is nowhere to put these. */
	return !hs->p2p && !hs->rtr_send && !hs->rtr_write && !hs->rtr_read && !hs->ird && !hs->ord;
}

static uint8_t *put_enhanced(uint8_t *p, const struct wire_mpa_hs *hs)
{
	p = put_be16(p, (uint16_t)(hs->ird | (hs->p2p ? ENH_P2P : 0) |
				   (hs->rtr_send ? ENH_RTR_SEND : 0)));
	return put_be16(p, (uint16_t)(hs->ord | (hs->rtr_write ? ENH_RTR_WRITE : 0) |
				      (hs->rtr_read ? ENH_RTR_READ : 0)));
}

int wire_mpa_hs_encode(const struct wire_mpa_hs *hs, void *buf, size_t cap)
{
	uint8_t *p = buf;
	uint16_t pd_len;

	if (!expressible(hs))
		return -EINVAL;
	/* The words of RFC 6581 count as private data. */
	pd_len = (uint16_t)(hs->pd_len + (hs->enhanced ? ENH_LEN : 0));
	if (cap < (size_t)WIRE_MPA_HS_HDR + pd_len)
		return -ENOSPC;

	memcpy(p, hs->reply ? key_rep : key_req, KEY_LEN);
	p = put_u8(p + KEY_LEN,
		   (uint8_t)((hs->markers ? FLAG_MARKERS : 0) | (hs->crc ? FLAG_CRC : 0) |
			     (hs->reject ? FLAG_REJECT : 0) | (hs->enhanced ? FLAG_ENHANCED : 0)));
	p = put_u8(p, hs->revision);
	p = put_be16(p, pd_len);
	if (hs->enhanced)
		p = put_enhanced(p, hs);
	memcpy(p, hs->pd, hs->pd_len);
	return WIRE_MPA_HS_HDR + pd_len;
}

/* Refuses as soon as any byte that is already here is wrong, so that a peer that
 * speaks something else is not waited for. Returns 0 or -EPROTO. */
static int check_prefix(const uint8_t *b, size_t len)
{
	size_t key = len < KEY_LEN ? len : KEY_LEN;
	bool enhanced;

	if (memcmp(b, key_req, key) != 0 && memcmp(b, key_rep, key) != 0)
		return -EPROTO;
	if (len <= OFF_REVISION)
		return 0;
	if (b[OFF_REVISION] != 1 && b[OFF_REVISION] != 2)
		return -EPROTO;
	if (len > OFF_PD_LEN && b[OFF_PD_LEN] > WIRE_MPA_PD_MAX >> 8)
		return -EPROTO;
	if (len <= OFF_PD_LEN + 1)
		return 0;
	enhanced = b[OFF_REVISION] == 2 && (b[OFF_FLAGS] & FLAG_ENHANCED);
	if (get_be16(b + OFF_PD_LEN) > WIRE_MPA_PD_MAX)
		return -EPROTO;
	return enhanced && get_be16(b + OFF_PD_LEN) < ENH_LEN ? -EPROTO : 0;
}

static void get_enhanced(struct wire_mpa_hs *hs, const uint8_t *b)
{
	uint16_t ird = get_be16(b), ord = get_be16(b + 2);

	hs->p2p = ird & ENH_P2P;
	hs->rtr_send = ird & ENH_RTR_SEND;
	hs->rtr_write = ord & ENH_RTR_WRITE;
	hs->rtr_read = ord & ENH_RTR_READ;
	hs->ird = ird & WIRE_MPA_ENH_MASK;
	hs->ord = ord & WIRE_MPA_ENH_MASK;
}

int wire_mpa_hs_decode(struct wire_mpa_hs *hs, const void *buf, size_t len)
{
	const uint8_t *b = buf;
	size_t pd_len, skip;

	if (len == 0)
		return -EAGAIN;
	if (check_prefix(b, len))
		return -EPROTO;
	if (len < WIRE_MPA_HS_HDR)
		return -EAGAIN;
	pd_len = get_be16(b + OFF_PD_LEN);
	if (len < WIRE_MPA_HS_HDR + pd_len)
		return -EAGAIN;

	memset(hs, 0, sizeof(*hs));
	hs->reply = memcmp(b, key_rep, KEY_LEN) == 0;
	hs->revision = b[OFF_REVISION];
	hs->markers = b[OFF_FLAGS] & FLAG_MARKERS;
	hs->crc = b[OFF_FLAGS] & FLAG_CRC;
	/* R is reserved in requests, S in revision 1: not checked, without meaning. */
	hs->reject = hs->reply && (b[OFF_FLAGS] & FLAG_REJECT);
	hs->enhanced = hs->revision == 2 && (b[OFF_FLAGS] & FLAG_ENHANCED);
	if (hs->enhanced)
		get_enhanced(hs, b + WIRE_MPA_HS_HDR);
	skip = hs->enhanced ? ENH_LEN : 0;
	hs->pd_len = (uint16_t)(pd_len - skip);
	memcpy(hs->pd, b + WIRE_MPA_HS_HDR + skip, hs->pd_len);
	return (int)(WIRE_MPA_HS_HDR + pd_len);
}
