/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that copies beside handlers; see dma_engine.h. */
#include "hpu/dma_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/sys.h"
#include "base/thread.h"
#include "hpu/dma.h"

#define SPIN_NS 20000 /* about what it costs to wake a thread */
#define WAKE_BYTES                                                                                 \
    ((size_t)1 << 20) /* a copy of so many bytes takes longer than SPIN_NS even in the cache */

enum engine_state { ENGINE_NOT_BEGUN, ENGINE_RUNS, ENGINE_NEVER };

struct hpu_dma_engine {
    struct mutex lock;
    struct condition work;
    enum engine_state state;
    bool stop, asleep;
    struct list offered;     /* struct hpu_dma of which parts are left to be taken */
    struct hpu_dma *at;      /* the transfer of which it copies a part, without the lock */
    _Atomic unsigned offers; /* counts offers; the engine reads it while it spins */
    /* where the engine may run: the thread that makes an offer may be bound to one core */
    cpu_set_t cpus;
    pthread_t thread;
};

struct hpu_dma_engine *hpu_dma_engine_create(void)
{
    struct hpu_dma_engine *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    list_init(&m->offered);
    if (sched_getaffinity(0, sizeof(m->cpus), &m->cpus) != 0 || CPU_COUNT(&m->cpus) < 2) {
        m->state = ENGINE_NEVER;
    }
    return m;
}

void hpu_dma_engine_destroy(struct hpu_dma_engine *m)
{
    if (m == NULL) {
        return;
    }
    if (m->state == ENGINE_RUNS) {
        mutex_take(&m->lock);
        m->stop = true;
        condition_signal(&m->work);
        mutex_give(&m->lock);
        thread_join(m->thread);
    }
    free(m);
}

static void copy_part(struct hpu_dma_engine *m)
{
    struct hpu_dma *dma = container_of(m->offered.next, struct hpu_dma, link);
    m->at = dma;
    mutex_give(&m->lock);
    bool more = hpu_dma_part(dma);
    mutex_take(&m->lock);
    m->at = NULL;
    if (!more) {
        list_remove(&dma->link);
    }
}

/* Looks for offers for a moment, which costs less than to be woken. */
static void spin(struct hpu_dma_engine *m)
{
    unsigned offers = atomic_load_explicit(&m->offers, memory_order_relaxed);
    mutex_give(&m->lock);
    int64_t end = clock_ns() + SPIN_NS;
    while (atomic_load_explicit(&m->offers, memory_order_relaxed) == offers && clock_ns() < end) {
        cpu_pause();
    }
    mutex_take(&m->lock);
}

static void *engine_thread(void *arg)
{
    struct hpu_dma_engine *m = arg;
    mutex_take(&m->lock);
    while (!m->stop) {
        if (!list_empty(&m->offered)) {
            copy_part(m);
            continue;
        }
        spin(m);
        m->asleep = true;
        while (list_empty(&m->offered) && !m->stop) {
            condition_wait(&m->work, &m->lock);
        }
        m->asleep = false;
    }
    mutex_give(&m->lock);
    return NULL;
}

static void begin(struct hpu_dma_engine *m)
{
    int rc = thread_start(&m->thread, &m->cpus, true, engine_thread, m);
    m->state = rc == 0 ? ENGINE_RUNS : ENGINE_NEVER;
    if (rc != 0) {
        log_line(LOG_WARN, "no thread for non-blocking transfers, handlers do them: %s",
                 strerror(rc));
    }
}

void hpu_dma_engine_offer(struct hpu_dma_engine *m, struct hpu_dma *dma)
{
    mutex_take(&m->lock);
    bool wake = dma->length >= WAKE_BYTES;
    if (m->state == ENGINE_NOT_BEGUN && wake) {
        begin(m);
    }
    list_push_back(&m->offered, &dma->link);
    atomic_fetch_add_explicit(&m->offers, 1, memory_order_relaxed);
    if (m->asleep && wake) {
        condition_signal(&m->work);
    }
    mutex_give(&m->lock);
}

void hpu_dma_engine_retract(struct hpu_dma_engine *m, struct hpu_dma *dma)
{
    mutex_take(&m->lock);
    list_remove(&dma->link);
    while (m->at == dma) { /* lasts for the time of one part */
        mutex_give(&m->lock);
        sys_yield();
        mutex_take(&m->lock);
    }
    mutex_give(&m->lock);
}
