/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of handlers share: a pool, HPU memory, two ranges of host memory,
 * and a NIC that notes what is put. Each program includes it once.
 */
#ifndef UNIT_HPU_FIXTURE_H
#define UNIT_HPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "base/fault.h"
#include "hpu/exec.h"
#include "hpu/memory.h"

#define MAX_PAYLOAD 4096

/* HPU memory of the tests. */
struct notes {
    uint64_t word, other;
    int rc[8];
    void *pointer;
    uint64_t offset, length;
    unsigned options;
    unsigned slot;
    uint8_t bytes[64];
};

static struct hpu_pool *pool;
static struct hpu_mem *memory;
static struct notes *notes;
static uint8_t host[256], host2[64];

/* The NIC that the handlers send to. */
static struct hpu_message last_put;
static void *put_owner;
static int put_result, put_suspends, put_crashes;

static inline int fake_send(struct hpu_env *env, const struct hpu_message *put)
{
    last_put = *put;
    put_owner = env->owner;
    if (put_crashes) {
        *(volatile int *)(uintptr_t)put_crashes = 1;
    }
    for (int i = 0; i < put_suspends; i++) {
        hpu_suspend(env);
    }
    return put_result;
}

/* The message that the handlers ask about. */
static ptl_header_t fake_about;
static uint8_t fake_state[64];

static inline int fake_header(struct hpu_env *env, ptl_header_t *header)
{
    *header = fake_about;
    return PTL_OK;
}

static inline void *fake_message_state(struct hpu_env *env, size_t *length)
{
    *length = sizeof(fake_state);
    return fake_state;
}

static const struct hpu_ops ops = {
    .send = fake_send, .header = fake_header, .state = fake_message_state};

static inline struct hpu_env environment(void)
{
    return (struct hpu_env){
        .me_base = host,
        .me_length = sizeof(host),
        .host_base = host2,
        .host_length = sizeof(host2),
        .state = memory->base,
        .state_length = memory->length,
        .max_payload = MAX_PAYLOAD,
        .ops = &ops,
        .owner = host,
    };
}

static inline int set_up_with(unsigned contexts)
{
    memory = hpu_mem_create(sizeof(struct notes));
    pool = hpu_pool_create(contexts, 65536);
    if (memory == NULL || pool == NULL || fault_install() != 0) {
        return -1;
    }
    notes = memory->base;
    memset(host, 0, sizeof(host));
    memset(host2, 0, sizeof(host2));
    put_result = put_suspends = put_crashes = 0;
    return 0;
}

static inline void set_up(void)
{
    assert_int_equal(set_up_with(4), 0);
}

static inline void tear_down(void)
{
    assert_int_equal(hpu_pool_in_use(pool), 0);
    fault_remove();
    hpu_pool_destroy(pool);
    hpu_mem_destroy(memory);
}

/* The owner of the pool. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

/* Goes on with a call that is set up, as the NIC does. */
static inline int go_on(struct hpu_exec *exec)
{
    pthread_mutex_lock(&pool_lock);
    bool taken = hpu_exec_take(exec);
    pthread_mutex_unlock(&pool_lock);
    int result = taken ? hpu_exec_run(exec) : HPU_WAIT;
    if (result != HPU_WAIT) {
        pthread_mutex_lock(&pool_lock);
        hpu_exec_give(exec);
        pthread_mutex_unlock(&pool_lock);
    }
    return result;
}

static inline int call_header(struct hpu_exec *exec, ptl_header_handler_t handler,
                              const ptl_header_t *header)
{
    hpu_exec_header(pool, exec, handler, header);
    return go_on(exec);
}

static inline int call_payload(struct hpu_exec *exec, ptl_payload_handler_t handler,
                               const ptl_payload_t *packet)
{
    hpu_exec_payload(pool, exec, handler, packet);
    return go_on(exec);
}

static inline int call_completion(struct hpu_exec *exec, ptl_completion_handler_t handler,
                                  ptl_size_t dropped, bool flow_control)
{
    hpu_exec_completion(pool, exec, handler, dropped, flow_control);
    return go_on(exec);
}

static inline int run_payload(struct hpu_exec *exec, ptl_payload_handler_t handler)
{
    ptl_payload_t packet = {.base = host2, .length = sizeof(host2)};
    memset(exec, 0, sizeof(*exec));
    exec->env = environment();
    return call_payload(exec, handler, &packet);
}

static inline int run(ptl_payload_handler_t handler)
{
    struct hpu_exec exec;
    return run_payload(&exec, handler);
}

/* Two handlers. */
__attribute__((unused)) static __handler int good(const ptl_payload_t p, void *state)
{
    ((struct notes *)state)->word++;
    return SUCCESS;
}

static const ptl_process_t peer = {.phys = {.nid = 3, .pid = 4}};

__attribute__((unused)) static __handler int put_device(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->rc[0] = PtlHandlerPutFromDevice(n->bytes, n->length, PTL_ACK_REQ, peer, 11, 12, host, 13);
    n->rc[1]++;
    return SUCCESS;
}

#endif
