/* UD: datagrams behind verbs. */
#include "bench_pingpong.h"
#include "bench_verbs.h"

static size_t ud_limit(const struct bench_env *env, const struct bench_kind *kind)
{
	(void)kind;
	if (env->conf.ud_max)
		return env->conf.ud_max;
	/* enum ibv_mtu: 1 is 256 bytes, and each step doubles it. */
	return env->dev ? 128u << env->dev->port.active_mtu : SIZE_MAX;
}

const struct bench_kind bench_kind_ud = {
	.name = "ud",
	.help = "UD send and receive; streams are paced by credits",
	.base = {"udp", "udp-conn", "udp-gso"},
	.tests = BENCH_LAT | BENCH_BW,
	.verbs = true,
	.lossy = true,
	.open = bench_qp_open,
	.close = bench_qp_close,
	.max_size = ud_limit,
	.prepare = bench_qp_prepare,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = bench_qp_send,
	.try_recv = bench_qp_try_recv,
	.tx = bench_credit_tx,
	.rx = bench_credit_rx,
};
