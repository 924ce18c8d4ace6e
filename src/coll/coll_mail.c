#include "coll_mail.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "shm_copy.h"

#define ALIGN 16u

/* where: an offset into the box, or, of what is fetched, an address of the owner's. */
struct label {
	uint64_t len, where;
};

/* How many parts were put there, and taken. */
struct parts {
	_Atomic uint32_t put, taken;
	uint64_t pad;
};

_Static_assert(sizeof(struct label) == ALIGN && sizeof(struct parts) == ALIGN, "keeps alignment");
_Static_assert(COLL_MAIL_SLOT >= 4 * ALIGN, "a label, and two parts with their numbers");

static size_t round_up(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static struct label *label_of(uint8_t *box, uint32_t rank)
{
	return (struct label *)box + rank;
}

/* Of each of two. */
static size_t part_room(const struct coll_mail *m)
{
	return (m->slot - sizeof(struct label) - sizeof(struct parts)) / 2 / ALIGN * ALIGN;
}

static uint8_t *part_at(const struct coll_mail *m, struct parts *p, uint32_t number)
{
	return (uint8_t *)(p + 1) + number % 2 * part_room(m);
}

enum coll_mail_way coll_mail_way(const struct coll_mail *m, size_t len)
{
	size_t room = (m->slot - sizeof(struct label)) / ALIGN * ALIGN;

	if (len <= m->copy_max && len <= room)
		return COLL_MAIL_COPIED;
	if (m->fetch)
		return COLL_MAIL_FETCHED;
	return len <= room ? COLL_MAIL_COPIED : COLL_MAIL_PARTS;
}

/* ---- of the owner ---- */

bool coll_mail_more(const struct coll_mail *m, struct coll_mail_out *out)
{
	struct parts *p = (struct parts *)(out->box + label_of(out->box, out->to)->where);
	uint32_t put = atomic_load_explicit(&p->put, memory_order_relaxed), before = put;

	/* Who has taken a part is through with it before it says so. */
	while (out->sent < out->len &&
	       put - atomic_load_explicit(&p->taken, memory_order_acquire) < 2) {
		size_t left = out->len - out->sent;
		size_t n = left < part_room(m) ? left : part_room(m);

		memcpy(part_at(m, p, put), out->bytes + out->sent, n);
		out->sent += n;
		atomic_store_explicit(&p->put, ++put, memory_order_release);
	}
	return put != before;
}

static void open_parts(const struct coll_mail *m, struct coll_mail_out *out, size_t at)
{
	struct parts *p = (struct parts *)(out->box + at);

	atomic_init(&p->put, 0);
	atomic_init(&p->taken, 0);
	coll_mail_more(m, out);
}

void coll_mail_put(const struct coll_mail *m, struct coll_mail_out *out, size_t *used)
{
	struct label *l = label_of(out->box, out->to);

	if (!*used)
		*used = m->ranks * sizeof(*l);
	*l = (struct label){.len = out->len, .where = *used};
	out->sent = 0;
	switch (coll_mail_way(m, out->len)) {
	case COLL_MAIL_FETCHED:
		l->where = (uintptr_t)out->bytes;
		break;
	case COLL_MAIL_PARTS:
		open_parts(m, out, *used);
		*used += sizeof(struct parts) + 2 * part_room(m);
		break;
	default:
		if (out->len)
			memcpy(out->box + *used, out->bytes, out->len);
		*used += round_up(out->len);
		out->sent = out->len;
	}
}

/* ---- of the others ---- */

static void take_parts(const struct coll_mail *m, struct coll_mail_in *in, struct parts *p)
{
	uint32_t taken = atomic_load_explicit(&p->taken, memory_order_relaxed);

	while (in->taken < in->len &&
	       atomic_load_explicit(&p->put, memory_order_acquire) != taken) {
		size_t left = in->len - in->taken;
		size_t n = left < part_room(m) ? left : part_room(m);

		memcpy(in->to + in->taken, part_at(m, p, taken), n);
		in->taken += n;
		atomic_store_explicit(&p->taken, ++taken, memory_order_release);
	}
}

static int fetch(struct coll_mail_in *in, uint64_t where)
{
	struct iovec to = {in->to, in->len}, from = {(void *)(uintptr_t)where, in->len};
	int ret = shm_copy_from(in->pid, (struct shm_vec){&to, 1}, (struct shm_vec){&from, 1});

	in->taken = in->len;
	return ret;
}

int coll_mail_take(const struct coll_mail *m, struct coll_mail_in *in)
{
	struct label l = *label_of(in->box, in->me);
	int ret = 0;

	if (l.len != in->len)
		return -EMSGSIZE;
	switch (coll_mail_way(m, in->len)) {
	case COLL_MAIL_FETCHED:
		ret = fetch(in, l.where);
		break;
	case COLL_MAIL_PARTS:
		take_parts(m, in, (struct parts *)(in->box + l.where));
		break;
	default:
		if (in->len)
			memcpy(in->to, in->box + l.where, in->len);
		in->taken = in->len;
	}
	return ret ? ret : in->taken == in->len;
}
