/* SPDX-License-Identifier: BSD-3-Clause */
/* The scheduler of HPUs that are threads: order, masks, fairness, and taking calls back. */
#include "hpu_fixture.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/sys.h"
#include "hpu/sched.h"

enum { CALLS = 200 };

/* One call, and how it ended. */
struct call {
    struct hpu_exec exec;
    int code;
    unsigned place; /* in the order of the ends, from 1 */
};

static atomic_uint places, ends, begun;
static struct call calls[CALLS], others[CALLS];

static void on_begin(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void on_done(void *arg, struct hpu_exec *exec, int code)
{
    struct call *call = (struct call *)exec;
    call->code = code;
    call->place = atomic_fetch_add(&places, 1) + 1;
    atomic_fetch_add(&ends, 1);
}

static void on_idle(void *arg)
{
}

static const struct hpu_sched_ops sched_ops = {.begin = on_begin, .done = on_done, .idle = on_idle};

static struct hpu_sched *begin_with(unsigned hpus)
{
    assert_int_equal(set_up_with(PTL_NUM_HPUS), 0);
    memset(calls, 0, sizeof(calls));
    memset(others, 0, sizeof(others));
    places = ends = begun = 0;
    struct hpu_sched *s = hpu_sched_create(pool, hpus, NULL, &sched_ops, &begun);
    assert_non_null(s);
    assert_int_equal(hpu_sched_hpus(s), hpus);
    return s;
}

static void end(struct hpu_sched *s)
{
    hpu_sched_destroy(s);
    tear_down();
}

static void submit(struct hpu_sched *s, struct hpu_queue *q, struct call *call,
                   ptl_payload_handler_t handler, size_t number)
{
    ptl_payload_t packet = {.base = host2, .offset = number, .length = sizeof(host2)};
    call->exec.env = environment();
    hpu_exec_payload(pool, &call->exec, handler, &packet);
    hpu_sched_submit(s, q, &call->exec);
}

static void wait_for(unsigned n)
{
    while (atomic_load(&ends) < n) {
        sched_yield();
    }
}

static void burn(int64_t ns)
{
    int64_t until = clock_ns() + ns;
    while (clock_ns() < until) {
    }
}

static __handler int quick(const ptl_payload_t p, void *state)
{
    PtlHandlerFAdd(&((struct notes *)state)->word, NULL, 1);
    return SUCCESS;
}

static void all_are_run(void **state)
{
    struct hpu_queue q;
    struct hpu_sched *s = begin_with(3);
    hpu_queue_init(&q, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &q, &calls[i], quick, i);
    }
    wait_for(CALLS);
    assert_int_equal(notes->word, CALLS);
    assert_int_equal(hpu_queue_waiting(s, &q), 0);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].code, SUCCESS);
    }
    end(s);
    assert_int_equal(begun, 3);
}

/* ---- Masks ---- */

static atomic_int inside, most_inside;
static atomic_uint wrong_slots;
static unsigned only_hpu, hpu_count;

static __handler int note_inside(const ptl_payload_t p, void *state)
{
    int now = atomic_fetch_add(&inside, 1) + 1;
    if (now > atomic_load(&most_inside)) {
        atomic_store(&most_inside, now);
    }
    if (PTL_MY_HPU % hpu_count != only_hpu) {
        atomic_fetch_add(&wrong_slots, 1);
    }
    PtlHandlerYield();
    burn(20000);
    PtlHandlerYield();
    atomic_fetch_sub(&inside, 1);
    return SUCCESS;
}

static void one_bit_is_serial_and_in_order(void **state)
{
    struct hpu_queue q;
    hpu_count = 3;
    only_hpu = 2;
    inside = most_inside = 0;
    wrong_slots = 0;
    struct hpu_sched *s = begin_with(hpu_count);
    hpu_queue_init(&q, UINT64_C(1) << only_hpu);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &q, &calls[i], note_inside, i);
    }
    wait_for(CALLS);
    assert_int_equal(most_inside, 1);
    assert_int_equal(wrong_slots, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].place, i + 1);
    }
    end(s);
}

static void two_bits_are_two(void **state)
{
    struct hpu_queue q;
    hpu_count = 3;
    inside = most_inside = 0;
    struct hpu_sched *s = begin_with(hpu_count);
    hpu_queue_init(&q, 3);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &q, &calls[i], note_inside, i);
    }
    wait_for(CALLS);
    assert_in_range(most_inside, 1, 2);
    end(s);
}

