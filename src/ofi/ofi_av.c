/* Address vectors: addresses by number, and numbers by address.
 *
 * An fi_addr_t is the number of an entry, for both types of vector. Entries never move, and what
 * was removed is filled again only when told to (FI_AV_TABLE counts on numbers in sequence). */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ofi.h"

#define NONE UINT32_MAX
#define MOST (OFI_AV_CHUNK * OFI_AV_CHUNKS)

static struct ofi_av_entry *entry(const struct ofi_av *av, uint32_t i)
{
	return &av->chunk[i / OFI_AV_CHUNK][i % OFI_AV_CHUNK];
}

/* ---- by address ------------------------------------------------------------------------------ */

static bool same(const struct msg_addr *a, const struct msg_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static uint32_t *bucket(const struct ofi_av *av, const struct msg_addr *a)
{
	uint64_t x = ((uint64_t)a->ip << 32 | a->qpn) * UINT64_C(0x9e3779b97f4a7c15);

	return &av->buckets[(uint32_t)(x >> 32) & (av->n_buckets - 1)];
}

/* At the end of its chain: of two entries with one address the older is found. */
static void link_entry(struct ofi_av *av, uint32_t i)
{
	uint32_t *at = bucket(av, &entry(av, i)->addr);

	while (*at != NONE)
		at = &entry(av, *at)->chain;
	*at = i;
	entry(av, i)->chain = NONE;
}

static void unlink_entry(struct ofi_av *av, uint32_t i)
{
	uint32_t *at = bucket(av, &entry(av, i)->addr);

	while (*at != i)
		at = &entry(av, *at)->chain;
	*at = entry(av, i)->chain;
}

static int grow_buckets(struct ofi_av *av)
{
	uint32_t n = av->n_buckets ? 4 * av->n_buckets : 64;
	uint32_t *all = malloc(n * sizeof(*all));

	if (!all)
		return -FI_ENOMEM;
	free(av->buckets);
	av->buckets = all;
	av->n_buckets = n;
	memset(all, 0xff, n * sizeof(*all));
	for (uint32_t i = 0; i < av->n; i++)
		if (entry(av, i)->used)
			link_entry(av, i);
	return 0;
}

fi_addr_t ofi_av_find(struct ofi_av *av, const struct msg_addr *addr)
{
	uint32_t i = NONE;

	util_lock(&av->lock);
	if (av->n_buckets)
		for (i = *bucket(av, addr); i != NONE; i = entry(av, i)->chain)
			if (same(&entry(av, i)->addr, addr))
				break;
	util_unlock(&av->lock);
	return i == NONE ? FI_ADDR_NOTAVAIL : i;
}

/* ---- by number ------------------------------------------------------------------------------- */

static bool known(const struct ofi_av *av, fi_addr_t fi)
{
	return fi < av->n && entry(av, (uint32_t)fi)->used;
}

int ofi_av_get(struct ofi_av *av, fi_addr_t fi, struct msg_addr *addr)
{
	int err = -FI_EINVAL;

	util_lock(&av->lock);
	if (known(av, fi)) {
		*addr = entry(av, (uint32_t)fi)->addr;
		err = 0;
	}
	util_unlock(&av->lock);
	return err;
}

/* A number that is free; NONE: no memory. */
static uint32_t take(struct ofi_av *av)
{
	struct ofi_av_entry **chunk;

	if (av->holes)
		for (uint32_t i = 0; i < av->n; i++)
			if (!entry(av, i)->used) {
				av->holes--;
				return i;
			}
	if (av->n == MOST)
		return NONE;
	chunk = &av->chunk[av->n / OFI_AV_CHUNK];
	if (!*chunk)
		*chunk = calloc(OFI_AV_CHUNK, sizeof(struct ofi_av_entry));
	if (!*chunk || (av->n >= av->n_buckets && grow_buckets(av)))
		return NONE;
	return av->n++;
}

static fi_addr_t insert_one(struct ofi_av *av, const struct msg_addr *addr)
{
	uint32_t i = take(av);

	if (i == NONE)
		return FI_ADDR_NOTAVAIL;
	entry(av, i)->addr = *addr;
	entry(av, i)->used = true;
	link_entry(av, i);
	return i;
}

static int insert_all(struct ofi_av *av, const uint8_t *addr, size_t count, fi_addr_t *out,
		      int *errs)
{
	int done = 0;

	util_lock(&av->lock);
	for (size_t i = 0; i < count; i++) {
		struct msg_addr a;
		fi_addr_t fi;

		memcpy(&a, addr + i * sizeof(a), sizeof(a));
		fi = insert_one(av, &a);
		if (out)
			out[i] = fi;
		if (errs)
			errs[i] = fi == FI_ADDR_NOTAVAIL ? FI_ENOMEM : 0;
		done += fi != FI_ADDR_NOTAVAIL;
	}
	util_unlock(&av->lock);
	return done;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if (count && !addr)
		return -FI_EINVAL;
	/* A map without room for the answer would be of no use. */
	if (count && !fi_addr && av->type == FI_AV_MAP)
		return -FI_EINVAL;
	return insert_all(av, addr, count, fi_addr, flags & FI_SYNC_ERR ? context : NULL);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct msg_addr addr;

	if (!node || service || ofi_addr_parse(node, &addr))
		return -FI_EINVAL;
	return av_insert(fid, &addr, 1, fi_addr, flags, context);
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)fid;
	(void)node;
	(void)nodecnt;
	(void)service;
	(void)svccnt;
	(void)fi_addr;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

/* Endpoints forget the peer; the engine keeps it, for what is under way. */
static void forget(struct ofi_av *av, uint32_t i)
{
	struct ofi_ep *ep;

	list_for_each (ep, &av->eps, av_link) {
		atomic_uint *peers = atomic_load(&ep->peer[i / OFI_AV_CHUNK]);

		if (peers)
			atomic_store(&peers[i % OFI_AV_CHUNK], 0);
	}
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	int err = 0;

	if (flags)
		return -FI_EBADFLAGS;
	util_lock(&av->lock);
	for (size_t i = 0; i < count; i++) {
		uint32_t k = (uint32_t)fi_addr[i];

		if (!known(av, fi_addr[i])) {
			err = -FI_EINVAL;
			continue;
		}
		unlink_entry(av, k);
		entry(av, k)->used = false;
		av->holes++;
		forget(av, k);
	}
	util_unlock(&av->lock);
	return err;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	struct msg_addr a;
	int err = ofi_av_get(av, fi_addr, &a);

	if (err)
		return err;
	memcpy(addr, &a, *addrlen < sizeof(a) ? *addrlen : sizeof(a));
	*addrlen = sizeof(a);
	return 0;
}

/* ---- as text --------------------------------------------------------------------------------- */

int ofi_addr_str(const struct msg_addr *addr, char *buf, size_t len)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid));
	return snprintf(buf, len, "fi_weft://[%s]:%06x:%08x:%x", gid, addr->qpn, addr->qkey,
			addr->lid);
}

