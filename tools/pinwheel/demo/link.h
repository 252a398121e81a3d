/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of a rank with the other rank: its interface, and one control entry. The other
 * rank puts one message at a time into the control entry, and the next one only after this rank has
 * sent an answer. All entries are behind one portal table index, since handlers send to the index
 * of their own entry; match bits tell them apart.
 */
#ifndef PINWHEEL_DEMO_LINK_H
#define PINWHEEL_DEMO_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "pinwheel.h"
#include "portals4.h"
#include "spin.h"

enum { LINK_INDEX = 4, LINK_MESSAGE_MAX = 4096 };

enum link_bits {
    BITS_CONTROL = 1,
    BITS_PING = 2,
    BITS_PONG = 3,
    BITS_TEXT = 16, /* plus the number of the slot */
};

struct demo_link {
    struct pinwheel_job *job;
    int rank;
    ptl_handle_ni_t ni;
    ptl_process_t peer;
    uint64_t packet; /* bytes of a packet */
    ptl_handle_ct_t control_ct;
    ptl_handle_md_t control_md;
    uint64_t received;
    uint64_t inbox[LINK_MESSAGE_MAX / 8], outbox[LINK_MESSAGE_MAX / 8];
};

int link_open(struct demo_link *l);
void link_close(struct demo_link *l);

/* link_send() sends a control message; link_receive() waits for one and copies its first `length`
 * bytes. */
int link_send(struct demo_link *l, const void *message, uint64_t length);
int link_receive(struct demo_link *l, void *message, uint64_t length);

/* link_wait() waits until a counter has reached `test`; `what` names the event for error messages.
 * It fails if the counter counts a failure, or if nothing happens for too long. */
int link_wait(struct demo_link *l, ptl_handle_ct_t ct, uint64_t test, const char *what);

/* link_entry() appends an entry for puts, which `ct` counts, with handlers unless that is NULL;
 * `options` are added to those that it always has. link_unlink() removes the entry. */
int link_entry(struct demo_link *l, void *start, uint64_t length, uint64_t bits, unsigned options,
               ptl_handle_ct_t ct, const ptl_handlers_t *handlers, ptl_handle_me_t *me);
int link_unlink(struct demo_link *l, ptl_handle_me_t me);

/* link_md() binds memory to send from; `ct` counts acks unless it is PTL_CT_NONE. */
int link_md(struct demo_link *l, const void *start, uint64_t length, ptl_handle_ct_t ct,
            ptl_handle_md_t *md);

/* link_ok() is true if a Portals call returned PTL_OK; if not, it prints the error. */
bool link_ok(const struct demo_link *l, int code, const char *call);

/* link_say() writes a line about this rank on stderr and returns -1. */
int link_say(const struct demo_link *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
