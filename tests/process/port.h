/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What most process tests need of Portals: an interface of some kind with its
 * peers' ids, one portal table index, and two event queues,
 *
 *      eq    events of the portal table entry, where messages arrive
 *      mdeq  events of the MDs, from which messages leave
 *
 * apart so that a process that sends to itself can tell them from each other.
 * Every helper fails the case when a call does not give what is expected.
 */
#ifndef PORT_H
#define PORT_H

#include "ptest.h"

#include "portals4.h"

#define PORT_EVENTS 4096 /* size of the queues */

struct port {
    int rank, size;
    unsigned kind; /* PTL_NI_... options */
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t phys[PTEST_RANKS]; /* physical ids of all ranks */
    ptl_process_t id[PTEST_RANKS];   /* how they are named on this interface */
    ptl_uid_t uid;
    ptl_handle_eq_t eq, mdeq;
    ptl_pt_index_t pt;
};

/* The four kinds of interface; KIND_ML is matching and logical, and so on. */
#define KIND_ML (PTL_NI_MATCHING | PTL_NI_LOGICAL)
#define KIND_MP (PTL_NI_MATCHING | PTL_NI_PHYSICAL)
#define KIND_NL (PTL_NI_NO_MATCHING | PTL_NI_LOGICAL)
#define KIND_NP (PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL)

/* Four cases with one body, which finds the kind in `kind`. */
#define PTEST_KINDS(id_, nprocs_)                                                                  \
    PTEST_BODY_(id_);                                                                              \
    PTEST_CASE_(id_##_matching_logical, id_, nprocs_, PTEST_LIMIT_S, KIND_ML)                      \
    PTEST_CASE_(id_##_matching_physical, id_, nprocs_, PTEST_LIMIT_S, KIND_MP)                     \
    PTEST_CASE_(id_##_plain_logical, id_, nprocs_, PTEST_LIMIT_S, KIND_NL)                         \
    PTEST_CASE_(id_##_plain_physical, id_, nprocs_, PTEST_LIMIT_S, KIND_NP)                        \
    PTEST_BODY_(id_)

/* Two cases, for what exists on matching interfaces only. */
#define PTEST_MATCHING(id_, nprocs_)                                                               \
    PTEST_BODY_(id_);                                                                              \
    PTEST_CASE_(id_##_logical, id_, nprocs_, PTEST_LIMIT_S, KIND_ML)                               \
    PTEST_CASE_(id_##_physical, id_, nprocs_, PTEST_LIMIT_S, KIND_MP)                              \
    PTEST_BODY_(id_)

static inline bool port_matching(const struct port *p)
{
    return (p->kind & PTL_NI_MATCHING) != 0;
}

static inline bool port_logical(const struct port *p)
{
    return (p->kind & PTL_NI_LOGICAL) != 0;
}

/* port_open() calls PtlInit, opens an interface of PTL_IFACE_DEFAULT, sets its
 * map to the ranks of the case, makes queues and a portal table entry. All
 * ranks of the case must call it. */
void port_open(struct port *p, unsigned kind, int rank, int size);
void port_open_with(struct port *p, ptl_interface_t iface, unsigned kind, int rank, int size,
                    const ptl_ni_limits_t *desired);

/* port_ids() exchanges physical ids and sets the map of a logical interface. */
void port_ids(struct port *p);

/* port_close() waits for all ranks, closes the interface and calls PtlFini. */
void port_close(struct port *p);

/* port_md() binds an MD whose events go to mdeq. */
ptl_handle_md_t port_md(struct port *p, void *start, size_t length, unsigned options,
                        ptl_handle_ct_t ct);

/* port_quiet_md() binds an MD without event queue. */
ptl_handle_md_t port_quiet_md(struct port *p, void *start, size_t length, unsigned options,
                              ptl_handle_ct_t ct);

/* port_release() releases an MD, trying again while it is in use. */
void port_release(ptl_handle_md_t md);

ptl_handle_ct_t port_ct(struct port *p);

/* port_wait_ct() waits at most ten seconds for a counter; the case fails if
 * the counter fails or passes `success`. */
void port_wait_ct(ptl_handle_ct_t ct, uint64_t success);

/* port_entry() fills an entry that takes everything from everybody. */
ptl_me_t port_entry(struct port *p, void *start, size_t length, unsigned options);

/* port_append() appends an ME, or on a non-matching interface the LE in it;
 * port_append_code() does so and returns what the call gave. */
int port_append_code(struct port *p, ptl_pt_index_t pt, const ptl_me_t *me, void *user_ptr,
                     ptl_handle_me_t *handle);
ptl_handle_me_t port_append(struct port *p, const ptl_me_t *me, void *user_ptr);
int port_unlink_code(struct port *p, ptl_handle_me_t handle);

/* port_unlink() unlinks an entry, trying again while it is in use. */
void port_unlink(struct port *p, ptl_handle_me_t handle);

/* port_target() appends an entry without link event: the usual target. */
ptl_handle_me_t port_target(struct port *p, void *start, size_t length, unsigned options,
                            void *user_ptr);

/* port_status() reads a status register. */
int port_status(struct port *p, ptl_sr_index_t index);

/* The next event of a queue, within ten seconds, which must be of this type and
 * end this way. */
#define EVENT(eq, type) port_event(eq, type, PTL_NI_OK, __FILE__, __LINE__)
#define EVENT_FAIL(eq, type, fail) port_event(eq, type, fail, __FILE__, __LINE__)
ptl_event_t port_event(ptl_handle_eq_t eq, int type, int fail, const char *file, int line);

/* No event is there, nor comes in the next 20 ms. */
#define NO_EVENT(eq) port_no_event(eq, __FILE__, __LINE__)
void port_no_event(ptl_handle_eq_t eq, const char *file, int line);

const char *port_event_name(int type);

/* True if the event's initiator is this rank, as the interface names it. */
bool port_is_from(const struct port *p, const ptl_event_t *event, int rank);

#endif
