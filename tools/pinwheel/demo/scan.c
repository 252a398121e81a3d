/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file streamed through handlers (handlers/textscan.h). Rank 0 reads it piece by piece and puts
 * each piece to rank 1, whose handlers count; meanwhile rank 1's program waits, and the text is
 * never stored in its memory.
 *
 *   rank 0: SCAN ─► rank 1: one entry a slot ─► READY ─► message m to slot m % SLOTS, as soon
 *           as the ack of message m - SLOTS is there ... ─► SCANNED ─► rank 1: the totals
 *
 * Rank 1's NIC sends the ack of a message after its completion handler, so each slot has one
 * message at a time, and the acks come in the order of the messages.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A text has at least eight messages, so that also a short one shows their edges, and a message has
 * at most 64 packets. */
enum { MESSAGES_WANTED = 8, PACKETS_MOST = 64 };

_Static_assert((int)PACKETS_MOST <= (int)TEXTSCAN_PACKETS, "the handlers take such messages");
_Static_assert(sizeof(struct textscan_totals) <= LINK_MESSAGE_MAX, "one control message");

/* ---- Rank 1 ---- */

struct slots {
    ptl_handle_ct_t ct;
    int count;
    ptl_handle_me_t entry[TEXTSCAN_SLOTS];
    ptl_handle_hpu_mem_t memory[TEXTSCAN_SLOTS];
};

static int open_slots(struct demo_link *l, const struct textscan_filter *filter, uint64_t messages,
                      void *host, struct slots *s)
{
    struct textscan_state state;
    ptl_handlers_t handlers;
    s->count = 0;
    if (!link_ok(l, PtlCTAlloc(l->ni, &s->ct), "PtlCTAlloc")) {
        return -1;
    }
    for (unsigned i = 0; i < TEXTSCAN_SLOTS; i++) {
        if (!link_ok(l, PtlHPUAllocMem(l->ni, sizeof(state), &s->memory[i]), "PtlHPUAllocMem")) {
            return -1;
        }
        textscan_handlers(i, filter, l->packet, s->memory[i], host, messages, &state, &handlers);
        /* the entry has no memory: handlers see the text, and it is not stored */
        if (link_entry(l, NULL, 0, BITS_TEXT + i, 0, s->ct, &handlers, &s->entry[i]) != 0) {
            return -1;
        }
        s->count++;
    }
    return 0;
}

static int close_slots(struct demo_link *l, struct slots *s)
{
    for (int i = 0; i < s->count; i++) {
        if (link_unlink(l, s->entry[i]) != 0 ||
            !link_ok(l, PtlHPUFreeMem(s->memory[i]), "PtlHPUFreeMem")) {
            return -1;
        }
    }
    return link_ok(l, PtlCTFree(s->ct), "PtlCTFree") ? 0 : -1;
}

int demo_scan_serve(struct demo_link *l, const struct textscan_filter *filter,
                    const struct demo_command *c)
{
    struct slots slots;
    struct textscan_totals totals;
    struct demo_command word = {.kind = DEMO_READY};
    void *host = calloc(1, textscan_host_size(c->count));
    int rc = -1;
    if (host == NULL) {
        return link_say(l, "no memory for the results of %" PRIu64 " messages", c->count);
    }
    if (open_slots(l, filter, c->count, host, &slots) != 0 ||
        link_send(l, &word, sizeof(word)) != 0 || link_receive(l, &word, sizeof(word)) != 0 ||
        close_slots(l, &slots) != 0) {
        goto out; /* the entries may still exist: only the end of the process removes them */
    }
    textscan_result(host, c->count, filter, &totals);
    rc = link_send(l, &totals, sizeof(totals));
out:
    free(host);
    return rc;
}

/* ---- Rank 0 ---- */

struct streamer {
    struct demo_link *l;
    const char *path;
    int file;
    uint8_t *buffer; /* room for one message in each slot */
    uint64_t size;   /* bytes of a message */
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
};

static int read_piece(struct streamer *s, void *to, uint64_t length, uint64_t offset)
{
    for (uint64_t at = 0; at < length;) {
        ssize_t n = pread(s->file, (char *)to + at, length - at, (off_t)(offset + at));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return link_say(s->l, "--file %s: %s", s->path, strerror(errno));
        }
        if (n == 0) {
            return link_say(s->l, "--file %s: became shorter while it was read", s->path);
        }
        at += (uint64_t)n;
    }
    return 0;
}

