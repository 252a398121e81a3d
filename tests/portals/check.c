/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of the conformance suite; see suite.h. One that fails leaves a
 * message in the crew's page and ends this process with _exit, so that no destructor can
 * hang on what the case broke.
 */
#include "runner.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLLS = 200 }; /* of what must not change */

struct crew_page *suite_page;
int suite_rank;

/* ---- Time ------------------------------------------------------------------ */

uint64_t suite_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void suite_sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

uint64_t suite_limit_ms(void)
{
    const char *text = getenv("SUITE_TIMEOUT_S");
    if (text != NULL && atoi(text) > 0) {
        return (uint64_t)atoi(text) * 1000;
    }
#if defined(__SANITIZE_THREAD__)
    return 80000;
#else
    return SUITE_FORKS_THREADS ? 20000 : 80000; /* it is under AddressSanitizer that they do not */
#endif
}

uint64_t suite_deadline(void)
{
    return suite_now_ms() + suite_limit_ms() / 2;
}

/* ---- How a case ends early ------------------------------------------------- */

void suite_seen(const char *file, int line)
{
    atomic_store_explicit(&suite_page->process[suite_rank].file, file, memory_order_relaxed);
    atomic_store_explicit(&suite_page->process[suite_rank].line, line, memory_order_relaxed);
}

void suite_fail(const char *file, int line, const char *format, ...)
{
    char *message = suite_page->process[suite_rank].message;
    const char *slash = strrchr(file, '/');
    int n = snprintf(message, MESSAGE, "%s:%d: rank %d: ", slash != NULL ? slash + 1 : file, line,
                     suite_rank);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + n, (size_t)(MESSAGE - n), format, arguments);
    va_end(arguments);
    _exit(ANSWER_FAILED);
}

void suite_skip(const char *why)
{
    snprintf(suite_page->process[suite_rank].message, MESSAGE, "%s", why);
    _exit(ANSWER_SKIPPED);
}

int suite_fork(void (*run)(void *), void *argument)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        FAIL("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(argument);
        exit(0);
    }
    return pid;
}

int suite_wait(int pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            FAIL("waitpid: %s", strerror(errno));
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == ANSWER_FAILED &&
        suite_page->process[suite_rank].message[0] != '\0') {
        _exit(ANSWER_FAILED); /* the child's message is there already */
    }
    return status;
}

int suite_child(void (*run)(void *), void *argument)
{
    return suite_wait(suite_fork(run, argument));
}

/* ---- Names ----------------------------------------------------------------- */

const char *suite_code_name(int code)
{
    static const char *const names[] = {"PTL_OK",         "PTL_ARG_INVALID",  "PTL_CT_NONE_REACHED",
                                        "PTL_EQ_DROPPED", "PTL_EQ_EMPTY",     "PTL_FAIL",
                                        "PTL_IGNORED",    "PTL_IN_USE",       "PTL_LIST_TOO_LONG",
                                        "PTL_NO_INIT",    "PTL_NO_SPACE",     "PTL_PID_IN_USE",
                                        "PTL_PT_FULL",    "PTL_PT_EQ_NEEDED", "PTL_PT_IN_USE",
                                        "PTL_ABORTED",    "PTL_INTERRUPTED"};
    return code >= 0 && code <= PTL_INTERRUPTED ? names[code] : "no PTL_ code";
}

const char *suite_event_name(int type)
{
    static const char *const names[] = {"GET",          "GET_OVERFLOW",
                                        "PUT",          "PUT_OVERFLOW",
                                        "ATOMIC",       "ATOMIC_OVERFLOW",
                                        "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW",
                                        "REPLY",        "SEND",
                                        "ACK",          "PT_DISABLED",
                                        "LINK",         "AUTO_UNLINK",
                                        "AUTO_FREE",    "SEARCH"};
    return type >= 0 && type <= PTL_EVENT_SEARCH ? names[type] : "no event type";
}

static const char *fail_name(int fail)
{
    static const char *const names[] = {"OK",          "UNDELIVERABLE",  "DROPPED",
                                        "PT_DISABLED", "PERM_VIOLATION", "OP_VIOLATION",
                                        "NO_MATCH",    "SEGV",           "TARGET_INVALID"};
    return fail >= 0 && fail <= PTL_NI_TARGET_INVALID ? names[fail] : "no ni_fail_type";
}

