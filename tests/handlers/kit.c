/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the handler library's tests; see kit.h. */
#include "kit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned wait_ms = 20000;

void kit_open_kind(struct kit *k, unsigned kind, int rank, int size)
{
    port_open(&k->p, kind, rank, size);
    OK(PtlSpinLimits(k->p.ni, &k->spin));
    k->packet = k->spin.max_payload_size;
}

void kit_open(struct kit *k, int rank, int size)
{
    kit_open_kind(k, KIND_ML, rank, size);
}

/* Nothing that was not expected has happened to the entries. */
void kit_close(struct kit *k)
{
    BARRIER();
    NO_EVENT(k->p.eq);
    port_close(&k->p);
}

ptl_handle_me_t kit_entry(struct kit *k, void *start, size_t length, uint64_t bits,
                          unsigned options, ptl_handle_ct_t ct, const ptl_handlers_t *handlers)
{
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(&k->p, start, length,
                             options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE);
    me.match_bits = bits;
    me.ignore_bits = 0;
    if (ct != PTL_CT_NONE) {
        me.options |= PTL_ME_EVENT_CT_COMM;
        me.ct_handle = ct;
    }
    OK(PtlMEAppendHandlers(k->p.ni, k->p.pt, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

void kit_wait(ptl_handle_ct_t ct, uint64_t success)
{
    ptl_ct_event_t value;
    ptl_size_t test = success;
    unsigned which;
    OK(PtlCTPoll(&ct, &test, 1, wait_ms * (unsigned)ptest_slow(), &value, &which));
    CHECK_EQ(value.failure, 0);
    CHECK_EQ(value.success, success);
}

struct kit_sender kit_sender(struct kit *k, const void *start, size_t length)
{
    struct kit_sender s = {.k = k, .ct = port_ct(&k->p)};
    s.md = port_quiet_md(&k->p, (void *)start, length, PTL_MD_EVENT_CT_ACK, s.ct);
    return s;
}

void kit_put(struct kit_sender *s, size_t offset, size_t length, int to, uint64_t bits,
             uint64_t remote_offset, uint64_t hdr_data)
{
    OK(PtlPut(s->md, offset, length, PTL_CT_ACK_REQ, s->k->p.id[to], s->k->p.pt, bits,
              remote_offset, NULL, hdr_data));
    s->sent++;
}

void kit_flush(struct kit_sender *s)
{
    kit_wait(s->ct, s->sent);
}

void kit_release(struct kit_sender *s)
{
    port_release(s->md);
    OK(PtlCTFree(s->ct));
}

void kit_put_once(struct kit *k, const void *start, size_t length, int to, uint64_t bits,
                  uint64_t remote_offset, uint64_t hdr_data, int fail)
{
    ptl_handle_md_t md =
        port_md(&k->p, (void *)start, length, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, k->p.id[to], k->p.pt, bits, remote_offset, NULL,
              hdr_data));
    EVENT_FAIL(k->p.mdeq, PTL_EVENT_ACK, fail);
    port_release(md);
}

void kit_get_once(struct kit *k, void *start, size_t length, int from, uint64_t bits,
                  uint64_t remote_offset)
{
    ptl_handle_md_t md = port_md(&k->p, start, length, 0, PTL_CT_NONE);
    OK(PtlGet(md, 0, length, k->p.id[from], k->p.pt, bits, remote_offset, NULL));
    EVENT(k->p.mdeq, PTL_EVENT_REPLY);
    port_release(md);
}

size_t kit_size(const struct kit *k, int i)
{
    const size_t sizes[KIT_SIZES] = {0,
                                     1,
                                     63,
                                     64,
                                     k->packet - 1,
                                     k->packet,
                                     k->packet + 1,
                                     2 * k->packet,
                                     3 * k->packet + 17,
                                     10 * k->packet - 1,
                                     33 * k->packet + 1,
                                     kit_largest(k)};
    return sizes[i];
}

size_t kit_largest(const struct kit *k)
{
    return 100 * k->packet + 321;
}

/* What was given out, so that a leak checker finds it reachable; freed or not. */
static void **given;
static size_t given_count, given_room;

void *kit_memory(size_t length)
{
    size_t whole = (length + 64) / 64 * 64;
    void *memory = aligned_alloc(64, whole);
    CHECK(memory != NULL);
    if (given_count == given_room) {
        given_room = 2 * given_room + 64;
        given = realloc(given, given_room * sizeof(*given));
        CHECK(given != NULL);
    }
    given[given_count++] = memory;
    memset(memory, 0, whole);
    return memory;
}

void kit_same(const void *got, const void *want, size_t length, const char *text, const char *file,
              int line)
{
    const unsigned char *g = got, *w = want;
    for (size_t i = 0; i < length; i++) {
        if (g[i] != w[i]) {
            ptest_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", text, i, length,
                       g[i], w[i]);
        }
    }
}

/* ---- What the library writes on standard error ---- */

void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static int old_stderr, capture;

static void show_reports(int fd)
{
    if (__sanitizer_set_report_fd != NULL) {
        __sanitizer_set_report_fd((void *)(intptr_t)fd);
    }
}

void begin_capture(void)
{
    capture = memfd_create("stderr", MFD_CLOEXEC);
    old_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    CHECK(capture >= 0 && old_stderr >= 0 && dup2(capture, STDERR_FILENO) >= 0);
    show_reports(old_stderr);
}

void end_capture(char *text, size_t size)
{
    dup2(old_stderr, STDERR_FILENO);
    show_reports(STDERR_FILENO);
    close(old_stderr);
    ssize_t n = pread(capture, text, size - 1, 0);
    close(capture);
    CHECK(n >= 0);
    text[n] = '\0';
}
