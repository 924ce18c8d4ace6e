/* The tunables of the provider, in the order of ofi_tunables[]. They are named FI_WEFT_*, so that
 * libfabric knows them, too (fi_info -e). */
#ifndef WEFT_OFI_TUNE_H
#define WEFT_OFI_TUNE_H

#include "util_tune.h"

enum ofi_tune {
	OFI_TUNE_DEVICE,
	OFI_TUNE_TRANSPORT,
	OFI_TUNE_CACHE,
	OFI_TUNE_LOCAL,
	OFI_TUNE_REUSE,
	OFI_TUNE_REUSE_PART,
	OFI_TUNE_EAGER,
	OFI_TUNE_EAGER_REMOTE,
	OFI_TUNE_RX_BUFFERS,
	OFI_TUNE_DEPTH,
	OFI_TUNE_LINGER,
	OFI_TUNE_ALIVE,
	OFI_TUNE_RENDEZVOUS,
	OFI_TUNE_SPECULATE,
	OFI_TUNE_USAGE,
	OFI_TUNE_STRIPING,
	OFI_TUNE_PATHS,
	OFI_TUNE_BATCH,
	OFI_TUNE_STRIPE_MIN,
	OFI_TUNE_LIVE,
	OFI_TUNE_WAIT,
	OFI_TUNE_SPIN,
	OFI_TUNE_YIELD,
	OFI_TUNE_SLEEP,
	OFI_TUNE_STATS,
};

#define OFI_TUNE_PREFIX "FI_WEFT_"

extern const struct util_tunable ofi_tunables[];

/* A policy as stripe_parse() wants it: a name alone gets its numbers. */
void ofi_striping_whole(const char *text, uint32_t paths, uint32_t batch, char *whole, size_t len);

#endif
