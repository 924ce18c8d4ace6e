/* A stream of FPDUs without markers.
 *
 * The first byte chooses: 1 CRCs are on, 2 they are made right beforehand, so that
 * what lies behind them is reached. */
#include <errno.h>

#include "fuzz.h"
#include "wire_crc32c.h"
#include "wire_mpa.h"

static void repair(uint8_t *b, size_t len)
{
	for (size_t at = 0; at + 2 <= len;) {
		size_t n = wire_mpa_fpdu_len((size_t)b[at] << 8 | b[at + 1]);
		uint32_t crc;

		if (len - at < n)
			return;
		crc = wire_crc32c_portable(0, b + at, n - 4);
		for (size_t i = 0; i < 4; i++)
			b[at + n - 4 + i] = (uint8_t)(crc >> 8 * i);
		at += n;
	}
}

static void check_accepted(const uint8_t *b, size_t len, const uint8_t *ulpdu, size_t n, bool crc)
{
	uint8_t *out = malloc(len), *cut = exact_copy(b, len - 1);
	size_t need;

	HOLDS(out);
	HOLDS(len == wire_mpa_fpdu_len(n) && len % 4 == 0 && len <= WIRE_MPA_FPDU_MAX);
	HOLDS(ulpdu == b + 2 && n == ((size_t)b[0] << 8 | b[1]));
	HOLDS(wire_mpa_fpdu_open(cut, len - 1, crc, &ulpdu, &n, &need) == -EAGAIN);
	HOLDS(need == len);
	memcpy(out + 2, b + 2, n);
	HOLDS(wire_mpa_fpdu_seal(out, n, crc) == len);
	HOLDS(!memcmp(out, b, 2 + n));
	/* With the same pad the CRC must be the same too. */
	if (crc && !memcmp(out + 2 + n, b + 2 + n, wire_mpa_pad(n)))
		HOLDS(!memcmp(out, b, len));
	free(out);
	free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool crc, fix;
	uint8_t *b;
	size_t at = 0;

	if (size == 0)
		return 0;
	crc = data[0] & 1;
	fix = data[0] & 2;
	size--;
	b = exact_copy(data + 1, size);
	if (fix)
		repair(b, size);
	for (;;) {
		const uint8_t *ulpdu = NULL;
		size_t n = 0, need = 1, left = size - at;
		int r = wire_mpa_fpdu_open(b + at, left, crc, &ulpdu, &n, &need);

		if (r == -EAGAIN) {
			HOLDS(left < 2 ? need == 0 : need > left);
			break;
		}
		HOLDS(need <= left);
		if (r == -EBADMSG) {
			HOLDS(crc && !fix);
			break;
		}
		HOLDS(r > 0 && (size_t)r == need);
		check_accepted(b + at, need, ulpdu, n, crc);
		at += need;
	}
	free(b);
	return 0;
}
