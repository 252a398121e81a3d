/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List entries (entry.c): their life, and what an entry says of the requests that find it. What
 * may be done to its memory, how much of a request it takes, and what its owner is told are rules
 * of Portals: each of them is written here, once, for every way on which a request may come.
 */
#ifndef NIC_ENTRY_H
#define NIC_ENTRY_H

#include "nic/counter.h"

/* ---- life ---- */

/* le_append() links an entry whose arguments were checked; `handlers` is taken
 * over. Gives a PTL_ code. */
struct le_setup {
    const ptl_me_t *me; /* for a non-matching NI only its ptl_le_t part is read */
    bool matching;
    ptl_list_t list;
    void *user_ptr;
    struct handlers *handlers;
    struct vector vector; /* with PTL_IOVEC: a copy of the parts, taken over */
    uint64_t length;      /* of the memory */
    struct ct_ref ct;
};
int le_append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup,
              ptl_handle_le_t *handle);
/* le_append_plain() is le_append() of a matching NI for what has no handlers, no parts and no
 * counter, where there is a place in table and list. */
void le_append_plain(struct ni *ni, uint32_t pt_index, const ptl_me_t *me, ptl_list_t list,
                     void *user_ptr, ptl_handle_me_t *handle);
static inline struct match_list *pt_list(struct pt *pt, ptl_list_t list)
{
    return list == PTL_PRIORITY_LIST ? &pt->priority : &pt->overflow;
}
static inline bool list_has_place(const struct ni *ni, const struct match_list *list)
{
    return list->entries < (unsigned)ni->limits.max_list_size;
}
/* The same in two steps: le_new() makes an entry that no message finds, le_link()
 * takes the unexpected headers that it matches and links it. An entry that
 * le_link() could not link is the caller's still; le_free() forgets it. */
struct le *le_new(struct ni *ni, uint32_t pt_index, const struct le_setup *setup);
int le_link(struct le *le);
void le_free(struct le *le);
/* le_search() posts what a search finds. */
void le_search(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, ptl_search_op_t op);
/* le_activate() lets messages find an entry whose handlers were inactive; PTL_ARG_INVALID if
 * they were not, PTL_IN_USE while a message that the host has started has it in hand and may use it
 * up. */
int le_activate(struct le *le);
/* le_unlink() gives PTL_IN_USE while a message is in progress. */
int le_unlink(struct le *le);
/* le_take_out() removes an entry from its list because a message used it up. */
void le_take_out(struct le *le);
/* le_use_up() does so, with what follows, for one that has no message in progress. */
void le_use_up(struct le *le);
/* le_release() ends a message's use of an entry; the last posts AUTO_UNLINK. */
void le_release(struct le *le);
/* handlers_release() frees what an entry has besides, and HPU memory of its own. */
void handlers_release(struct handlers *handlers);
/* unexpected_end() says that the message of a header is complete, or was lost. */
void unexpected_end(struct unexpected *u, ptl_ni_fail_t fail);
/* unexpected_forget() drops a header that is in no list; its entry may go with it. */
void unexpected_forget(struct unexpected *u);

/* ---- what an entry says of a request ---- */

/* le_permits() says whether a user may do what `needs`, of PTL_ME_OP_PUT and PTL_ME_OP_GET: it
 * gives PTL_NI_OK, or how the request fails. */
static inline ptl_ni_fail_t le_permits(const struct le *le, ptl_uid_t uid, unsigned needs)
{
    if (unlikely(le->uid != PTL_UID_ANY) && le->uid != uid) {
        return PTL_NI_PERM_VIOLATION;
    }
    return (le->options & needs) == needs ? PTL_NI_OK : PTL_NI_OP_VIOLATION;
}
/* le_offset() is where in the entry a request begins that names `remote_offset`. */
static inline uint64_t le_offset(const struct le *le, uint64_t remote_offset)
{
    return (le->options & PTL_ME_MANAGE_LOCAL) != 0 ? le->offset : remote_offset;
}
/* le_room() is what is left in the entry behind `offset`; le_holds() says whether `length` bytes
 * from there on are all in it. */
static inline uint64_t le_room(const struct le *le, uint64_t offset)
{
    return offset < le->length ? le->length - offset : 0;
}
static inline bool le_holds(const struct le *le, uint64_t offset, uint64_t length)
{
    return offset <= le->length && length <= le->length - offset;
}
/* le_is_undercut() says whether an entry that manages its offset has less room left than it must
 * have. */
