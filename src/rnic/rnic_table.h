/* A hash table from a 32-bit number to an object: keys of memory regions, numbers of
 * queue pairs. Open addressing, linear probing, at most half full. No lock of its own. */
#ifndef WEFT_RNIC_TABLE_H
#define WEFT_RNIC_TABLE_H

#include <stdint.h>

struct rnic_table;

struct rnic_table *rnic_table_new(void);
void rnic_table_free(struct rnic_table *t);
/* 0, -EEXIST or -ENOMEM. */
int rnic_table_add(struct rnic_table *t, uint32_t key, void *value);
void rnic_table_del(struct rnic_table *t, uint32_t key);
void *rnic_table_get(const struct rnic_table *t, uint32_t key);

#endif
