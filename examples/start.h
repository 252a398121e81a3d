/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples of the handler library begin and end with, so that each of them shows
 * its handlers and not how a job of several ranks comes together (hello_handler.c shows
 * that, call by call).
 *
 *      start(&s, 2, 0)       joins the job; an interface whose addresses are ranks, and a
 *                            portal table entry at INDEX
 *      meet(&s)              when all ranks have come so far
 *      finish(&s, status)    leaves, when all others do; gives main()'s status
 *
 * Every mistake ends the program with a line on standard error and status 1; a wrong
 * command line with its usage and status 2.
 */
#ifndef EXAMPLES_START_H
#define EXAMPLES_START_H

#include <errno.h>
#include <pinwheel.h>
#include <portals4.h>
#include <spin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INDEX = 4 };

struct start {
    struct pinwheel_job *job;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq; /* of INDEX */
    uint32_t rank, size;
    ptl_size_t packet; /* the longest payload of a packet */
};

/* fail() ends the program with a message. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* check() wants that a call gave PTL_OK. */
static inline void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fail("%s gave %d", call, code);
    }
}

static inline void check_job(int code, const struct pinwheel_job *job)
{
    if (code != 0) {
        fail("%s", pinwheel_job_error(job));
    }
}

/* usage() ends a program that was called in a wrong way. Rank 0 says how it is called, and ends
 * the job; the others wait for that. */
__attribute__((noreturn)) static inline void usage(const struct start *s, const char *arguments)
{
    if (s->rank == 0) {
        fprintf(stderr, "usage: pinwheel run -n N %s%s%s\n", program_invocation_short_name,
                arguments[0] == '\0' ? "" : " ", arguments);
        pinwheel_job_abort(s->job, 2);
    } else {
        pinwheel_job_barrier(s->job);
    }
    exit(2);
}

/* start() wants at least `least` ranks, and at most `most` unless that is 0. */
static inline void start(struct start *s, uint32_t least, uint32_t most)
{
    ptl_pt_index_t index;
    ptl_spin_limits_t limits;
    check_job(pinwheel_job_init(&s->job), NULL);
    s->rank = (uint32_t)pinwheel_job_rank(s->job);
    s->size = (uint32_t)pinwheel_job_size(s->job);
    if (s->size < least || (most != 0 && s->size > most)) {
        fail("%u ranks are too %s: pinwheel run -n %u %s", s->size,
             s->size < least ? "few" : "many", s->size < least ? least : most,
             program_invocation_short_name);
    }
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &s->ni),
          "PtlNIInit");
    check_job(pinwheel_job_set_map(s->job, s->ni), s->job);
    check(PtlEQAlloc(s->ni, 4096, &s->eq), "PtlEQAlloc");
    check(PtlPTAlloc(s->ni, 0, s->eq, INDEX, &index), "PtlPTAlloc");
    check(PtlSpinLimits(s->ni, &limits), "PtlSpinLimits");
    s->packet = limits.max_payload_size;
}

/* packet_holds() ends a program whose handlers need `bytes` in a packet, where packets have less.
 */
static inline void packet_holds(const struct start *s, ptl_size_t bytes)
{
    if (s->packet < bytes) {
        fail("packets of %llu bytes are too short for its handlers: set PINWHEEL_PACKET_SIZE to "
             "%llu or more",
             (unsigned long long)s->packet, (unsigned long long)((bytes + 63) / 64 * 64));
    }
}

static inline void meet(const struct start *s)
{
    check_job(pinwheel_job_barrier(s->job), s->job);
}

/* memory() gives zeros, at a multiple of 64. They are the program's, and the NIC's, until
 * finish(). */
struct memory {
    struct memory *before; /* that was given out */
} __attribute__((aligned(64)));

static struct memory *start_memory;

static inline void *memory(size_t length)
{
    size_t whole = sizeof(struct memory) + (length + 63) / 64 * 64;
    struct memory *m = aligned_alloc(64, whole);
    if (m == NULL) {
        fail("no memory for %zu bytes", length);
    }
    memset(m, 0, whole);
    m->before = start_memory;
    start_memory = m;
    return m + 1;
}

static inline int finish(struct start *s, int status)
{
    meet(s); /* nobody leaves while others send to it */
    PtlNIFini(s->ni);
    PtlFini();
    pinwheel_job_finalize(s->job);
    while (start_memory != NULL) {
        struct memory *m = start_memory;
        start_memory = m->before;
        free(m);
    }
    return status;
}

static inline ptl_handle_ct_t counter(const struct start *s)
{
    ptl_handle_ct_t ct;
    check(PtlCTAlloc(s->ni, &ct), "PtlCTAlloc");
    return ct;
}

/* await() waits until a counter has counted so many, all of them successes. */
static inline void await(ptl_handle_ct_t ct, ptl_size_t count)
{
    ptl_ct_event_t value;
    check(PtlCTWait(ct, count, &value), "PtlCTWait");
    if (value.failure != 0) {
        fail("%llu operations failed", (unsigned long long)value.failure);
    }
}

/* entry() describes memory for puts and gets of anybody with these match bits. What arrives
 * is counted in `ct`, if there is one, or else posts an event. */
static inline ptl_me_t entry(void *start, size_t length, ptl_match_bits_t bits, ptl_handle_ct_t ct)
{
    return (ptl_me_t){
        .start = start,
        .length = length,
        .ct_handle = ct,
        .uid = PTL_UID_ANY,
        .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                   PTL_ME_EVENT_UNLINK_DISABLE |
                   (ct == PTL_CT_NONE ? 0 : PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_SUCCESS_DISABLE),
        .match_id.rank = PTL_RANK_ANY,
        .match_bits = bits};
}

/* next_event() waits for an event of INDEX, which is to tell of a success. */
static inline ptl_event_t next_event(const struct start *s)
{
    ptl_event_t event;
    check(PtlEQWait(s->eq, &event), "PtlEQWait");
    if (event.ni_fail_type != PTL_NI_OK) {
        fail("an operation failed: ni_fail_type %d of an event of type %d", event.ni_fail_type,
             event.type);
    }
    return event;
}

/* source() binds memory to send from; acknowledgements and replies are counted in `ct`, if there
 * is one. */
static inline ptl_handle_md_t source(const struct start *s, const void *start, size_t length,
                                     ptl_handle_ct_t ct)
{
    ptl_handle_md_t md;
    ptl_md_t range = {(void *)start, length,
                      ct == PTL_CT_NONE ? 0 : PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
                      PTL_EQ_NONE, ct};
    check(PtlMDBind(s->ni, &range, &md), "PtlMDBind");
    return md;
}

static inline ptl_process_t rank_id(uint32_t rank)
{
    return (ptl_process_t){.rank = rank};
}

/* number() reads a whole number from the command line; `least` to `most`, or false. */
static inline bool number(const char *text, unsigned long least, unsigned long most,
                          unsigned long *value)
{
    char *end;
    errno = 0;
    *value = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value >= least &&
           *value <= most;
}

/* microseconds() reads a clock that only goes forward. */
static inline double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

#endif
