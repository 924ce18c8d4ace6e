/* Between rd_board.c, rd_path.c and rd_pool.c only. */
#ifndef WEFT_RD_BOARD_IMPL_H
#define WEFT_RD_BOARD_IMPL_H

#include "rd_board.h"

/* A record, uninitialised and on no list; NULL: no memory. */
struct rd_sent *rd_pool_get(struct rd_pool *pool);
void rd_pool_put(struct rd_pool *pool, struct rd_sent *s);

/* A record that is on no list goes out on this path. */
void rd_path_transmit(struct rd_path *p, struct rd_sent *s, uint32_t bytes, uint64_t now);
/* Takes a record off its path, which gets its bytes back without an opinion. */
void rd_path_detach(struct rd_sent *s);
/* A record of this path was acknowledged. It is still on its list. */
void rd_path_got(struct rd_path *p, struct rd_sent *s, uint64_t now);

#endif
