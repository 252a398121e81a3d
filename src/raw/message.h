/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of an execution context (context.h). */
#ifndef RAW_MESSAGE_H
#define RAW_MESSAGE_H

#include "raw/context.h"

#include "base/hash.h"

enum raw_way { RAW_WAY_PROCESS, RAW_WAY_DROP, RAW_WAY_PASS };
enum { RAW_MESSAGE_STATE = 256 };

struct raw_key {
    uint32_t set, id[RAW_IDS];
};

struct raw_message {
    _Alignas(64) uint8_t state[RAW_MESSAGE_STATE];
    bool state_used;
    struct raw_key key;
    enum raw_way way;
    uint64_t last, bytes, dropped; /* time of the last frame; bytes of all, and of those dropped */
    ptl_header_t header;
    struct list link;
    UT_hash_handle hh;
};

/* raw_message_find() finds the message of a frame, or makes one; *begins says so. NULL: there is no
 * room for one more. raw_message_end() takes a message out and frees it. */
struct raw_message *raw_message_find(struct raw_context *c, const struct raw_set *set,
                                     const struct raw_frame *frame, bool *begins);
void raw_message_end(struct raw_context *c, struct raw_message *m);

#endif
