#include <string.h>

#include "bench_kind.h"

/* In the order of a round: each next to what it is compared with. */
const struct bench_kind *const bench_kinds[] = {
	&bench_kind_tcp,      &bench_kind_rc,
	&bench_kind_udp,      &bench_kind_ud,
	&bench_kind_rd,       &bench_kind_tcp_block,
	&bench_kind_rc_write, &bench_kind_rc_write_spin,
	&bench_kind_rc_read,  &bench_kind_rc_read_passive,
	&bench_kind_rd_write, &bench_kind_rd_read,
	&bench_kind_uc,       &bench_kind_uc_write,
	&bench_kind_udp_conn, &bench_kind_udp_gso,
	&bench_kind_memcpy,   NULL,
};

const struct bench_kind *bench_kind_find(const char *name)
{
	for (int i = 0; bench_kinds[i]; i++)
		if (!strcmp(bench_kinds[i]->name, name))
			return bench_kinds[i];
	return NULL;
}

size_t bench_kind_limit(const struct bench_env *env, const struct bench_kind *kind)
{
	return kind->max_size ? kind->max_size(env, kind) : SIZE_MAX;
}
