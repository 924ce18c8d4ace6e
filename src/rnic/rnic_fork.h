/* Fork: the child inherits memory but must not touch the parent's connections. */
#ifndef WEFT_RNIC_FORK_H
#define WEFT_RNIC_FORK_H

struct rnic_engine;

void rnic_fork_init(void); /* installs the handlers, once */

/* Parts of the handlers, in rnic_engine.c. */
void rnic_engine_fork_prepare(void);
void rnic_engine_fork_parent(void);
struct rnic_engine *rnic_engine_fork_child(void); /* the dead engine, or NULL */

#endif
