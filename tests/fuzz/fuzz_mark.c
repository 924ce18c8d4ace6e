/* A stream of FPDUs with markers, from any position.
 *
 * The first byte chooses: 1 CRCs are on, 2 they are made right beforehand, 4 the
 * markers are. The second is the position, in steps of four. */
#include <errno.h>

#include "fuzz.h"
#include "wire_crc32c.h"
#include "wire_mpa.h"

static bool is_marker(size_t abs)
{
	return abs % 512 < 4;
}

/* Byte by byte: where the FPDU that begins at stream position `from` of b ends, or
 * 0 when it is not all there. `start` becomes the position of its length field. */
static size_t fpdu_end(const uint8_t *b, size_t from, size_t to, size_t *start)
{
	size_t at = from, left = 0, seen = 0, len = 0;

	*start = from + (is_marker(from) ? 4 : 0);
	for (; at < to; at++) {
		if (is_marker(at))
			continue;
		if (seen < 2)
			len = len << 8 | b[at];
		if (++seen == 2)
			left = wire_mpa_fpdu_len(len) - 1;
		if (seen >= 2 && --left == 0)
			return at + 1;
	}
	return 0;
}

/* b[from] stands at stream position `from`; from is below 512. */
static void repair(uint8_t *b, size_t from, size_t to, bool markers, bool crcs)
{
	size_t start, end;

	for (; (end = fpdu_end(b, from, to, &start)); from = end) {
		for (size_t at = from; markers && at < end; at++) {
			size_t back = at / 512 * 512 < start ? 0 : at / 512 * 512 - start;

			if (at % 512 == 2)
				b[at] = (uint8_t)(back >> 8);
			if (at % 512 == 3)
				b[at] = (uint8_t)back;
		}
		if (crcs) {
			uint32_t crc = wire_crc32c_portable(0, b + from, end - 4 - from);

			for (size_t i = 0; i < 4; i++)
				b[end - 4 + i] = (uint8_t)(crc >> 8 * i);
		}
	}
}

/* Against the bytes themselves, and against the encoder. */
static void check_accepted(const uint8_t *b, size_t from, size_t end, const uint8_t *ulpdu,
			   size_t n, bool crc)
{
	uint8_t *out = malloc(WIRE_MPA_FPDU_MARKED_MAX);
	struct wire_mpa_mark m = {(uint32_t)(from % 512)};
	size_t seen = 0, len = 0, total;

	HOLDS(out);
	for (size_t at = from; at < end; at++) {
		if (is_marker(at))
			continue;
		if (seen < 2)
			len = len << 8 | b[at];
		else if (seen < 2 + n)
			HOLDS(ulpdu[seen - 2] == b[at]);
		seen++;
	}
	HOLDS(len == n && seen == wire_mpa_fpdu_len(n));
	total = wire_mpa_mark_fpdu(&m, out, ulpdu, n, crc);
	if (n <= WIRE_MPA_ULPDU_MARKED_MAX) {
		HOLDS(total == end - from);
		HOLDS(m.pos == end % 512);
		for (size_t at = from; at < end; at++) {
			if (at % 512 == 2)
				HOLDS(out[at - from] == b[at]);
			if (at % 512 == 3)
				HOLDS(out[at - from] == (b[at] & 0xfc));
		}
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t ulpdu[WIRE_MPA_ULPDU_MAX];
	size_t from, to;
	bool crc, fix_crc, fix_marks;
	struct wire_mpa_mark m;
	uint8_t *b;

	if (size < 2)
		return 0;
	crc = data[0] & 1;
	fix_crc = data[0] & 2;
	fix_marks = data[0] & 4;
	from = data[1] % 128 * 4;
	to = from + size - 2;
	b = malloc(to);
	HOLDS(b || to == 0);
	if (from)
		memset(b, 0xee, from);
	if (to > from)
		memcpy(b + from, data + 2, to - from);
	repair(b, from, to, fix_marks, fix_crc);
	m.pos = (uint32_t)from;
	for (;;) {
		size_t n = 0, need = 1, start, end = fpdu_end(b, from, to, &start);
		uint32_t pos = m.pos;
		int r = wire_mpa_mark_open(&m, b + from, to - from, crc, ulpdu, &n, &need);

		HOLDS(end ? r != -EAGAIN && need == end - from : r == -EAGAIN);
		if (r < 0) {
			HOLDS(r == -EAGAIN || r == -EPROTO || r == -EBADMSG);
			HOLDS(r != -EBADMSG || (crc && !fix_crc));
			HOLDS(r != -EPROTO || !fix_marks);
			HOLDS(m.pos == pos);
			break;
		}
		HOLDS((size_t)r == end - from);
		HOLDS(m.pos == end % 512);
		check_accepted(b, from, end, ulpdu, n, crc);
		from = end;
	}
	free(b);
	return 0;
}
