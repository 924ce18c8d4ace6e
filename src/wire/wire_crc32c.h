/* CRC32C (Castagnoli), the checksum of MPA (RFC 5044) and of Weft's datagrams.
 *
 * Pure functions, callable from any thread. The fastest implementation that the
 * CPU has is chosen once, on first use. Values chain: crc(crc(0, a), b) equals
 * crc(0, ab), and no caller ever sees the inverted internal state.
 */
#ifndef WEFT_WIRE_CRC32C_H
#define WEFT_WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t wire_crc32c(uint32_t crc, const void *data, size_t len);

/* Copies while checksumming, so that the bytes are read from memory only once
 * and the checksum is that of the copy even if the source changes meanwhile. */
uint32_t wire_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

/* Portable table-driven version: the fallback, and the reference in tests. */
uint32_t wire_crc32c_portable(uint32_t crc, const void *data, size_t len);

/* Name of the implementation in use, for `weft info`. */
const char *wire_crc32c_name(void);

#endif
