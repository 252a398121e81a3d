/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A doubly linked circular list threaded through the objects it holds. A list head and a link are
 * the same struct; an unlinked link points to itself. The functions take no lock: the lock of the
 * list's owner guards it.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* LIST_EACH() visits the objects of the list `head`, which are linked by `member`. The loop must
 * not change the list, unless it ends right after. */
#define LIST_EACH(type, item, head, member)                                                        \
    for (type *item = container_of((head)->next, type, member); &item->member != (head);           \
         item = container_of(item->member.next, type, member))

/* LIST_POP() unlinks the first object of a list and returns a pointer to it, or NULL; LIST_FIRST()
 * returns that pointer and leaves the object in the list. */
#define LIST_POP(type, head, member)                                                               \
    ({                                                                                             \
        struct list *first_ = list_pop_front(head);                                                \
        first_ != NULL ? container_of(first_, type, member) : NULL;                                \
    })
#define LIST_FIRST(type, head, member)                                                             \
    (list_empty(head) ? NULL : container_of((head)->next, type, member))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline unsigned list_count(const struct list *head)
{
    unsigned n = 0;
    for (const struct list *l = head->next; l != head; l = l->next) {
        n++;
    }
    return n;
}

/* list_push_back() links `item` at the end of the list `head`. */
static inline void list_push_back(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/* list_insert_after() links `item` behind `where`, which is a link or a head. */
static inline void list_insert_after(struct list *where, struct list *item)
{
    list_push_back(where->next, item);
}

/* list_remove() unlinks `item`, which may be unlinked already. */
static inline void list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* list_pop_front() unlinks and returns the first link, or NULL. */
static inline struct list *list_pop_front(struct list *head)
{
    if (list_empty(head)) {
        return NULL;
    }
    struct list *first = head->next;
    list_remove(first);
    return first;
}

/* list_splice_back() moves the links from `first` to `last` of another list to the end of `head`.
 */
static inline void list_splice_back(struct list *head, struct list *first, struct list *last)
{
    first->prev->next = last->next;
    last->next->prev = first->prev;
    first->prev = head->prev;
    last->next = head;
    head->prev->next = first;
    head->prev = last;
}

/* list_move_all() moves all links of the list `from` to the end of `head`. */
static inline void list_move_all(struct list *head, struct list *from)
{
    if (!list_empty(from)) {
        list_splice_back(head, from->next, from->prev);
    }
}

#endif
