/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking transfers: small ones are done at once, large ones when they are asked about,
 * when the handler has returned, or by a DMA engine: inline and on HPUs that are threads.
 */
#include "hpu_fixture.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "hpu/dma.h"
#include "hpu/dma_engine.h"
#include "hpu/sched.h"

enum { LARGE = 5000003, MANY = 3 * HPU_DMA_PENDING };

static uint8_t *near, *far; /* HPU memory, so to speak, and host memory */
static atomic_uint ended;
static int code;

static void on_begin(void *arg)
{
}

static void on_done(void *arg, struct hpu_exec *exec, int result)
{
    code = result;
    atomic_fetch_add(&ended, 1);
}

static const struct hpu_sched_ops sched_ops = {
    .begin = on_begin, .done = on_done, .idle = on_begin};

static void set_up_large(void)
{
    set_up();
    near = malloc(LARGE);
    far = malloc(LARGE);
    assert_true(near != NULL && far != NULL);
    for (size_t i = 0; i < LARGE; i++) {
        near[i] = (uint8_t)(i * 7 + i / 256);
    }
    memset(far, 0, LARGE);
}

static void tear_down_large(void)
{
    free(near);
    free(far);
    tear_down();
}

/* Who runs the handler: inline or so many threads, with a DMA engine or without. */
enum { ALONE, ALONE_THREADS = 3, MOVED, WAYS = 2 * MOVED };

/* Runs a handler whose host range is `far`. */
static int run_large(ptl_payload_handler_t handler, unsigned way)
{
    unsigned hpus = way % MOVED;
    struct hpu_dma_engine *engine = way >= MOVED ? hpu_dma_engine_create() : NULL;
    struct hpu_exec exec;
    ptl_payload_t packet = {.base = host2, .length = sizeof(host2)};
    memset(&exec, 0, sizeof(exec));
    exec.env = environment();
    exec.env.me_base = far;
    exec.env.me_length = LARGE;
    exec.env.engine = engine;
    if (hpus == 0) {
        code = call_payload(&exec, handler, &packet);
        hpu_dma_engine_destroy(engine);
        return code;
    }
    struct hpu_queue q;
    ended = 0;
    struct hpu_sched *s = hpu_sched_create(pool, hpus, NULL, &sched_ops, NULL);
    assert_non_null(s);
    hpu_queue_init(&q, 0);
    hpu_exec_payload(pool, &exec, handler, &packet);
    hpu_sched_submit(s, &q, &exec);
    while (atomic_load(&ended) == 0) {
        sched_yield();
    }
    hpu_sched_destroy(s);
    hpu_dma_engine_destroy(engine);
    return code;
}

static __handler int wait_for_it(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    ptl_dma_h h = PtlHandlerDMAToHostNB(near, 0, LARGE, PTL_ME_HOST_MEM);
    PtlHandlerDMAWait(h);
    n->rc[0] = memcmp(near, far, LARGE);
    n->rc[1] = PtlHandlerDMATest(h);
    memset(near, 0, LARGE);
    h = PtlHandlerDMAFromHostNB(0, near, LARGE, PTL_ME_HOST_MEM);
    while (!PtlHandlerDMATest(h)) {
        n->word++;
    }
    n->rc[2] = memcmp(near, far, LARGE);
    return SUCCESS;
}

static void waits_and_tests(void **state)
{
    for (unsigned way = 0; way < WAYS; way++) {
        set_up_large();
        assert_int_equal(run_large(wait_for_it, way), SUCCESS);
        assert_int_equal(notes->rc[0], 0);
        assert_true(notes->rc[1]);
        assert_int_equal(notes->rc[2], 0);
        if (way <= ALONE_THREADS) {
            assert_true(notes->word > 10); /* a part with each test */
        }
        tear_down_large();
    }
}