/* ---- Values ---------------------------------------------------------------- */

void suite_check_eq(uint64_t found, uint64_t expected, const char *text, const char *file, int line)
{
    if (found != expected) {
        suite_fail(file, line, "%s: expected %lld (0x%llx), found %lld (0x%llx)", text,
                   (long long)expected, (unsigned long long)expected, (long long)found,
                   (unsigned long long)found);
    }
}

void suite_check_code(int found, int expected, const char *text, const char *file, int line)
{
    if (found != expected) {
        suite_fail(file, line, "%s: expected %s, found %s (%d)", text, suite_code_name(expected),
                   suite_code_name(found), found);
    }
}

static unsigned char pattern(size_t i, unsigned seed)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    return (unsigned char)(x >> 56 ^ x >> 24);
}

void suite_fill(void *buffer, size_t length, unsigned seed)
{
    unsigned char *b = buffer;
    for (size_t i = 0; i < length; i++) {
        b[i] = pattern(i, seed);
    }
}

void suite_check_fill(const void *buffer, size_t length, unsigned seed, const char *text,
                      const char *file, int line)
{
    const unsigned char *b = buffer;
    suite_seen(file, line);
    for (size_t i = 0; i < length; i++) {
        if (b[i] != pattern(i, seed)) {
            suite_fail(file, line, "byte %zu of %zu of %s: expected 0x%02x, found 0x%02x", i,
                       length, text, pattern(i, seed), b[i]);
        }
    }
}

void suite_check_bytes(const void *buffer, size_t length, unsigned char value, const char *text,
                       const char *file, int line)
{
    const unsigned char *b = buffer;
    suite_seen(file, line);
    for (size_t i = 0; i < length; i++) {
        if (b[i] != value) {
            suite_fail(file, line, "byte %zu of %zu of %s: expected 0x%02x, found 0x%02x", i,
                       length, text, value, b[i]);
        }
    }
}