/* ---- Fairness ---- */

static __handler int slow(const ptl_payload_t p, void *state)
{
    burn(200000);
    return SUCCESS;
}

static unsigned behind(unsigned place)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CALLS; i++) {
        n += calls[i].place != 0 && calls[i].place < place;
    }
    return n;
}

/* The slow ones were there first, by far: the quick ones have their share all the same. */
static void slow_context_does_not_starve(void **state)
{
    struct hpu_queue a, b;
    struct hpu_sched *s = begin_with(1);
    hpu_queue_init(&a, 0);
    hpu_queue_init(&b, 0);
    hpu_sched_pause(s);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &a, &calls[i], slow, i);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &b, &others[i], quick, i);
    }
    assert_int_equal(hpu_queue_waiting(s, &b), CALLS);
    hpu_sched_resume(s);
    wait_for(2 * CALLS);
    /* A slow one costs ten rounds of credit, in which a thousand quick ones fit; on a machine
     * where something else takes the core away now and then, some fewer. */
    assert_in_range(behind(others[0].place), 0, 2);
    assert_in_range(behind(others[CALLS - 1].place), 0, CALLS / 4);
    end(s);
}

/* Two that are as slow as each other take turns. */
static void equals_take_turns(void **state)
{
    struct hpu_queue a, b;
    struct hpu_sched *s = begin_with(1);
    hpu_queue_init(&a, 0);
    hpu_queue_init(&b, 0);
    hpu_sched_pause(s);
    for (unsigned i = 0; i < 50; i++) {
        submit(s, &a, &calls[i], slow, i);
    }
    for (unsigned i = 0; i < 50; i++) {
        submit(s, &b, &others[i], slow, i);
    }
    hpu_sched_resume(s);
    wait_for(100);
    assert_in_range(behind(others[24].place), 10, 40);
    end(s);
}

/* ---- Suspended handlers ---- */

static atomic_int gate;

static __handler int wait_at_gate(const ptl_payload_t p, void *state)
{
    while (atomic_load(&gate) == 0) {
        PtlHandlerYield();
    }
    return SUCCESS;
}

static __handler int open_gate(const ptl_payload_t p, void *state)
{
    atomic_store(&gate, 1);
    return SUCCESS;
}

static void suspended_ones_let_others_run(void **state)
{
    struct hpu_queue q;
    gate = 0;
    struct hpu_sched *s = begin_with(1);
    hpu_queue_init(&q, 0);
    for (unsigned i = 0; i < PTL_NUM_HPUS - 1; i++) {
        submit(s, &q, &calls[i], wait_at_gate, i);
    }
    submit(s, &q, &others[0], open_gate, 0);
    wait_for(PTL_NUM_HPUS);
    end(s);
}

/* A call that waits in the NIC until the gate is open. */
static atomic_uint waiting_on[PTL_NUM_HPUS], looks_of[PTL_NUM_HPUS];

static int wait_in_nic(struct hpu_env *env, const struct hpu_message *m)
{
    unsigned h = (unsigned)m->hdr_data % hpu_count;
    atomic_fetch_add(&waiting_on[h], 1);
    while (atomic_load(&gate) == 0) {
        atomic_fetch_add(&looks_of[h], 1);
        hpu_suspend(env);
    }
    return PTL_OK;
}

static const struct hpu_ops waiting_ops = {.send = wait_in_nic};

static __handler int wait_for_nic(const ptl_payload_t p, void *state)
{
    PtlHandlerPutFromDevice(NULL, 0, PTL_NO_ACK_REQ, peer, 0, 0, NULL, PTL_MY_HPU);
    return SUCCESS;
}

/* Waits until each HPU has resumed handlers so often that it has begun what it may: it looks for a
 * call to begin after each one. Or until the gate is open. */
static void let_all_look(void)
{
    for (unsigned h = 0; h < hpu_count; h++) {
        atomic_store(&looks_of[h], 0);
    }
    for (unsigned h = 0; h < hpu_count; h++) {
        while (atomic_load(&looks_of[h]) < 4 * PTL_NUM_HPUS && atomic_load(&gate) == 0) {
            sched_yield();
        }
    }
}

/* A context with more calls than there are slots, all of which wait for the NIC, has three
 * quarters of each HPU's slots and leaves the others, so that another one's call begins. */
