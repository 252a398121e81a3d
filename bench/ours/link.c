/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection between the two ranks of Pinwheel; see self.h. */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct link self;

enum { EVENTS = 4096, DESCRIPTORS = 256 };

bool link_ok(int code, const char *call)
{
    if (code != PTL_OK) {
        turn_fail("%s gave %d (see enum ptl_retvals)", call, code);
    }
    return code == PTL_OK;
}

int link_counter(struct link_count *count)
{
    count->expected = 0;
    return link_ok(PtlCTAlloc(self.ni, &count->ct), "PtlCTAlloc") ? 0 : -1;
}

static ptl_me_t entry_of(void *start, ptl_size_t length, ptl_match_bits_t bits, unsigned options,
                         const struct link_count *count)
{
    return (ptl_me_t){.start = start,
                      .length = length,
                      .ct_handle = count != NULL ? count->ct : PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = options | (count != NULL ? PTL_ME_EVENT_CT_COMM : 0),
                      .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                      .match_bits = bits};
}

int link_entry(unsigned index, ptl_match_bits_t bits, unsigned options, struct link_count *count,
               const ptl_handlers_t *handlers)
{
    bool get = (options & PTL_ME_OP_GET) != 0;
    if (count != NULL && link_counter(count) != 0) {
        return -1;
    }
    ptl_handle_me_t handle;
    ptl_me_t me = entry_of(get ? self.out : self.in, LINK_BUFFERS, bits,
                           (get ? 0 : PTL_ME_OP_PUT) | PTL_ME_EVENT_LINK_DISABLE | options, count);
    int code = PtlMEAppendHandlers(self.ni, index, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle);
    return link_ok(code, "PtlMEAppendHandlers") ? 0 : -1;
}

int link_memory(unsigned index, ptl_match_bits_t bits, unsigned options, void *start,
                ptl_size_t length, const struct link_count *count)
{
    ptl_handle_me_t handle;
    ptl_me_t me = entry_of(start, length, bits, options, count);
    int code = PtlMEAppend(self.ni, index, &me, PTL_PRIORITY_LIST, NULL, &handle);
    return link_ok(code, "PtlMEAppend") ? 0 : -1;
}

int link_index(unsigned index, ptl_handle_eq_t eq)
{
    ptl_pt_index_t got;
    return link_ok(PtlPTAlloc(self.ni, 0, eq, index, &got), "PtlPTAlloc") ? 0 : -1;
}

static int open_tables(void)
{
    ptl_spin_limits_t limits;
    ptl_md_t md = {.start = self.out,
                   .length = LINK_BUFFERS,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = PTL_CT_NONE};
    return link_ok(PtlEQAlloc(self.ni, EVENTS, &self.eq), "PtlEQAlloc") &&
                   link_index(LINK_COUNTED, PTL_EQ_NONE) == 0 &&
                   link_index(LINK_EVENTS, self.eq) == 0 &&
                   link_ok(PtlMDBind(self.ni, &md, &self.md), "PtlMDBind") &&
                   link_ok(PtlSpinLimits(self.ni, &limits), "PtlSpinLimits")
               ? (self.packet = limits.max_payload_size, 0)
               : -1;
}

int link_open(void)
{
    self.out = malloc(LINK_BUFFERS);
    self.in = malloc(LINK_BUFFERS);
    if (self.out == NULL || self.in == NULL) {
        return turn_fail("no memory for two times %d bytes", LINK_BUFFERS);
    }
    if (!link_ok(PtlInit(), "PtlInit") ||
        !link_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
                           NULL, &self.ni),
                 "PtlNIInit") ||
        !link_ok(PtlGetPhysId(self.ni, &self.me), "PtlGetPhysId")) {
        return -1;
    }
    return turn_exchange(&self.me, sizeof(self.me), &self.peer, sizeof(self.peer)) ==
                   sizeof(self.peer)
               ? open_tables()
               : -1;
}

/* ---- Memory of a connection ---- */

/* Returns the bytes that this process's own segment occupies, and its private memory. Before the
 * first contact the own segment is the only file that it has open in that tmpfs. */
struct footprint {
    int segment; /* descriptor */
    double shared, private;
};

static int find_segment(void)
{
    const char *folder = getenv("PINWHEEL_SHM_DIR");
    struct stat where, status;
    if (stat(folder != NULL && *folder != '\0' ? folder : "/dev/shm", &where) != 0) {
        return -1;
    }
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == where.st_dev) {
            return fd;
        }
    }
    return -1;
}

static void measure(struct footprint *f)
{
    struct stat status;
    char line[256];
    long kib;
    f->shared = fstat(f->segment, &status) == 0 ? (double)status.st_blocks * 512 : 0;
    f->private = 0;
    FILE *statuses = fopen("/proc/self/status", "re");
    while (statuses != NULL && fgets(line, sizeof(line), statuses) != NULL) {
        if (sscanf(line, "RssAnon: %ld", &kib) == 1) {
            f->private = (double)kib * 1024;
        }
    }
    if (statuses != NULL) {
        fclose(statuses);
    }
}

static int contact(void)
{
    struct link_count hello;
    if (link_entry(LINK_COUNTED, LINK_ANSWERS - 1, 0, &hello, NULL) != 0) {
        return -1;
    }
    char byte = 0;
    if (turn_exchange(&byte, 1, &byte, 1) != 1 || /* all entries of both are there */
        !link_ok(link_answer(LINK_ANSWERS - 1), "PtlPut") || link_wait(&hello, 1) != 0) {
        return -1;
    }
    return turn_exchange(&byte, 1, &byte, 1) == 1 ? 0 : -1;
}

int link_connect(void)
{
    struct footprint before = {.segment = find_segment()}, after = before;
    if (before.segment < 0) {
        return turn_fail("it has no segment open in its folder of shared memory");
    }
    measure(&before);
    if (contact() != 0) {
        return -1;
    }
    measure(&after);
    self.memory = after.shared - before.shared + after.private - before.private;
    return 0;
}

/* ---- Data ---- */

static uint64_t seed(const struct turn_work *work, unsigned buffer, int sender)
{
    return work->bench * 1000003u + work->size * 64 + buffer * 2 + (unsigned)sender;
}

int link_prepare(const struct turn_work *work, unsigned buffers)
{
    for (unsigned i = 0; work->check && i < buffers; i++) {
        uint64_t at = i * link_stride(work->size);
        turn_fill(self.out + at, work->size, seed(work, i, turn_rank()));
        memset(self.in + at, 0, work->size);
    }
    /* Nobody sends before the other has wiped its memory. */
    char byte = 0;
    return !work->check || turn_exchange(&byte, 1, &byte, 1) == 1 ? 0 : -1;
}

int link_verify(const struct turn_work *work, unsigned buffers)
{
    for (unsigned i = 0; work->check && i < buffers; i++) {
        uint64_t at = i * link_stride(work->size);
        if (turn_check(self.in + at, work->size, seed(work, i, 1 - turn_rank())) != 0) {
            return -1;
        }
    }
    return 0;
}
