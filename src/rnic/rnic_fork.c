#include <pthread.h>
#include <unistd.h>
#include "rnic_cq.h"
#include "rnic_ctx.h"
#include "rnic_engine.h"
#include "rnic_fork.h"

/* Event descriptors are shared with the parent: a read by the child would take the
 * parent's events away. */
static void fork_child(void)
{
	struct rnic_engine *e = rnic_engine_fork_child();
	struct rnic_channel *ch;
	struct rnic_ctx *ctx;

	if (!e)
		return;
	list_for_each (ch, &e->channels, link) {
		close(ch->ibv.fd);
		ch->ibv.fd = -1;
	}
	list_for_each (ctx, &e->contexts, link) {
		close(ctx->vctx.context.async_fd);
		ctx->vctx.context.async_fd = -1;
	}
}

static void install(void)
{
	pthread_atfork(rnic_engine_fork_prepare, rnic_engine_fork_parent, fork_child);
}

void rnic_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
}
