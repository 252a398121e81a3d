/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's end of the demo: its interface and one control entry, into which the
 * other rank puts one message at a time; the next one comes only after an answer
 * to this one has left. All entries are behind one portal table index (handlers
 * send to the index of their entry), told apart by match bits.
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
    BITS_TEXT = 16, /* plus the slot */
};

struct demo_link {
    struct pinwheel_job *job;
    int rank;
    ptl_handle_ni_t ni;
    ptl_process_t peer;
    uint64_t packet; /* bytes of one */
    ptl_handle_ct_t control_ct;
    ptl_handle_md_t control_md;
    uint64_t received;
    uint64_t inbox[LINK_MESSAGE_MAX / 8], outbox[LINK_MESSAGE_MAX / 8];
};

int link_open(struct demo_link *l);
void link_close(struct demo_link *l);

/* link_send() sends a control message, link_receive() waits for one and copies
 * its first `length` bytes. */
int link_send(struct demo_link *l, const void *message, uint64_t length);
int link_receive(struct demo_link *l, void *message, uint64_t length);

/* link_wait() waits until a counter has reached `test`; `what` says for whom it
 * may concern what was waited for. A failure counted is an error, and so is
 * that nothing comes for long. */
int link_wait(struct demo_link *l, ptl_handle_ct_t ct, uint64_t test, const char *what);

/* link_entry() appends an entry for puts, counted by `ct`, with handlers unless
 * NULL; link_unlink() takes it away again. `options` come on top. */
int link_entry(struct demo_link *l, void *start, uint64_t length, uint64_t bits, unsigned options,
               ptl_handle_ct_t ct, const ptl_handlers_t *handlers, ptl_handle_me_t *me);
int link_unlink(struct demo_link *l, ptl_handle_me_t me);

/* link_md() binds a range to send from; acks are counted by `ct` unless
 * PTL_CT_NONE. */
int link_md(struct demo_link *l, const void *start, uint64_t length, ptl_handle_ct_t ct,
            ptl_handle_md_t *md);

/* link_ok() says whether a Portals call gave PTL_OK, and if not, says so. */
bool link_ok(const struct demo_link *l, int code, const char *call);

/* link_say() writes a line about this rank on stderr and returns -1. */
int link_say(const struct demo_link *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
