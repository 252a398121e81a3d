/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List entries (entry.c): their life, and how an entry judges the requests that find it. What a
 * request may do to its memory, how much of the request it takes, and which events its owner gets
 * are rules of Portals: each is written once, in this file, for all paths on which a request comes.
 */
#ifndef NIC_ENTRY_H
#define NIC_ENTRY_H

#include "nic/counter.h"

/* ---- life ---- */

/* le_append() links an entry whose arguments the caller has checked, and takes over `handlers`. It
 * returns a PTL_ code. */
struct le_setup {
    const ptl_me_t *me; /* of a non-matching NI only the ptl_le_t part is read */
    bool matching;
    ptl_list_t list;
    void *user_ptr;
    struct handlers *handlers;
    struct vector vector; /* with PTL_IOVEC: a copy of the parts, taken over */
    uint64_t length;      /* of the memory, in bytes */
    struct ct_ref ct;
};
int le_append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup,
              ptl_handle_le_t *handle);
/* le_append_plain() is le_append() at a matching NI, of an entry without handlers, parts and
 * counter; the caller has seen that table and list have a place. */
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
/* le_append() in two steps: le_new() makes an entry that no message finds yet; le_link() links it
 * and lets it claim the unexpected headers that it matches. If le_link() fails, the entry still
 * belongs to the caller, who frees it by le_free(). */
struct le *le_new(struct ni *ni, uint32_t pt_index, const struct le_setup *setup);
int le_link(struct le *le);
void le_free(struct le *le);
/* le_search() posts the events of a PtlMESearch or PtlLESearch. */
void le_search(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, ptl_search_op_t op);
/* le_activate() lets messages find an entry whose handlers were inactive. PTL_ARG_INVALID: they
 * were not inactive. PTL_IN_USE: a message that the host has started holds the entry, and may use
 * it up. */
int le_activate(struct le *le);
/* le_unlink() is PtlMEUnlink; it returns PTL_IN_USE while the entry has users or unexpected
 * headers. */
int le_unlink(struct le *le);
/* le_take_out() removes an entry that a message has used up from its list. */
void le_take_out(struct le *le);
/* le_use_up() does so for an entry without a message in progress, and goes on with its end
 * (settle()). */
void le_use_up(struct le *le);
/* le_release() ends a message's use of an entry; the last user of one that was used up ends it. */
void le_release(struct le *le);
/* handlers_release() frees the handlers of an entry, and their HPU memory if they own it. */
void handlers_release(struct handlers *handlers);
/* unexpected_end() notes that the message of an unexpected header is complete, or was lost. */
void unexpected_end(struct unexpected *u, ptl_ni_fail_t fail);
/* unexpected_forget() drops a header that is in no list any more; an entry that was used up ends
 * with its last header. */
void unexpected_forget(struct unexpected *u);

/* ---- what an entry says of a request ---- */

/* le_permits() says whether user `uid` may do `needs`, a set of PTL_ME_OP_PUT and PTL_ME_OP_GET: it
 * returns PTL_NI_OK, or how the request fails. */
static inline ptl_ni_fail_t le_permits(const struct le *le, ptl_uid_t uid, unsigned needs)
{
    if (unlikely(le->uid != PTL_UID_ANY) && le->uid != uid) {
        return PTL_NI_PERM_VIOLATION;
    }
    return (le->options & needs) == needs ? PTL_NI_OK : PTL_NI_OP_VIOLATION;
}
/* le_offset() returns where in the entry a request with this `remote_offset` begins: with managed
 * offset at the entry's own. */
static inline uint64_t le_offset(const struct le *le, uint64_t remote_offset)
{
    return (le->options & PTL_ME_MANAGE_LOCAL) != 0 ? le->offset : remote_offset;
}
/* le_room() returns how many bytes the entry has from `offset` on; le_holds() says whether it has
 * `length` of them. */
static inline uint64_t le_room(const struct le *le, uint64_t offset)
{
    return offset < le->length ? le->length - offset : 0;
}
static inline bool le_holds(const struct le *le, uint64_t offset, uint64_t length)
{
    return offset <= le->length && length <= le->length - offset;
}
/* le_is_undercut() says whether an entry with managed offset has less than `min_free` bytes
 * left. */
static inline bool le_is_undercut(const struct le *le)
{
    return le->min_free != 0 && le_room(le, le->offset) < le->min_free;
}
/* le_fits() says whether an entry takes a request that matches, of so many bytes: it truncates, or
 * has room for all of them. */
static inline bool le_fits(const struct le *le, uint64_t remote_offset, uint64_t length)
{
    return (le->options & PTL_ME_NO_TRUNCATE) == 0 ||
           le_holds(le, le_offset(le, remote_offset), length);
}
/* le_reserve() hides an entry from messages, or shows it again. While it is hidden, matching must
 * ask entry_fits() about it (`picky`). */
static inline void le_reserve(struct le *le, bool reserved)
{
    le->reserved = reserved;
    le->match.picky = reserved || (le->options & PTL_ME_NO_TRUNCATE) != 0;
}
/* Whether a message that this entry takes leaves an unexpected header. */
static inline bool le_leaves_header(const struct le *le)
{
    return le->list == PTL_OVERFLOW_LIST && (le->options & PTL_ME_UNEXPECTED_HDR_DISABLE) == 0;
}
/* le_memory() returns the entry's memory from an offset on; le_address() where that begins, or NULL
 * if the entry has no byte there. */
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
/* le_counter() returns the entry's counter if its options ask to count `what`, PTL_ME_EVENT_CT_COMM
 * or ..._CT_OVERFLOW, else none. le_counts() returns by how much a request of `mlength` bytes
 * counts. le_count() counts one. */
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
/* Fills in a deed (request.h) at a fast entry that holds the put whole: le_say_place() where its
 * bytes go, le_say_count() which counter it counts, and by how much. For an atomic the caller sets
 * the rest. */
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
/* le_wants_event() says whether the owner gets an event, where `disable` (PTL_ME_EVENT_COMM_DISABLE
 * or ..._OVER_DISABLE) is the option that would suppress it. */
static inline bool le_wants_event(const struct le *le, unsigned disable, ptl_ni_fail_t fail)
{
    return (le->options & disable) == 0 &&
           (fail != PTL_NI_OK || (le->options & PTL_ME_EVENT_SUCCESS_DISABLE) == 0);
}

/* Whether the portal table entry may remember this entry as the one that a header finds. A use-once
 * entry is never remembered, so its end need not invalidate what was remembered
 * (unlink_from_list()). */
static inline bool le_lasts(const struct le *le)
{
    return (le->options & PTL_ME_USE_ONCE) == 0;
}

/* ---- which requests end in one step ---- */

/* The options that an entry may have for the fast path (plain.c): LE_FAST_OPTIONS; and for a
 * request that ends in one step (stages.h): LE_PLAIN_OPTIONS. Messages at an entry with any other
 * option pass through all stages; an option is added only after a look at both. */
#define LE_FAST_OPTIONS                                                                            \
    (PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |             \
     PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |                \
     PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_OVER_DISABLE |    \
     PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |               \
     PTL_ME_EVENT_CT_BYTES | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH)
#define LE_PLAIN_OPTIONS (LE_FAST_OPTIONS | PTL_IOVEC | PTL_ME_ACK_DISABLE)

#endif