/* Without anybody else nothing of a large transfer happens before it is asked about. */
static __handler int look_before(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    ptl_dma_h h = PtlHandlerDMAToHostNB(near, 0, LARGE, PTL_ME_HOST_MEM);
    n->bytes[0] = far[1];
    PtlHandlerDMAWait(h);
    n->bytes[1] = far[1];
    h = PtlHandlerDMAToHostNB("x", 1, 1, PTL_ME_HOST_MEM);
    n->bytes[2] = far[1];
    return PtlHandlerDMATest(h) ? SUCCESS : FAIL;
}

static void only_large_ones_wait(void **state)
{
    set_up_large();
    assert_int_equal(run_large(look_before, ALONE), SUCCESS);
    assert_int_equal(notes->bytes[0], 0);
    assert_int_equal(notes->bytes[1], near[1]);
    assert_int_equal(notes->bytes[2], 'x');
    tear_down_large();
}

static __handler int return_at_once(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAToHostNB(near, 0, LARGE, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static void done_when_the_handler_has_ended(void **state)
{
    for (unsigned way = 0; way < WAYS; way++) {
        set_up_large();
        assert_int_equal(run_large(return_at_once, way), SUCCESS);
        assert_memory_equal(near, far, LARGE);
        tear_down_large();
    }
}

/* More than may be pending, and asked about out of order. */
static __handler int many(const ptl_payload_t p, void *state)
{
    enum { EACH = LARGE / MANY };
    struct notes *n = state;
    ptl_dma_h h[MANY];
    for (size_t i = 0; i < MANY; i++) {
        h[i] = PtlHandlerDMAToHostNB(near + i * EACH, i * EACH, EACH, PTL_ME_HOST_MEM);
    }
    for (size_t i = MANY; i-- > 0;) {
        PtlHandlerDMAWait(h[i]);
        n->word += memcmp(near + i * EACH, far + i * EACH, EACH) != 0;
    }
    return SUCCESS;
}

static void many_at_once(void **state)
{
    for (unsigned way = 0; way < WAYS; way++) {
        set_up_large();
        assert_int_equal(run_large(many, way), SUCCESS);
        assert_int_equal(notes->word, 0);
        tear_down_large();
    }
}

/* ---- Faults ---- */

static uint8_t *no_memory;

static __handler int into_nothing(const ptl_payload_t p, void *state)
{
    ptl_dma_h h = PtlHandlerDMAFromHostNB(0, no_memory, LARGE, PTL_ME_HOST_MEM);
    PtlHandlerDMAWait(h);
    return SUCCESS;
}

static __handler int into_nothing_unasked(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAFromHostNB(0, no_memory, LARGE, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int too_far(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAFromHostNB(1, near, LARGE, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static void bad_memory_is_segv(void **state)
{
    static const ptl_payload_handler_t bad[] = {into_nothing, into_nothing_unasked, too_far};
    no_memory = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(no_memory, MAP_FAILED);
    for (unsigned way = 0; way < WAYS; way++) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            set_up_large();
            assert_int_equal(run_large(bad[i], way), SEGV);
            assert_int_equal(run(good), SUCCESS);
            tear_down_large();
        }
    }
    munmap(no_memory, LARGE);
}

static __handler int fault_with_pending(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAToHostNB(near, 0, LARGE, PTL_ME_HOST_MEM);
    __asm__ volatile("ud2");
    return SUCCESS;
}

/* When the call is over, so are its transfers: the memory may go. */
static void ended_ones_touch_nothing(void **state)
{
    for (unsigned way = 0; way < WAYS; way++) {
        set_up_large();
        assert_int_equal(run_large(fault_with_pending, way), SEGV);
        if (way <= ALONE_THREADS) {
            assert_int_equal(far[1], 0);
        }
        memset(far, 0, LARGE);
        assert_int_equal(far[LARGE - 1], 0);
        tear_down_large();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_and_tests),
        cmocka_unit_test(only_large_ones_wait),
        cmocka_unit_test(done_when_the_handler_has_ended),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(bad_memory_is_segv),
        cmocka_unit_test(ended_ones_touch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
