/* An intrusive, circular, doubly linked list.
 *
 * The owner embeds a struct list_head in each element and one more as the head.
 * Nothing is allocated and nothing is locked: the lock that protects the owner
 * protects the list. list_del leaves the element pointing at itself, so that a
 * second list_del is harmless and list_empty(&elem->node) says "on no list".
 */
#ifndef WEFT_UTIL_LIST_H
#define WEFT_UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name)                                                                       \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}

static inline void list_init(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_insert_between(struct list_head *item, struct list_head *prev,
				       struct list_head *next)
{
	item->prev = prev;
	item->next = next;
	prev->next = item;
	next->prev = item;
}

/* Puts item last. It must be on no list. */
static inline void list_add_tail(struct list_head *item, struct list_head *head)
{
	list_insert_between(item, head->prev, head);
}

/* Puts item first. It must be on no list. */
static inline void list_add(struct list_head *item, struct list_head *head)
{
	list_insert_between(item, head, head->next);
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

/* Moves everything on `from` behind the last element of `to`; `from` ends empty. */
static inline void list_splice_tail(struct list_head *from, struct list_head *to)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)

/* The first or last element as a `type *`; NULL when the list is empty. */
#define list_first(head, type, member)                                                             \
	(list_empty(head) ? (type *)NULL : list_entry((head)->next, type, member))
#define list_last(head, type, member)                                                              \
	(list_empty(head) ? (type *)NULL : list_entry((head)->prev, type, member))

/* pos is a pointer to the element type, `member` its struct list_head. */
#define list_for_each(pos, head, member)                                                           \
	for ((pos) = list_entry((head)->next, __typeof__(*(pos)), member);                         \
	     &(pos)->member != (head);                                                             \
	     (pos) = list_entry((pos)->member.next, __typeof__(*(pos)), member))

/* As list_for_each; the body may delete or free pos. */
#define list_for_each_safe(pos, tmp, head, member)                                                 \
	for ((pos) = list_entry((head)->next, __typeof__(*(pos)), member),                         \
	    (tmp) = list_entry((pos)->member.next, __typeof__(*(pos)), member);                    \
	     &(pos)->member != (head);                                                             \
	     (pos) = (tmp), (tmp) = list_entry((tmp)->member.next, __typeof__(*(pos)), member))

#endif