int ofi_addr_parse(const char *text, struct msg_addr *addr)
{
	char gid[INET6_ADDRSTRLEN];
	unsigned int lid;
	int end = 0;

	memset(addr, 0, sizeof(*addr));
	if (sscanf(text, "fi_weft://[%45[0-9a-f:.]]:%6x:%8x:%4x%n", gid, &addr->qpn, &addr->qkey,
		   &lid, &end) != 4 ||
	    text[end] || inet_pton(AF_INET6, gid, addr->gid) != 1)
		return -FI_EINVAL;
	addr->lid = (uint16_t)lid;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	struct msg_addr a;
	int n;

	(void)fid;
	memcpy(&a, addr, sizeof(a));
	n = ofi_addr_str(&a, buf, *len);
	*len = (size_t)n + 1;
	return buf;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

/* ---- made and closed ------------------------------------------------------------------------- */

static int av_close(struct fid *fid)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);

	if (atomic_load(&av->users))
		return -FI_EBUSY;
	for (uint32_t i = 0; i < OFI_AV_CHUNKS; i++)
		free(av->chunk[i]);
	free(av->buckets);
	atomic_fetch_sub(&av->domain->users, 1);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = ofi_no_bind,
	.control = ofi_no_control,
	.ops_open = ofi_no_ops_open,
};

int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		void *context)
{
	struct ofi_domain *d = container_of(domain, struct ofi_domain, fid);
	struct ofi_av *av;

	if (!attr || attr->rx_ctx_bits)
		return -FI_EINVAL;
	/* Nothing is shared by name, and insertions are over when they return. */
	if (attr->name || attr->flags & (FI_READ | FI_EVENT))
		return -FI_ENOSYS;
	if (attr->flags & ~(FI_SYMMETRIC | FI_UNIVERSE))
		return -FI_EBADFLAGS;
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
		return -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	attr->type = attr->type ? attr->type : FI_AV_TABLE;
	av->type = attr->type;
	av->domain = d;
	list_init(&av->eps);
	av->fid.fid = (struct fid){FI_CLASS_AV, context, &av_fid_ops};
	av->fid.ops = &av_ops;
	atomic_fetch_add(&d->users, 1);
	*out = &av->fid;
	return 0;
}
