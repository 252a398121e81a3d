/* SPDX-License-Identifier: BSD-3-Clause */
/* Running handlers on the native back end: arguments, return codes, faults, waiting. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "hpu_fixture.h"

/* Handlers that err on purpose, which UBSan and TSan would report. */
#define ERRING __attribute__((no_sanitize("undefined"), no_sanitize("thread"), noinline))

/* ---- Arguments and return codes ---- */

static __handler int check_header(const ptl_header_t h, void *state)
{
    struct notes *n = state;
    n->word = h.type == PTL_REQUEST_GET && h.length == 100 && h.target_id.phys.pid == 7 &&
              h.source_id.rank == 9 && h.match_bits == 0x1234 && h.offset == 5 && h.hdr_data == 6 &&
              h.user_hdr == host && h.user_hdr_length == 8;
    return PROCESS_DATA;
}

static __handler int check_payload(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->other = p.base == host + 64 && p.length == 128 && p.offset == 192;
    return DROP;
}

static __handler int check_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct notes *n = state;
    n->offset = dropped == 77 && flow_control;
    return SUCCESS_PENDING;
}

static void handlers_get_their_arguments(void **state)
{
    (void)state;
    set_up();
    struct hpu_exec exec = {.env = environment()};
    ptl_header_t header = {.type = PTL_REQUEST_GET,
                           .length = 100,
                           .target_id.phys = {.nid = 1, .pid = 7},
                           .source_id.rank = 9,
                           .match_bits = 0x1234,
                           .offset = 5,
                           .hdr_data = 6,
                           .user_hdr = host,
                           .user_hdr_length = 8};
    ptl_payload_t payload = {.length = 128, .offset = 192, .base = host + 64};
    assert_int_equal(call_header(&exec, check_header, &header), PROCESS_DATA);
    assert_int_equal(call_payload(&exec, check_payload, &payload), DROP);
    assert_int_equal(call_completion(&exec, check_completion, 77, true), SUCCESS_PENDING);
    assert_true(notes->word && notes->other && notes->offset);
    tear_down();
}

static int code;

static __handler int code_header(const ptl_header_t h, void *state)
{
    return code;
}

static __handler int code_payload(const ptl_payload_t p, void *state)
{
    return code;
}

static __handler int code_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    return code;
}

static void return_codes_of_the_wrong_kind_are_fail(void **state)
{
    (void)state;
    static const struct {
        int code, header, payload, completion;
    } cases[] = {
        {SUCCESS, FAIL, SUCCESS, SUCCESS},
        {DROP, DROP, DROP, FAIL},
        {DROP_PENDING, DROP_PENDING, FAIL, FAIL},
        {PROCESS_DATA, PROCESS_DATA, FAIL, FAIL},
        {PROCESS_DATA_PENDING, PROCESS_DATA_PENDING, FAIL, FAIL},
        {PROCEED, PROCEED, FAIL, FAIL},
        {PROCEED_PENDING, PROCEED_PENDING, FAIL, FAIL},
        {SUCCESS_PENDING, FAIL, FAIL, SUCCESS_PENDING},
        {FAIL, FAIL, FAIL, FAIL},
        {SEGV, FAIL, FAIL, FAIL},
        {HPU_WAIT, FAIL, FAIL, FAIL},
        {32, FAIL, FAIL, FAIL},
        {-1000, FAIL, FAIL, FAIL},
        {0x7fffffff, FAIL, FAIL, FAIL},
    };
    ptl_header_t header = {.length = 0};
    ptl_payload_t payload = {.length = 0};
    set_up();
    struct hpu_exec exec = {.env = environment()};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        code = cases[i].code;
        assert_int_equal(call_header(&exec, code_header, &header), cases[i].header);
        assert_int_equal(call_payload(&exec, code_payload, &payload), cases[i].payload);
        assert_int_equal(call_completion(&exec, code_completion, 0, false), cases[i].completion);
    }
    tear_down();
}

/* ---- Faults ---- */

static ERRING int null_write(const ptl_payload_t p, void *state)
{
    int *volatile null = NULL;
    *(volatile int *)null = 1;
    return SUCCESS;
}

