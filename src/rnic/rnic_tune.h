/* The tunables of the device, in the order of rnic_tunables[]. */
#ifndef WEFT_RNIC_TUNE_H
#define WEFT_RNIC_TUNE_H

#include "util_tune.h"
#include "rnic.h"

enum rnic_tune {
	RNIC_TUNE_DEVICE,
	RNIC_TUNE_ADDR,
	RNIC_TUNE_NETDEV,
	RNIC_TUNE_PROGRESS,
	RNIC_TUNE_CRC,
	RNIC_TUNE_MARKERS,
	RNIC_TUNE_FPDU,
	RNIC_TUNE_GUARD,
	RNIC_TUNE_FAULT,
	RNIC_TUNE_RD_TIMEOUT,
	RNIC_TUNE_RD_SHM,
	RNIC_TUNE_RD_PEERS,
	RNIC_TUNE_RD_MTU,
};

static inline const struct util_tunable *rnic_tune(enum rnic_tune t)
{
	return &rnic_tunables[t];
}

#endif