static void leave_slots(unsigned hpus)
{
    struct hpu_queue a, b;
    unsigned kept[PTL_NUM_HPUS];
    hpu_count = hpus;
    gate = 0;
    memset(waiting_on, 0, sizeof(waiting_on));
    struct hpu_sched *s = begin_with(hpus);
    hpu_queue_init(&a, 0);
    hpu_queue_init(&b, 0);
    hpu_sched_pause(s);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &a, &calls[i], wait_for_nic, i);
        calls[i].exec.env.ops = &waiting_ops;
    }
    hpu_sched_resume(s);
    let_all_look();
    for (unsigned h = 0; h < hpus; h++) {
        kept[h] = atomic_load(&waiting_on[h]);
    }
    submit(s, &b, &others[0], open_gate, 0);
    let_all_look();
    int opened = atomic_exchange(&gate, 1);
    wait_for(CALLS + 1);
    end(s);
    for (unsigned h = 0; h < hpus; h++) {
        unsigned slots = (PTL_NUM_HPUS - h + hpus - 1) / hpus;
        assert_int_equal(kept[h], slots * 3 / 4);
    }
    assert_int_equal(opened, 1);
}

static void a_context_that_waits_leaves_slots(void **state)
{
    static const unsigned hpus[] = {1, 2, 3, 9, 13, 16, 17, 21, 22, 31, 32};
    for (size_t i = 0; i < sizeof(hpus) / sizeof(hpus[0]); i++) {
        leave_slots(hpus[i]);
    }
}

/* ---- Taking back ---- */

static void withdrawn_and_cancelled_ones_are_not_done(void **state)
{
    struct hpu_queue q;
    gate = 0;
    struct hpu_sched *s = begin_with(2);
    hpu_queue_init(&q, 0);
    submit(s, &q, &calls[0], wait_at_gate, 0);
    while (notes->word == 0 && hpu_queue_waiting(s, &q) != 0) {
        sched_yield();
    }
    hpu_sched_pause(s);
    while (hpu_sched_runs(s, &calls[0].exec)) {
        sched_yield();
    }
    submit(s, &q, &calls[1], quick, 1);
    submit(s, &q, &calls[2], quick, 2);
    assert_true(hpu_sched_withdraw(s, &calls[1].exec));
    assert_false(hpu_sched_withdraw(s, &calls[1].exec));
    assert_false(hpu_sched_withdraw(s, &calls[0].exec));
    assert_true(hpu_sched_cancel(s, &calls[0].exec));
    assert_true(hpu_sched_cancel(s, &calls[2].exec));
    submit(s, &q, &calls[3], quick, 3);
    hpu_sched_resume(s);
    wait_for(1);
    assert_int_equal(calls[3].place, 1);
    assert_int_equal(calls[0].place + calls[1].place + calls[2].place, 0);
    assert_int_equal(notes->word, 1);
    end(s);
}

static __handler int bad_instruction(const ptl_payload_t p, void *state)
{
    __asm__ volatile("ud2");
    return SUCCESS;
}

static void faults_end_a_call(void **state)
{
    struct hpu_queue q;
    struct hpu_sched *s = begin_with(2);
    hpu_queue_init(&q, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(s, &q, &calls[i], i % 2 ? quick : bad_instruction, i);
    }
    wait_for(CALLS);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].code, i % 2 ? SUCCESS : SEGV);
    }
    end(s);
}

static void processors(void **state)
{
    static const char *const bad[] = {"a", "1-", "2-1", "0,", ",0", "0;1", "99999999"};
    assert_int_equal(set_up_with(PTL_NUM_HPUS), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        assert_null(hpu_sched_create(pool, 1, bad[i], &sched_ops, &begun));
        assert_int_equal(errno, EINVAL);
    }
    assert_null(hpu_sched_create(pool, 0, NULL, &sched_ops, &begun));
    assert_null(hpu_sched_create(pool, PTL_NUM_HPUS + 1, NULL, &sched_ops, &begun));
    hpu_sched_destroy(NULL);
    tear_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_run),
        cmocka_unit_test(one_bit_is_serial_and_in_order),
        cmocka_unit_test(two_bits_are_two),
        cmocka_unit_test(slow_context_does_not_starve),
        cmocka_unit_test(equals_take_turns),
        cmocka_unit_test(suspended_ones_let_others_run),
        cmocka_unit_test(a_context_that_waits_leaves_slots),
        cmocka_unit_test(withdrawn_and_cancelled_ones_are_not_done),
        cmocka_unit_test(faults_end_a_call),
        cmocka_unit_test(processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
