/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the handler library share, on top of the harness of process tests:
 * entries, senders that count what was acknowledged, and lengths around packets.
 */
#ifndef KIT_H
#define KIT_H

#include "port.h"

#include "spin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kit {
    struct port p;
    ptl_spin_limits_t spin;
    size_t packet; /* max_payload_size */
};

/* kit_open() opens a logical, matching interface, or `kind`; all ranks call it. */
void kit_open(struct kit *k, int rank, int size);
void kit_open_kind(struct kit *k, unsigned kind, int rank, int size);
void kit_close(struct kit *k);

/* kit_entry() appends an entry for puts and gets with exactly these match bits. Of what
 * ends well it counts in `ct`, unless that is none, and posts nothing. */
ptl_handle_me_t kit_entry(struct kit *k, void *start, size_t length, uint64_t bits,
                          unsigned options, ptl_handle_ct_t ct, const ptl_handlers_t *handlers);

/* Puts from one piece of memory, with a count of what was acknowledged. */
struct kit_sender {
    struct kit *k;
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    uint64_t sent;
};

struct kit_sender kit_sender(struct kit *k, const void *start, size_t length);
void kit_put(struct kit_sender *s, size_t offset, size_t length, int to, uint64_t bits,
             uint64_t remote_offset, uint64_t hdr_data);
/* kit_flush() waits for all acknowledgements, none of which tells of a failure. */
void kit_flush(struct kit_sender *s);
void kit_release(struct kit_sender *s);

/* One put, which ends that way at the target. */
void kit_put_once(struct kit *k, const void *start, size_t length, int to, uint64_t bits,
                  uint64_t remote_offset, uint64_t hdr_data, int fail);
/* One get. */
void kit_get_once(struct kit *k, void *start, size_t length, int from, uint64_t bits,
                  uint64_t remote_offset);

/* kit_wait() waits until the counter has counted that many, all of them successes. */
void kit_wait(ptl_handle_ct_t ct, uint64_t success);

/* Lengths: nothing, one byte, around a line, around packets, many packets. */
enum { KIT_SIZES = 12 };
size_t kit_size(const struct kit *k, int i);
size_t kit_largest(const struct kit *k);

/* kit_memory() gives zeroed memory at a multiple of 64. To be freed, or not: the process is
 * the case's own. */
void *kit_memory(size_t length);

/* Between begin_capture() and end_capture() what this process writes on standard error is
 * kept; the end gives its first bytes. What a sanitizer reports is shown all the same. */
void begin_capture(void);
void end_capture(char *text, size_t size);

#define CHECK_SAME(got, want, length)                                                              \
    (ptest_seen(__FILE__, __LINE__), kit_same(got, want, length, #got, __FILE__, __LINE__))
void kit_same(const void *got, const void *want, size_t length, const char *text, const char *file,
              int line);

#endif