static ERRING int wild_read(const ptl_payload_t p, void *state)
{
    volatile uint8_t *volatile wild = (uint8_t *)0xdead000000000000;
    return *wild;
}

static ERRING int division(const ptl_payload_t p, void *state)
{
    volatile int one = 1, zero = 0;
    return one / zero;
}

static ERRING int bad_instruction(const ptl_payload_t p, void *state)
{
    __asm__ volatile("ud2");
    return SUCCESS;
}

static ERRING int recurse(volatile uint8_t *above)
{
    volatile uint8_t frame[512];
    frame[0] = *above;
    return frame[0] == 0 ? recurse(frame) + frame[0] : 0; /* it is always 0 */
}

static ERRING int stack_overflow(const ptl_payload_t p, void *state)
{
    volatile uint8_t byte = 0;
    return recurse(&byte);
}

static ERRING int over_the_end(const ptl_payload_t p, void *state)
{
    for (volatile uint8_t *at = state;; at++) {
        *at = 1;
    }
    return SUCCESS;
}

static ERRING int before_the_start(const ptl_payload_t p, void *state)
{
    for (volatile uint8_t *at = state;; at--) {
        *at = 1;
    }
    return SUCCESS;
}

/* Rounding of both floating-point units: bits 10 and 11 of the x87 control word. */
static unsigned rounding(void)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    assert_int_equal(_MM_GET_ROUNDING_MODE() >> 13, x87 >> 10 & 3);
    return x87 >> 10 & 3;
}

/* Leaves the processor as badly as it can. */
static ERRING int mess(const ptl_payload_t p, void *state)
{
    static const uint32_t mxcsr = 0x0000;       /* everything traps */
    static const uint16_t x87_control = 0x0800; /* so does the x87, and rounds up */
    __asm__ volatile("fld1\n\tfldz\n\tfldcw %1\n\tldmxcsr %0\n\tstd\n\t"
                     "xorl %%eax, %%eax\n\tmovl %%eax, (%%rax)"
                     :
                     : "m"(mxcsr), "m"(x87_control)
                     : "rax", "memory");
    return SUCCESS;
}

static ERRING int fault_after_yield(const ptl_payload_t p, void *state)
{
    PtlHandlerYield();
    return null_write(p, state);
}

static const ptl_payload_handler_t faulty[] = {
    null_write,     wild_read,    division,         bad_instruction,
    stack_overflow, over_the_end, before_the_start, mess,
};
#define FAULTY (sizeof(faulty) / sizeof(faulty[0]))

static void a_fault_ends_the_handler_and_nothing_else(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        set_up();
        for (size_t i = 0; i < FAULTY; i++) {
            volatile double third = 1.0;
            assert_int_equal(run(faulty[i]), SEGV);
            assert_int_equal(rounding(), 0);
            third = third / 3.0; /* inexact: would trap if it could */
            uint64_t before = notes->word;
            assert_int_equal(run(good), SUCCESS);
            assert_int_equal(notes->word, before + 1);
        }
        struct hpu_exec exec;
        assert_int_equal(run_payload(&exec, fault_after_yield), HPU_WAIT);
        assert_int_equal(go_on(&exec), SEGV);
        tear_down();
    }
}

static ERRING int header_fault(const ptl_header_t h, void *state)
{
    return null_write((ptl_payload_t){0}, state);
}

static ERRING int completion_fault(ptl_size_t dropped, bool flow_control, void *state)
{
    return null_write((ptl_payload_t){0}, state);
}

static void any_kind_of_handler_may_fault(void **state)
{
    (void)state;
    ptl_header_t header = {.length = 0};
    set_up();
    struct hpu_exec exec = {.env = environment()};
    assert_int_equal(call_header(&exec, header_fault, &header), SEGV);
    assert_int_equal(call_completion(&exec, completion_fault, 0, false), SEGV);
    tear_down();
}

