/* Operators on types: what an atomic operation does to memory. Pure. */
#ifndef WEFT_OFI_ATOMIC_H
#define WEFT_OFI_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fi_atomic.h>
#include "msg.h"

enum ofi_atomic_class { OFI_ATOMIC_WRITE, OFI_ATOMIC_FETCH, OFI_ATOMIC_COMPARE };

/* Bytes of one; 0: not known. */
size_t ofi_atomic_size(unsigned int type);
bool ofi_atomic_valid(enum ofi_atomic_class class, unsigned int type, unsigned int op);
/* conf.atomic of the engine: code and type are libfabric's. 0, or -EINVAL: it comes from a peer,
 * who may ask for anything. */
int ofi_atomic_job(const struct msg_atomic_job *job);

#endif
