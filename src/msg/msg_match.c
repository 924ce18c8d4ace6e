#include <errno.h>
#include <stdlib.h>

#include "msg_match.h"

#define TABLE_BITS 6 /* at first; one that was never needed costs nothing */

/* So many receives msg_match_ahead looks at, one by one, in a class that it has no key for. */
#define LOOK 32

/* ---- tables ---------------------------------------------------------------------------------- */

/* Peers number tags as they like, often in high bits only, so all bits must reach the top. */
static uint32_t hash(uint32_t src, uint64_t tag, uint32_t bits)
{
	uint64_t h = tag ^ src * UINT64_C(0x9E3779B97F4A7C15);

	h = (h ^ h >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 29) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)(h >> (64 - bits));
}

static struct msg_node **bucket_of(const struct msg_table *t, uint32_t src, uint64_t tag)
{
	return &t->bucket[hash(src, tag, t->bits)];
}

static void put_at(struct msg_node *n, struct msg_node **at)
{
	n->at = at;
	n->next = *at;
	*at = n;
	if (n->next)
		n->next->at = &n->next;
}

static void table_grow(struct msg_table *t)
{
	struct msg_table old = *t;

	t->bits = old.bucket ? old.bits + 1 : TABLE_BITS;
	t->bucket = calloc((size_t)1 << t->bits, sizeof(struct msg_node *));
	if (!t->bucket) {
		*t = old;
		return;
	}
	for (size_t i = 0; old.bucket && i < (size_t)1 << old.bits; i++) {
		for (struct msg_node *n = old.bucket[i], *next; n; n = next) {
			next = n->next;
			put_at(n, bucket_of(t, n->src, n->tag));
		}
	}
	free(old.bucket);
}

/* The eldest of a key. */
static struct msg_node *table_find(const struct msg_table *t, uint32_t src, uint64_t tag)
{
	struct msg_node *n = t->keys ? *bucket_of(t, src, tag) : NULL;

	while (n && (n->tag != tag || n->src != src))
		n = n->next;
	return n;
}

/* n, whose key is set, becomes the youngest of its key. -ENOMEM only if there is no table yet: one
 * that can not grow is slow but right. */
static int table_add(struct msg_table *t, struct msg_node *n)
{
	struct msg_node *eldest = table_find(t, n->src, n->tag);

	if (eldest) {
		n->at = NULL;
		list_add_tail(&n->ring, &eldest->ring);
		return 0;
	}
	if (!t->bucket || t->keys >> t->bits)
		table_grow(t);
	if (!t->bucket)
		return -ENOMEM;
	list_init(&n->ring);
	put_at(n, bucket_of(t, n->src, n->tag));
	t->keys++;
	return 0;
}

static struct msg_node *ring_next(const struct msg_node *n)
{
	return list_entry(n->ring.next, struct msg_node, ring);
}

static struct msg_node *ring_prev(const struct msg_node *n)
{
	return list_entry(n->ring.prev, struct msg_node, ring);
}

static void table_del(struct msg_table *t, struct msg_node *n)
{
	struct msg_node *heir = ring_next(n);

	list_del(&n->ring);
	if (!n->at)
		return;
	*n->at = n->next;
	if (n->next)
		n->next->at = n->at;
	if (heir == n)
		t->keys--;
	else
		put_at(heir, n->at);
}

/* ---- classes --------------------------------------------------------------------------------- */

static struct msg_recv *recv_of(struct msg_node *n)
{
	return container_of(n, struct msg_recv, node);
}

static struct msg_class *plain_of(struct msg_match *m)
{
	return &m->class[MSG_MATCH_CLASSES];
}

static bool class_empty(const struct msg_class *c)
{
	return list_empty(&c->order);
}

/* The source by which a message is looked up. */
static uint32_t class_src(const struct msg_class *c, uint32_t src)
{
	return c->any ? MSG_ANY_SRC : src;
}

/* Receives of one kind are all in the plain list or all in a class, or those of one envelope could
 * not be counted. So no class begins while there is anything in the list. */
static struct msg_class *class_for(struct msg_match *m, const struct msg_recv *r)
{
	bool any = r->src == MSG_ANY_SRC;
	struct msg_class *c, *unused = NULL;

	for (c = m->class; c < &m->class[m->n_class]; c++) {
		if (c->ignore == r->ignore && c->any == any)
			return c;
		if (class_empty(c))
			unused = c;
	}
	if (!class_empty(plain_of(m)))
		return plain_of(m);
	if (m->n_class < MSG_MATCH_CLASSES)
		unused = &m->class[m->n_class++];
	if (!unused)
		return plain_of(m);
	unused->ignore = r->ignore;
	unused->any = any;
	return unused;
}