static int send_piece(struct streamer *s, uint64_t message, uint64_t length)
{
    uint64_t slot = message % TEXTSCAN_SLOTS;
    if (message >= TEXTSCAN_SLOTS &&
        link_wait(s->l, s->ct, message - TEXTSCAN_SLOTS + 1, "messages to the handlers") != 0) {
        return -1;
    }
    if (read_piece(s, s->buffer + slot * s->size, length, message * s->size) != 0) {
        return -1;
    }
    int code = PtlPut(s->md, slot * s->size, length, PTL_CT_ACK_REQ, s->l->peer, LINK_INDEX,
                      BITS_TEXT + slot, 0, NULL, message);
    return link_ok(s->l, code, "PtlPut") ? 0 : -1;
}

static int stream(struct streamer *s, struct demo_scan *r)
{
    struct demo_command c = {.kind = DEMO_SCAN, .count = r->messages};
    struct timespec start, end;
    if (link_send(s->l, &c, sizeof(c)) != 0 || link_receive(s->l, &c, sizeof(c)) != 0) {
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t m = 0; m < r->messages; m++) {
        uint64_t left = r->bytes - m * s->size;
        if (m % 256 == 0) {
            demo_progress("file: %" PRIu64 " of %" PRIu64 " MiB", m * s->size >> 20,
                          r->bytes >> 20);
        }
        if (send_piece(s, m, left < s->size ? left : s->size) != 0) {
            return -1;
        }
    }
    if (link_wait(s->l, s->ct, r->messages, "messages to the handlers") != 0) {
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    r->seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    c.kind = DEMO_SCANNED;
    return link_send(s->l, &c, sizeof(c)) != 0 || link_receive(s->l, &r->nic, sizeof(r->nic)) != 0
               ? -1
               : 0;
}

/* Returns the bytes of a message: a multiple of the packet size, so that each message begins with a
 * new packet. */
static uint64_t choose_size(uint64_t bytes, uint64_t packet)
{
    uint64_t packets = (bytes / MESSAGES_WANTED + packet - 1) / packet;
    return packet * (packets < 1 ? 1 : packets > PACKETS_MOST ? PACKETS_MOST : packets);
}

static bool equal(const struct demo_options *o, const struct demo_scan *r)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 256; i++) {
        bytes += r->nic.bytes[i];
    }
    return bytes == r->bytes && r->nic.messages == r->messages &&
           memcmp(r->nic.bytes, r->host.bytes, sizeof(r->nic.bytes)) == 0 &&
           memcmp(r->nic.words, r->host.words, o->filter.count * sizeof(uint64_t)) == 0;
}

int demo_scan(struct demo_link *l, const struct demo_options *o, struct demo_scan *r)
{
    struct stat status;
    struct streamer s = {.l = l, .path = o->file, .file = open(o->file, O_RDONLY | O_CLOEXEC)};
    int rc = -1;
    *r = (struct demo_scan){0};
    if (s.file < 0 || fstat(s.file, &status) != 0) {
        return link_say(l, "--file %s: %s", o->file, strerror(errno));
    }
    r->bytes = (uint64_t)status.st_size;
    r->message_size = s.size = choose_size(r->bytes, l->packet);
    r->messages = (r->bytes + s.size - 1) / s.size;
    s.buffer = aligned_alloc(64, TEXTSCAN_SLOTS * s.size);
    if (s.buffer == NULL) {
        link_say(l, "no memory for %d messages of %" PRIu64 " bytes", TEXTSCAN_SLOTS, s.size);
        goto out;
    }
    memset(s.buffer, 0, TEXTSCAN_SLOTS * s.size);
    if (!link_ok(l, PtlCTAlloc(l->ni, &s.ct), "PtlCTAlloc") ||
        link_md(l, s.buffer, TEXTSCAN_SLOTS * s.size, s.ct, &s.md) != 0 || stream(&s, r) != 0) {
        goto out;
    }
    PtlMDRelease(s.md);
    PtlCTFree(s.ct);
    demo_progress("file: counting it on the host");
    rc = demo_count(o, &r->host);
    r->equal = rc == 0 && equal(o, r);
out:
    demo_progress(NULL);
    free(s.buffer);
    close(s.file);
    return rc;
}
