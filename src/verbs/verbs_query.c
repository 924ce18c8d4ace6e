/* What a context tells about its device, ports, GIDs and P_Keys. */
#include <string.h>

#include "verbs_weft.h"

/* rdma-core declares these two in a header that it does not install. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
	IBV_GID_TYPE_SYSFS_ROCE_V2,
};
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

VERBS_DECLARE_REAL(ibv_query_device);
VERBS_DECLARE_REAL(ibv_query_port);
VERBS_DECLARE_REAL(ibv_query_gid);
VERBS_DECLARE_REAL(_ibv_query_gid_ex);
VERBS_DECLARE_REAL(_ibv_query_gid_table);
VERBS_DECLARE_REAL(ibv_query_gid_type);
VERBS_DECLARE_REAL(ibv_query_pkey);
VERBS_DECLARE_REAL(ibv_get_pkey_index);

/* Callers of the exported function may have been built when the structure ended before
 * port_cap_flags2; those with a newer header call verbs_context->query_port. */
#define SHORT_PORT_ATTR offsetof(struct ibv_port_attr, port_cap_flags2)

VERBS_EXPORT int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	if (is_weft(ctx))
		return rnic_query_device(ctx, attr);
	return REAL(ibv_query_device)(ctx, attr);
}

VERBS_EXPORT int ibv_query_port(struct ibv_context *ctx, uint8_t port,
				struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full = {0};
	int err;

	if (!is_weft(ctx))
		return REAL(ibv_query_port)(ctx, port, attr);
	err = rnic_query_port(ctx, port, &full);
	if (!err)
		memcpy(attr, &full, SHORT_PORT_ATTR);
	return err;
}

/* Weft's table has no holes. An index without an entry is behind the end, for which the
 * answer is EINVAL: ENODATA means a hole, and ibv_query_gid makes zeros of it, so that
 * programs that read until an error comes would never stop. */
static int query_weft_gid(struct ibv_context *ctx, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry)
{
	int err = rnic_query_gid_entry(ctx, port, index, entry);

	return err == ENODATA ? EINVAL : err;
}

VERBS_EXPORT int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry = {0};
	int err;

	if (!is_weft(ctx))
		return REAL(ibv_query_gid)(ctx, port, index, gid);
	err = index < 0 ? EINVAL : query_weft_gid(ctx, port, (uint32_t)index, &entry);
	if (!err)
		*gid = entry.gid;
	return minus_one(err);
}

VERBS_EXPORT int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
				    enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry = {0};
	int err;

	if (!is_weft(ctx))
		return REAL(ibv_query_gid_type)(ctx, port, index, type);
	err = query_weft_gid(ctx, port, index, &entry);
	if (err)
		return minus_one(err);
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? IBV_GID_TYPE_SYSFS_ROCE_V2
						       : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

/* The caller's structure may be older (shorter) or newer (longer) than ours. */
static void put_entry(void *to, size_t size, const struct ibv_gid_entry *entry)
{
	memset(to, 0, size);
	memcpy(to, entry, size < sizeof(*entry) ? size : sizeof(*entry));
}

VERBS_EXPORT int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
				   struct ibv_gid_entry *to, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry entry = {0};
	int err;

	if (!is_weft(ctx))
		return REAL(_ibv_query_gid_ex)(ctx, port, index, to, flags, entry_size);
	if (flags)
		return refuse(EOPNOTSUPP);
	err = query_weft_gid(ctx, port, index, &entry);
	if (err)
		return refuse(err);
	put_entry(to, entry_size, &entry);
	return 0;
}

VERBS_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
					  size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port = {0};
	size_t n = 0;
	int err;

	if (!is_weft(ctx))
		return REAL(_ibv_query_gid_table)(ctx, entries, max_entries, flags, entry_size);
	if (flags)
		return -refuse(EOPNOTSUPP);
	err = rnic_query_device(ctx, &dev);
	for (uint32_t p = 1; !err && p <= dev.phys_port_cnt; p++) {
		err = rnic_query_port(ctx, (uint8_t)p, &port);
		for (int i = 0; !err && i < port.gid_tbl_len; i++) {
			struct ibv_gid_entry entry = {0};

			err = query_weft_gid(ctx, p, (uint32_t)i, &entry);
			/* A table that does not fit is refused, not cut. */
			if (!err && n == max_entries)
				err = EINVAL;
			if (!err)
				put_entry((char *)entries + n++ * entry_size, entry_size, &entry);
		}
	}
	return err ? -refuse(err) : (ssize_t)n;
}

VERBS_EXPORT int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (is_weft(ctx))
		return minus_one(rnic_query_pkey(ctx, port, index, pkey));
	return REAL(ibv_query_pkey)(ctx, port, index, pkey);
}

VERBS_EXPORT int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	__be16 at;
	int err;

	if (!is_weft(ctx))
		return REAL(ibv_get_pkey_index)(ctx, port, pkey);
	for (int i = 0;; i++) {
		err = rnic_query_pkey(ctx, port, i, &at);
		if (err)
			return minus_one(err);
		if (at == pkey)
			return i;
	}
}
