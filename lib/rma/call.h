/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-sided operations: what handlers would do where the target's interface has none, its library
 * does.
 *
 *      origin (call.c)                            target (serve.c)
 *      a slot: what is asked, what comes back
 *      put ────────── head, elements ───────────► a buffer ──► thread: does it
 *      event ◄─────── old values, hdr_data ────── put
 *      slot free, request or peer told
 *
 * - D1 A call ends once: by its answer, the failure of its message, or the end of its target. Its
 * slot is free when the message's own end was told, too; so neither finds another call there.
 * - D2 Messages of a process to a region are done in the order in which they were sent: one thread
 *   does all. What goes to the region in another way waits for them first.
 * - D3 Who waits for an answer asks now and then whether the target's process is there.
 */
#ifndef RMA_CALL_H
#define RMA_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CALL_VERSION = 1, CALL_MOST = 4096, CALL_SLOTS = 32, CALL_BUFFERS = 64 };

struct call_head {
    uint32_t magic;
    uint16_t version, slot;
    uint32_t sequence, reply_pt;
    uint64_t incarnation, bits, offset, call; /* call: pairs_call() */
    uint64_t place;                           /* where the answer goes, in the entry for answers */
    uint32_t length, fetches;
};

/* The header data of an answer. */
static inline uint64_t call_answer(uint32_t sequence, unsigned slot, int code)
{
    return (uint64_t)sequence << 32 | (uint64_t)(slot & 0xffff) << 16 | (uint64_t)(-code & 0xffff);
}

#define CALL_MAGIC UINT32_C(0x434b5750)

/* call_read() finds a head in a message, behind which its elements are; false: it is none. */
static inline bool call_read(const void *bytes, size_t size, struct call_head *head)
{
    if (size < sizeof(*head)) {
        return false;
    }
    memcpy(head, bytes, sizeof(*head));
    return head->magic == CALL_MAGIC && head->version == CALL_VERSION && head->fetches <= 1 &&
           head->length <= CALL_MOST && head->length == size - sizeof(*head) &&
           head->slot < CALL_SLOTS && head->reply_pt <= 65535;
}

#endif