__attribute__((noinline, no_sanitize("thread"))) void suite_peek(void *to, const void *from,
                                                                 size_t length)
{
    for (size_t i = 0; i < length; i++) {
        ((volatile unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
    }
}

/* ---- Events and counters --------------------------------------------------- */

static void describe(const ptl_event_t *e, char *text, size_t size)
{
    snprintf(text, size,
             "%s/%s start %p user_ptr %p hdr_data %llu match_bits 0x%llx rlength %llu mlength %llu "
             "remote_offset %llu initiator %u:%u uid %u pt_index %u list %u op %u type %u",
             suite_event_name(e->type), fail_name(e->ni_fail_type), e->start, e->user_ptr,
             (unsigned long long)e->hdr_data, (unsigned long long)e->match_bits,
             (unsigned long long)e->rlength, (unsigned long long)e->mlength,
             (unsigned long long)e->remote_offset, e->initiator.phys.nid, e->initiator.phys.pid,
             e->uid, e->pt_index, e->ptl_list, e->atomic_operation, e->atomic_type);
}

static void field(const struct suite_is *is, uint64_t found, const char *name, char *wrong,
                  size_t size)
{
    if (is->looked_at && is->value != found) {
        size_t n = strlen(wrong);
        snprintf(wrong + n, size - n, " %s expected %lld (0x%llx) found %lld (0x%llx);", name,
                 (long long)is->value, (unsigned long long)is->value, (long long)found,
                 (unsigned long long)found);
    }
}

static bool same_process(const struct scene *s, ptl_process_t a, ptl_process_t b)
{
    return s->logical ? a.rank == b.rank : a.phys.nid == b.phys.nid && a.phys.pid == b.phys.pid;
}

void suite_event_is(struct scene *s, const ptl_event_t *found, const struct suite_event *e,
                    const char *file, int line)
{
    char wrong[800] = "", text[500];
    struct suite_is type = IS(e->type), fail = IS(e->fail);
    if (found->type != type.value || found->ni_fail_type != fail.value) {
        snprintf(wrong, sizeof(wrong), " expected %s/%s;", suite_event_name(e->type),
                 fail_name(e->fail));
    }
    field(&e->start, (uint64_t)found->start, "start", wrong, sizeof(wrong));
    field(&e->user_ptr, (uint64_t)found->user_ptr, "user_ptr", wrong, sizeof(wrong));
    field(&e->hdr_data, found->hdr_data, "hdr_data", wrong, sizeof(wrong));
    field(&e->match_bits, found->match_bits, "match_bits", wrong, sizeof(wrong));
    field(&e->rlength, found->rlength, "rlength", wrong, sizeof(wrong));
    field(&e->mlength, found->mlength, "mlength", wrong, sizeof(wrong));
    field(&e->remote_offset, found->remote_offset, "remote_offset", wrong, sizeof(wrong));
    field(&e->uid, found->uid, "uid", wrong, sizeof(wrong));
    field(&e->pt_index, found->pt_index, "pt_index", wrong, sizeof(wrong));
    field(&e->list, found->ptl_list, "ptl_list", wrong, sizeof(wrong));
    field(&e->op, found->atomic_operation, "atomic_operation", wrong, sizeof(wrong));
    field(&e->datatype, found->atomic_type, "atomic_type", wrong, sizeof(wrong));
    if (e->initiator != NULL && !same_process(s, *e->initiator, found->initiator)) {
        size_t n = strlen(wrong);
        snprintf(wrong + n, sizeof(wrong) - n, " initiator expected %u:%u;", e->initiator->phys.nid,
                 e->initiator->phys.pid);
    }
    if (wrong[0] != '\0') {
        describe(found, text, sizeof(text));
        suite_fail(file, line, "event:%s found %s", wrong, text);
    }
}

ptl_event_t suite_expect(struct scene *s, ptl_handle_eq_t eq, const struct suite_event *e,
                         const char *file, int line)
{
    ptl_event_t event = {0};
    unsigned which;
    suite_seen(file, line);
    int code = PtlEQPoll(&eq, 1, (ptl_time_t)(suite_limit_ms() / 2), &event, &which);
    if (code != PTL_OK) {
        suite_fail(file, line, "expected event %s/%s, found %s", suite_event_name(e->type),
                   fail_name(e->fail),
                   code == PTL_EQ_EMPTY ? "none in time" : suite_code_name(code));
    }
    suite_event_is(s, &event, e, file, line);
    return event;
}

void suite_no_event(ptl_handle_eq_t eq, const char *file, int line)
{
    char text[500];
    suite_seen(file, line);
    for (int i = 0; i < POLLS; i++) {
        ptl_event_t event = {0};
        int code = PtlEQGet(eq, &event);
        if (code == PTL_OK || code == PTL_EQ_DROPPED) {
            describe(&event, text, sizeof(text));
            suite_fail(file, line, "expected no event, found %s", text);
        }
        suite_check_code(code, PTL_EQ_EMPTY, "PtlEQGet", file, line);
        if (i % 16 == 0) {
            sched_yield();
        }
    }
}

static void get_ct(ptl_handle_ct_t ct, ptl_ct_event_t *value, const char *file, int line)
{
    suite_check_code(PtlCTGet(ct, value), PTL_OK, "PtlCTGet", file, line);
}

void suite_expect_ct(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, const char *file,
                     int line)
{
    ptl_ct_event_t v;
    uint64_t end = suite_deadline();
    suite_seen(file, line);
    for (get_ct(ct, &v, file, line); v.success < success || v.failure < failure;
         get_ct(ct, &v, file, line)) {
        if (suite_now_ms() > end) {
            break;
        }
        sched_yield();
    }
    for (int i = 0; i < POLLS && v.success == success && v.failure == failure; i++) {
        get_ct(ct, &v, file, line);
    }
    if (v.success != success || v.failure != failure) {
        suite_fail(file, line, "counter: expected {%llu, %llu}, found {%llu, %llu}",
                   (unsigned long long)success, (unsigned long long)failure,
                   (unsigned long long)v.success, (unsigned long long)v.failure);
    }
}

int suite_status(struct scene *s, ptl_sr_index_t index)
{
    ptl_sr_value_t value = -1;
    OK(PtlNIStatus(s->ni, index, &value));
    return value;
}

void suite_expect_status(struct scene *s, ptl_sr_index_t index, int value, const char *file,
                         int line)
{
    uint64_t end = suite_deadline();
    ptl_ct_event_t ignored;
    suite_seen(file, line);
    while (suite_status(s, index) != value && suite_now_ms() < end) {
        get_ct(s->ct, &ignored, file, line); /* makes progress */
        sched_yield();
    }
    suite_check_eq((uint64_t)suite_status(s, index), (uint64_t)value, "status register", file,
                   line);
}