/* With HPU memory of its own: these handlers write all over it. */
static void *fault_often(void *arg)
{
    struct hpu_mem *own = hpu_mem_create(sizeof(struct notes));
    ptl_payload_t packet = {.length = 0};
    struct hpu_exec exec = {.env = environment()};
    exec.env.state = own->base;
    for (int i = 0; i < 50; i++) {
        if (call_payload(&exec, faulty[(size_t)i % FAULTY], &packet) != SEGV ||
            call_payload(&exec, good, &packet) != SUCCESS) {
            *(int *)arg += 1;
        }
    }
    hpu_mem_destroy(own);
    return NULL;
}

static void faults_on_several_threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    int errors[3] = {0};
    assert_int_equal(set_up_with(3), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, fault_often, &errors[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(errors[i], 0);
    }
    tear_down();
}

/* ---- Waiting ---- */

static void *continue_to_the_end(void *arg)
{
    int *result = malloc(sizeof(*result));
    do {
        *result = go_on(arg);
    } while (*result == HPU_WAIT);
    return result;
}

static void a_put_may_wait_and_go_on_elsewhere(void **state)
{
    (void)state;
    struct hpu_exec exec;
    set_up();
    put_suspends = 3;
    put_result = PTL_OK;
    notes->length = 1;
    assert_int_equal(run_payload(&exec, put_device), HPU_WAIT);
    assert_int_equal(exec.wait, HPU_WAIT_OPS);
    assert_int_equal(notes->rc[1], 0);
    assert_int_equal(go_on(&exec), HPU_WAIT);
    assert_int_equal(run(good), SUCCESS);
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, continue_to_the_end, &exec), 0);
    pthread_join(thread, &result);
    assert_int_equal(*(int *)result, SUCCESS);
    free(result);
    assert_int_equal(notes->rc[1], 1);
    assert_int_equal(exec.wait, HPU_WAIT_NONE);
    tear_down();
}

static __handler int note_slot_and_yield(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    unsigned mine = PTL_MY_HPU;
    n->word |= UINT64_C(1) << mine;
    PtlHandlerYield();
    return mine == PTL_MY_HPU ? SUCCESS : FAIL;
}

static void handlers_wait_for_a_context(void **state)
{
    (void)state;
    struct hpu_exec exec[6];
    set_up(); /* with 4 */
    for (int i = 0; i < 6; i++) {
        assert_int_equal(run_payload(&exec[i], note_slot_and_yield), HPU_WAIT);
        assert_int_equal(exec[i].wait, i < 4 ? HPU_WAIT_YIELD : HPU_WAIT_CONTEXT);
    }
    assert_int_equal(notes->word, 0xf);
    assert_int_equal(go_on(&exec[5]), HPU_WAIT);
    assert_int_equal(exec[5].wait, HPU_WAIT_CONTEXT);
    assert_int_equal(go_on(&exec[2]), SUCCESS);
    assert_int_equal(go_on(&exec[5]), HPU_WAIT);
    assert_int_equal(exec[5].wait, HPU_WAIT_YIELD);
    assert_int_equal(go_on(&exec[5]), SUCCESS);
    /* The others are given up, begun or not. */
    hpu_exec_cancel(&exec[0]);
    hpu_exec_cancel(&exec[1]);
    hpu_exec_cancel(&exec[3]);
    hpu_exec_cancel(&exec[4]);
    assert_int_equal(run(good), SUCCESS);
    tear_down();
}