int msg_match_init(struct msg_match *m)
{
	*m = (struct msg_match){.n_class = 0};
	list_init(&m->all);
	for (unsigned int i = 0; i <= MSG_MATCH_CLASSES; i++) {
		list_init(&m->class[i].order);
		m->class[i].hashed = i < MSG_MATCH_CLASSES;
	}
	return 0;
}

void msg_match_free(struct msg_match *m)
{
	for (unsigned int i = 0; i < MSG_MATCH_CLASSES; i++)
		free(m->class[i].table.bucket);
	free(m->sources.bucket);
	msg_match_init(m);
}

/* ---- receives -------------------------------------------------------------------------------- */

int msg_match_post(struct msg_match *m, struct msg_recv *r)
{
	struct msg_class *c = class_for(m, r);

	r->node.src = r->src;
	r->node.tag = r->tag & ~r->ignore;
	r->node.seq = m->seq;
	if (c->hashed && table_add(&c->table, &r->node))
		return -ENOMEM;
	/* The eldest may have any index: only differences count. */
	if (c->hashed && !r->node.at)
		r->index = recv_of(ring_prev(&r->node))->index + 1;
	m->seq++;
	r->class = c;
	list_add_tail(&r->order, &c->order);
	return 0;
}

/* The first in the plain list that a message matches, if it is older than `best`. */
static struct msg_recv *plain_find(const struct msg_class *plain, uint32_t src, uint64_t tag,
				   struct msg_recv *best)
{
	struct msg_recv *r;

	list_for_each (r, &plain->order, order) {
		if (best && r->node.seq > best->node.seq)
			return best;
		if (msg_recv_matches(r, src, tag))
			return r;
	}
	return best;
}

struct msg_recv *msg_match_peek(const struct msg_match *m, uint32_t src, uint64_t tag)
{
	struct msg_node *best = NULL;

	for (const struct msg_class *c = m->class; c < &m->class[m->n_class]; c++) {
		struct msg_node *n = table_find(&c->table, class_src(c, src), tag & ~c->ignore);

		if (n && (!best || n->seq < best->seq))
			best = n;
	}
	return plain_find(&m->class[MSG_MATCH_CLASSES], src, tag, best ? recv_of(best) : NULL);
}

static void take_off(struct msg_recv *r)
{
	if (r->class->hashed)
		table_del(&r->class->table, &r->node);
	list_del(&r->order);
	r->class = NULL;
}

struct msg_recv *msg_match_take(struct msg_match *m, uint32_t src, uint64_t tag)
{
	struct msg_recv *r = msg_match_peek(m, src, tag);

	if (r)
		take_off(r);
	return r;
}

/* The same source, mask, and tag but for ignored bits. */
static bool same_envelope(const struct msg_recv *a, const struct msg_recv *b)
{
	return a->src == b->src && a->ignore == b->ignore && a->node.tag == b->node.tag;
}

struct msg_recv *msg_match_behind(const struct msg_match *m, const struct msg_recv *r)
{
	const struct list_head *end = &r->class->order;
	struct msg_node *next;

	(void)m;
	if (r->class->hashed) {
		next = ring_next(&r->node);
		return next->at ? NULL : recv_of(next);
	}
	for (struct list_head *l = r->order.next; l != end; l = l->next) {
		struct msg_recv *p = list_entry(l, struct msg_recv, order);

		if (same_envelope(p, r))
			return p;
	}
	return NULL;
}

void msg_match_cancel(struct msg_match *m, struct msg_recv *r)
{
	/* One that is missing at the front changes no difference. */
	if (r->class->hashed && !r->node.at) {
		for (struct msg_recv *p = msg_match_behind(m, r); p; p = msg_match_behind(m, p))
			p->index--;
	}
	take_off(r);
}

/* ---- what is ahead --------------------------------------------------------------------------- */

/* Whether there is a message that both match. */
static bool overlap(const struct msg_recv *a, const struct msg_recv *b)
{
	return (a->src == b->src || a->src == MSG_ANY_SRC || b->src == MSG_ANY_SRC) &&
	       !((a->tag ^ b->tag) & ~(a->ignore | b->ignore));
}

static void look_through(const struct msg_class *c, const struct msg_recv *r, struct msg_ahead *a)
{
	unsigned int left = LOOK;
	struct msg_recv *p;

	list_for_each (p, &c->order, order) {
		if (p->node.seq >= r->node.seq)
			return;
		if (same_envelope(p, r))
			a->same++;
		else if (overlap(p, r))
			a->clear = false;
		if (!left--)
			a->clear = false;
		if (!a->clear)
			return;
	}
}