static inline bool le_is_undercut(const struct le *le)
{
    return le->min_free != 0 && le_room(le, le->offset) < le->min_free;
}
/* le_fits() says whether an entry whose bits and source match is also one for so many bytes: it
 * truncates, or has room for all of them. */
static inline bool le_fits(const struct le *le, uint64_t remote_offset, uint64_t length)
{
    return (le->options & PTL_ME_NO_TRUNCATE) == 0 ||
           le_holds(le, le_offset(le, remote_offset), length);
}
/* le_reserve() has no message find an entry, for a while, and match.h ask whether one fits. */
static inline void le_reserve(struct le *le, bool reserved)
{
    le->reserved = reserved;
    le->match.picky = reserved || (le->options & PTL_ME_NO_TRUNCATE) != 0;
}
/* Whether a message that it takes leaves an unexpected header. */
static inline bool le_leaves_header(const struct le *le)
{
    return le->list == PTL_OVERFLOW_LIST && (le->options & PTL_ME_UNEXPECTED_HDR_DISABLE) == 0;
}
/* le_memory() is its memory from an offset on, le_address() where that begins, NULL if it has no
 * byte there. */
static inline struct memory le_memory(const struct le *le, uint64_t offset)
{
    return memory_of(le->start, &le->vector, offset);
}
void *le_address_in_parts(const struct le *le, uint64_t offset);
static inline void *le_address(const struct le *le, uint64_t offset)
{
    return likely(le->vector.parts == NULL) ? memory_at(le->start, offset)
                                            : le_address_in_parts(le, offset);
}
/* le_counter() is the counter that the entry has for `what`, PTL_ME_EVENT_CT_COMM or
 * ..._CT_OVERFLOW, if it is to be counted; le_counts() is what one request counts that has moved so
 * many bytes; le_count() counts it. */
static inline struct ct_ref le_counter(const struct le *le, unsigned what)
{
    return (struct ct_ref){(le->options & what) != 0 ? le->ct.ct : NULL, le->ct.handle};
}
static inline uint64_t le_counts(const struct le *le, uint64_t mlength)
{
    return (le->options & PTL_ME_EVENT_CT_BYTES) != 0 ? mlength : 1;
}
static inline void le_count(const struct le *le, unsigned what, ptl_ni_fail_t fail,
                            uint64_t mlength)
{
    struct ct_ref ct = le_counter(le, what);
    if (unlikely(ct.ct != NULL)) {
        ct_count(ct, fail, true, le_counts(le, mlength));
    }
}
/* le_say_place() sets where a put that a fast entry holds whole goes, le_say_count() what it counts
 * there; of an atomic the rest is the caller's. */
static inline void le_say_place(const struct le *le, uint64_t offset, uint64_t length,
                                struct deed *d)
{
    d->to = memory_at(le->start, offset);
    d->length = (uint32_t)length;
    d->kind = OP_PUT;
}
static inline void le_say_count(const struct le *le, struct deed *d)
{
    d->ct = le_counter(le, PTL_ME_EVENT_CT_COMM);
    d->count = le_counts(le, d->length);
}
/* le_wants_event() says whether its owner is to have an event that PTL_ME_EVENT_COMM_DISABLE, or
 * ..._OVER_DISABLE, would forbid. */
static inline bool le_wants_event(const struct le *le, unsigned disable, ptl_ni_fail_t fail)
{
    return (le->options & disable) == 0 &&
           (fail != PTL_NI_OK || (le->options & PTL_ME_EVENT_SUCCESS_DISABLE) == 0);
}

/* Whether an entry may be remembered as what a header finds: one that its first message uses up is
 * never, and goes without a word to those who remember (entry.c). */
static inline bool le_lasts(const struct le *le)
{
    return (le->options & PTL_ME_USE_ONCE) == 0;
}

/* ---- which requests end in one step ---- */

/* The options of an entry that the fast path knows of (plain.c), and those of one where a request
 * ends in one step (stages.h). An entry with any other option has its messages go through all
 * stages, until somebody has thought about it. */
#define LE_FAST_OPTIONS                                                                            \
    (PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |             \
     PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |                \
     PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_OVER_DISABLE |    \
     PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |               \
     PTL_ME_EVENT_CT_BYTES | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH)
#define LE_PLAIN_OPTIONS (LE_FAST_OPTIONS | PTL_IOVEC | PTL_ME_ACK_DISABLE)

#endif
