/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog: what it ends, what it leaves alone, and that it sleeps when nothing runs. */
#include "hpu_fixture.h"

#include <dlfcn.h>
#include <signal.h>
#include <time.h>

#include "base/tsan.h"
#include "hpu/watchdog.h"

#define BUDGET_NS 5000000

static int64_t own_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static __handler int endless(const ptl_payload_t p, void *state)
{
    volatile uint64_t i = 0;
    while (i < UINT64_MAX) {
        i++;
    }
    return SUCCESS;
}

static __handler int endless_calls(const ptl_payload_t p, void *state)
{
    uint64_t word = 0;
    while (word == 0) {
        PtlHandlerDMAFromHostB(0, &word, sizeof(word), PTL_ME_HOST_MEM);
    }
    return SUCCESS;
}

static __handler int sleeping(const ptl_payload_t p, void *state)
{
    nanosleep(&(struct timespec){.tv_nsec = 10 * BUDGET_NS}, NULL);
    return SUCCESS;
}

/* ThreadSanitizer keeps signals from loops that make no call. */
static void skip_with_tsan(void)
{
    if (TSAN) {
        skip();
    }
}

static void ends_what_does_not_end(void **state)
{
    skip_with_tsan();
    set_up();
    struct hpu_watchdog *watchdog = hpu_watchdog_start(pool, BUDGET_NS);
    assert_non_null(watchdog);
    for (int i = 0; i < 6; i++) {
        int64_t before = own_cpu_time();
        assert_int_equal(run(i % 2 ? endless : endless_calls), TIMEOUT);
        assert_true(own_cpu_time() - before >= BUDGET_NS);
        assert_int_equal(run(good), SUCCESS);
    }
    hpu_watchdog_stop(watchdog);
    tear_down();
}

/* Time that a handler does not run for is not its own. */
static void leaves_others_alone(void **state)
{
    set_up();
    struct hpu_watchdog *watchdog = hpu_watchdog_start(pool, BUDGET_NS);
    assert_int_equal(run(sleeping), SUCCESS);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(run(good), SUCCESS);
    }
    hpu_watchdog_stop(watchdog);
    tear_down();
}

/* Uses more than half of its time. */
static __handler int busy(const ptl_payload_t p, void *state)
{
    int64_t end = own_cpu_time() + BUDGET_NS * 6 / 10;
    while (own_cpu_time() < end) {
    }
    return SUCCESS;
}

/* Of packets that share a call each has its whole time. */
static void each_packet_has_its_time(void **state)
{
    enum { PACKET = 16, PACKETS = 6 };
    set_up();
    struct hpu_watchdog *watchdog = hpu_watchdog_start(pool, BUDGET_NS);
    struct hpu_exec exec = {.env = environment()};
    ptl_payload_t first = {.length = PACKET, .base = host};
    hpu_exec_payload(pool, &exec, busy, &first);
    hpu_exec_behind(&exec, (PACKETS - 1) * PACKET, PACKET);
    assert_int_equal(go_on(&exec), SUCCESS);
    assert_int_equal(exec.calls, PACKETS);
    hpu_watchdog_stop(watchdog);
    tear_down();
}

static void sleeps_when_nothing_runs(void **state)
{
    skip_with_tsan();
    set_up();
    struct hpu_watchdog *watchdog = hpu_watchdog_start(pool, BUDGET_NS);
    for (int i = 0; i < 3; i++) {
        while (atomic_load(&watchdog->asleep) == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        assert_int_equal(run(good), SUCCESS);
        assert_int_equal(run(endless), TIMEOUT); /* so it woke up */
    }
    hpu_watchdog_stop(watchdog);
    hpu_watchdog_stop(NULL);
    tear_down();
}

static bool late; /* the guard's turn is over when its handler calls next */
static unsigned asked, answered;

/* The library asks this where a handler was when its time ran out. The watchdog says meanwhile,
 * once more, that it is. */
int dladdr(const void *address, Dl_info *info)
{
    struct fault_guard *guard = hpu_pool_guard(pool, 0);
    asked++;
    if (late) {
        fault_end(guard, atomic_load(&guard->turn));
    }
    answered++;
    *info = (Dl_info){.dli_fname = "a", .dli_fbase = (void *)(uintptr_t)address};
    return 1;
}

static __handler int late_call(const ptl_payload_t p, void *state)
{
    struct fault_guard *guard = hpu_pool_guard(pool, 0);
    uint64_t word = 0;
    atomic_store(&guard->overdue, atomic_load(&guard->turn));
    late = true;
    PtlHandlerDMAFromHostB(0, &word, sizeof(word), PTL_ME_HOST_MEM);
    return SUCCESS;
}

/* What the library does for a handler that is over is not given up: it may hold a lock. */
static void what_is_said_is_not_ended(void **state)
{
    set_up();
    assert_int_equal(run(late_call), TIMEOUT);
    late = false;
    assert_int_not_equal(asked, 0);
    assert_int_equal(answered, asked);
    assert_int_equal(run(good), SUCCESS);
    tear_down();
}

/* A signal for a turn that is over does nothing, nor does the same signal from others. */
static __handler int be_signalled(const ptl_payload_t p, void *state)
{
    raise(FAULT_OVERDUE);
    fault_end(hpu_pool_guard(pool, 0), 12345);
    return SUCCESS;
}

static volatile sig_atomic_t own_signals;

static void on_own(int signal)
{
    own_signals++;
}

static void other_signals_do_nothing(void **state)
{
    signal(FAULT_OVERDUE, on_own);
    set_up();
    assert_int_equal(run(be_signalled), SUCCESS);
    assert_int_equal(own_signals, 1);
    tear_down();
    signal(FAULT_OVERDUE, SIG_DFL);
}

static volatile sig_atomic_t later_signals;

static void on_later(int signal, siginfo_t *info, void *context)
{
    later_signals++;
}

/* The watchdog notices that the program has put a handler above ours. */
static void finds_later_handlers(void **state)
{
    skip_with_tsan();
    set_up();
    struct sigaction later = {.sa_sigaction = on_later, .sa_flags = SA_SIGINFO}, before;
    sigemptyset(&later.sa_mask);
    assert_int_equal(sigaction(FAULT_OVERDUE, &later, &before), 0);
    struct hpu_watchdog *watchdog = hpu_watchdog_start(pool, BUDGET_NS);
    fault_refresh();
    assert_int_equal(run(endless), TIMEOUT);
    raise(FAULT_OVERDUE);
    assert_int_equal(later_signals, 1);
    hpu_watchdog_stop(watchdog);
    tear_down();
    assert_int_equal(sigaction(FAULT_OVERDUE, &before, &later), 0);
    assert_ptr_equal(later.sa_sigaction, on_later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_others_alone),       cmocka_unit_test(other_signals_do_nothing),
        cmocka_unit_test(ends_what_does_not_end),    cmocka_unit_test(sleeps_when_nothing_runs),
        cmocka_unit_test(finds_later_handlers),      cmocka_unit_test(each_packet_has_its_time),
        cmocka_unit_test(what_is_said_is_not_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