static void look_into(const struct msg_class *c, const struct msg_recv *r, struct msg_ahead *a)
{
	struct msg_node *n;

	/* If c ignores all that r ignores, then all messages for r have one key in c. */
	if (!c->hashed || r->ignore & ~c->ignore) {
		look_through(c, r, a);
		return;
	}
	n = table_find(&c->table, class_src(c, r->src), r->node.tag & ~c->ignore);
	if (!n || n->seq >= r->node.seq)
		return;
	if (c == r->class)
		a->same = r->index - recv_of(n)->index;
	else
		a->clear = false;
}

struct msg_ahead msg_match_ahead(const struct msg_match *m, const struct msg_recv *r)
{
	struct msg_ahead a = {.clear = r->src != MSG_ANY_SRC};

	for (const struct msg_class *c = m->class; a.clear && c < &m->class[m->n_class]; c++)
		look_into(c, r, &a);
	if (a.clear)
		look_into(&m->class[MSG_MATCH_CLASSES], r, &a);
	return a;
}

/* ---- unexpected messages --------------------------------------------------------------------- */

static struct msg_unexp *unexp_of(struct msg_node *n)
{
	return container_of(n, struct msg_unexp, node);
}

static struct msg_unexp *find_of(const struct msg_match *m, uint32_t src, uint64_t tag,
				 uint64_t ignore)
{
	struct msg_node *eldest = table_find(&m->sources, src, 0), *n = eldest;

	if (!n)
		return NULL;
	do {
		if (!((unexp_of(n)->tag ^ tag) & ~ignore))
			return unexp_of(n);
		n = ring_next(n);
	} while (n != eldest);
	return NULL;
}

struct msg_unexp *msg_match_find(const struct msg_match *m, uint32_t src, uint64_t tag,
				 uint64_t ignore)
{
	struct msg_unexp *u;

	if (src != MSG_ANY_SRC)
		return find_of(m, src, tag, ignore);
	list_for_each (u, &m->all, all) {
		if (!((u->tag ^ tag) & ~ignore))
			return u;
	}
	return NULL;
}

int msg_match_store(struct msg_match *m, struct msg_unexp *u)
{
	u->node.src = u->src;
	u->node.tag = 0;
	u->node.seq = m->seq;
	if (table_add(&m->sources, &u->node))
		return -ENOMEM;
	m->seq++;
	list_add_tail(&u->all, &m->all);
	return 0;
}

void msg_match_drop(struct msg_match *m, struct msg_unexp *u)
{
	table_del(&m->sources, &u->node);
	list_del(&u->all);
}

/* ---- a peer has died ------------------------------------------------------------------------- */

/* From class c to `list`, which is in order of posting and stays so: one pass through both. */
static void collect(struct msg_class *c, uint32_t src, struct list_head *list)
{
	struct list_head *pos = list->next;
	struct msg_recv *r, *tmp;

	list_for_each_safe (r, tmp, &c->order, order) {
		if (src != MSG_ANY_SRC && r->src != src)
			continue;
		take_off(r);
		while (pos != list &&
		       list_entry(pos, struct msg_recv, order)->node.seq < r->node.seq)
			pos = pos->next;
		list_add_tail(&r->order, pos);
	}
}

void msg_match_each(const struct msg_match *m, void (*fn)(void *arg, const struct msg_recv *r),
		    void *arg)
{
	const struct msg_recv *r;

	for (unsigned int i = 0; i <= MSG_MATCH_CLASSES; i++)
		list_for_each (r, &m->class[i].order, order)
			fn(arg, r);
}

static void drop_recvs(struct msg_match *m, uint32_t src, void (*fn)(void *arg, struct msg_recv *r),
		       void *arg)
{
	struct list_head list = LIST_HEAD_INIT(list);
	struct msg_recv *r;

	for (unsigned int i = 0; i <= MSG_MATCH_CLASSES; i++)
		collect(&m->class[i], src, &list);
	while ((r = list_first(&list, struct msg_recv, order))) {
		list_del(&r->order);
		fn(arg, r);
	}
}

static void drop_unexps(struct msg_match *m, uint32_t src,
			void (*fn)(void *arg, struct msg_unexp *u), void *arg)
{
	struct list_head list = LIST_HEAD_INIT(list);
	struct msg_unexp *u;

	while ((u = msg_match_find(m, src, 0, UINT64_MAX))) {
		msg_match_drop(m, u);
		list_add_tail(&u->all, &list);
	}
	while ((u = list_first(&list, struct msg_unexp, all))) {
		list_del(&u->all);
		fn(arg, u);
	}
}

void msg_match_drop_src(struct msg_match *m, uint32_t src,
			void (*recv)(void *arg, struct msg_recv *r),
			void (*unexp)(void *arg, struct msg_unexp *u), void *arg)
{
	if (recv)
		drop_recvs(m, src, recv, arg);
	if (unexp)
		drop_unexps(m, src, unexp, arg);
}