/* A fault of the NIC itself is a fault of the program. */
static void a_fault_inside_a_call_is_not_contained(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        if (set_up_with(1) != 0) {
            _exit(1);
        }
        put_crashes = 8;
        notes->length = 1;
        run(put_device);
        _exit(2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* ---- PTL_HANDLER ---- */

PTL_HANDLER(good);
PTL_HANDLER(check_header);
PTL_HANDLER(check_completion);

extern const struct ptl_handler_entry __start_pinwheel_handlers[], __stop_pinwheel_handlers[];

static void handlers_are_registered_by_name(void **state)
{
    (void)state;
    int found = 0;
    for (const struct ptl_handler_entry *e = __start_pinwheel_handlers;
         e < __stop_pinwheel_handlers; e++) {
        found +=
            (e->address == (void (*)(void))good && strcmp(e->name, "good") == 0) ||
            (e->address == (void (*)(void))check_header && strcmp(e->name, "check_header") == 0) ||
            (e->address == (void (*)(void))check_completion &&
             strcmp(e->name, "check_completion") == 0);
    }
    assert_int_equal(__stop_pinwheel_handlers - __start_pinwheel_handlers, 3);
    assert_int_equal(found, 3);
}

/* ---- Several packets in one call ---- */

enum { PACKET = 40, PACKETS = 6, LAST = 10 };
static uint64_t odd_offset;
static int odd_code; /* SEGV: by a fault; HPU_WAIT: it yields, and all is well */

static __handler int walk(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->other += p.base != host + p.offset || p.offset != n->word * PACKET;
    n->word++;
    n->length += p.length;
    if (p.offset != odd_offset) {
        return SUCCESS;
    }
    if (odd_code == SEGV) {
        return null_write(p, state);
    }
    if (odd_code == HPU_WAIT) {
        PtlHandlerYield();
        return SUCCESS;
    }
    return odd_code;
}

static struct hpu_exec walk_packets(void)
{
    struct hpu_exec exec = {.env = environment()};
    ptl_payload_t first = {.length = PACKET, .base = host};
    memset(notes, 0, sizeof(*notes));
    hpu_exec_payload(pool, &exec, walk, &first);
    hpu_exec_behind(&exec, (PACKETS - 2) * PACKET + LAST, PACKET);
    return exec;
}

static void one_call_takes_packets_that_follow(void **state)
{
    (void)state;
    set_up();
    odd_offset = UINT64_MAX;
    struct hpu_exec exec = walk_packets();
    assert_int_equal(go_on(&exec), SUCCESS);
    assert_int_equal(exec.calls, PACKETS);
    assert_int_equal(exec.arg.payload.offset, (PACKETS - 1) * PACKET);
    assert_int_equal(exec.arg.payload.length, LAST);
    assert_int_equal(notes->word, PACKETS);
    assert_int_equal(notes->length, (PACKETS - 1) * PACKET + LAST);
    assert_int_equal(notes->other, 0);
    tear_down();
}

/* Whatever is not SUCCESS is of the packet that the call is at. */
static void a_call_ends_at_the_packet_that_ends_otherwise(void **state)
{
    static const int codes[] = {DROP, FAIL, SEGV};
    (void)state;
    set_up();
    for (unsigned i = 0; i < PACKETS * 3; i++) {
        unsigned packet = i / 3;
        odd_offset = packet * PACKET;
        odd_code = codes[i % 3];
        struct hpu_exec exec = walk_packets();
        assert_int_equal(go_on(&exec), odd_code);
        assert_int_equal(exec.calls, packet + 1);
        assert_int_equal(exec.arg.payload.offset, odd_offset);
        assert_int_equal(notes->word, packet + 1);
    }
    tear_down();
}

static void a_call_waits_at_a_packet(void **state)
{
    (void)state;
    set_up();
    odd_code = HPU_WAIT;
    for (unsigned packet = 0; packet < PACKETS; packet++) {
        odd_offset = packet * PACKET;
        struct hpu_exec exec = walk_packets();
        assert_int_equal(go_on(&exec), HPU_WAIT);
        assert_int_equal(exec.arg.payload.offset, odd_offset);
        assert_int_equal(notes->word, packet + 1);
        assert_int_equal(go_on(&exec), SUCCESS);
        assert_int_equal(notes->word, PACKETS);
        assert_int_equal(notes->other, 0);
    }
    tear_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_get_their_arguments),
        cmocka_unit_test(return_codes_of_the_wrong_kind_are_fail),
        cmocka_unit_test(a_fault_ends_the_handler_and_nothing_else),
        cmocka_unit_test(any_kind_of_handler_may_fault),
        cmocka_unit_test(faults_on_several_threads),
        cmocka_unit_test(a_put_may_wait_and_go_on_elsewhere),
        cmocka_unit_test(handlers_wait_for_a_context),
        cmocka_unit_test(a_fault_inside_a_call_is_not_contained),
        cmocka_unit_test(handlers_are_registered_by_name),
        cmocka_unit_test(one_call_takes_packets_that_follow),
        cmocka_unit_test(a_call_ends_at_the_packet_that_ends_otherwise),
        cmocka_unit_test(a_call_waits_at_a_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
