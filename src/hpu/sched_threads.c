/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of HPUs: where they run, how they start and end. */
#include "hpu/sched_own.h"

#include <errno.h>
#include <stdlib.h>

/* Reads a list of processors, in its order, and returns their number; 0: it is malformed. */
static unsigned parse_cpus(const char *list, unsigned *cpus, unsigned max)
{
    unsigned n = 0;
    for (const char *at = list; *at != '\0' && n < max;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at) {
            return 0;
        }
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
        }
        if (end == at || (*end != ',' && *end != '\0') || last < first || last >= CPU_SETSIZE) {
            return 0;
        }
        for (unsigned long cpu = first; cpu <= last && n < max; cpu++) {
            cpus[n++] = (unsigned)cpu;
        }
        if (end[0] == ',' && end[1] == '\0') {
            return 0;
        }
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

static int start_hpu(struct hpu *h, const unsigned *cpus, unsigned count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (count != 0) {
        CPU_SET(cpus[h->number % count], &set);
    }
    return thread_start(&h->thread, count != 0 ? &set : NULL, true, sched_thread, h);
}

static void init_hpu(struct hpu_sched *s, unsigned i)
{
    struct hpu *h = &s->hpu[i];
    h->sched = s;
    h->number = i;
    list_init(&h->suspended);
    for (unsigned slot = i; slot < PTL_NUM_HPUS; slot += s->hpus) {
        h->slots |= UINT64_C(1) << slot;
    }
}

void hpu_sched_stop(struct hpu_sched *s)
{
    if (s == NULL) {
        return;
    }
    mutex_take(&s->lock);
    s->stop = true;
    sched_wake(s, NULL);
    mutex_give(&s->lock);
    for (; s->started != 0; s->started--) {
        thread_join(s->hpu[s->started - 1].thread);
    }
}

void hpu_sched_destroy(struct hpu_sched *s)
{
    if (s == NULL) {
        return;
    }
    hpu_sched_stop(s);
    free(s);
}

struct hpu_sched *sched_new(struct hpu_pool *pool, unsigned hpus, const struct hpu_sched_ops *ops,
                            void *arg)
{
    struct hpu_sched *s = calloc(1, sizeof(*s) + hpus * sizeof(struct hpu));
    if (s == NULL) {
        return NULL;
    }
    s->pool = pool;
    s->ops = ops;
    s->arg = arg;
    s->hpus = hpus;
    list_init(&s->turn);
    for (unsigned i = 0; i < hpus; i++) {
        init_hpu(s, i);
    }
    return s;
}

struct hpu_sched *hpu_sched_create(struct hpu_pool *pool, unsigned hpus, const char *cpus,
                                   const struct hpu_sched_ops *ops, void *arg)
{
    unsigned list[PTL_NUM_HPUS], count = 0;
    if (cpus != NULL && *cpus != '\0') {
        count = parse_cpus(cpus, list, PTL_NUM_HPUS);
        if (count == 0) {
            hpus = 0;
        }
    }
    if (hpus < 1 || hpus > PTL_NUM_HPUS) {
        errno = EINVAL;
        return NULL;
    }
    struct hpu_sched *s = sched_new(pool, hpus, ops, arg);
    for (unsigned i = 0; s != NULL && i < hpus; i++) {
        int rc = start_hpu(&s->hpu[i], list, count);
        if (rc != 0) {
            hpu_sched_destroy(s);
            errno = rc;
            return NULL;
        }
        s->started++;
    }
    return s;
}

unsigned hpu_sched_hpus(const struct hpu_sched *s)
{
    return s->hpus;
}
