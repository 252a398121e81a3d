/* SPDX-License-Identifier: BSD-3-Clause */
/* A host for a handler that runs alone; see host.h. */
#include "host.h"

#include "base/list.h"
#include "base/nic_copy.h"
#include "nic/atomic.h"

#include <errno.h>
#include <string.h>

enum { ELEMENT_MOST = 32 };

static uint8_t *peers_at(const struct hpu_host *host, const struct hpu_message *m)
{
    size_t size = host->peers.size;
    bool inside = m->remote_offset <= size && m->length <= size - m->remote_offset;
    return inside ? host->peers.bytes + m->remote_offset : NULL;
}

static bool is_sound(const struct hpu_message *m)
{
    enum atomic_call call = m->swap                ? ATOMIC_SWAP
                            : m->kind == HPU_FETCH ? ATOMIC_FETCH
                                                   : ATOMIC_PLAIN;
    if (m->kind != HPU_ATOMIC && m->kind != HPU_FETCH) {
        return true;
    }
    return atomic_is_legal(call, m->op, m->datatype) && atomic_fits(m->length, m->op, m->datatype);
}

/* Does an atomic on the peers' memory; the old value goes to `before`, unless that is NULL. */
static int apply(const struct hpu_message *m, void *target, const void *data, void *before)
{
    uint8_t operand[ELEMENT_MOST];
    size_t size = m->swap ? atomic_operand_size(m->op, m->datatype) : 0;
    if (size != 0 && nic_copy(operand, m->operand, size) != 0) {
        return -EFAULT;
    }
    int rc =
        nic_atomic(target, data, size != 0 ? operand : NULL, before, m->length, m->op, m->datatype);
    return rc == 0 ? PTL_OK : rc == -EINVAL ? PTL_ARG_INVALID : -EFAULT;
}

static int send(struct hpu_env *env, const struct hpu_message *m)
{
    struct hpu_host *host = env->owner;
    const void *data = m->from_host ? host->entry.bytes + m->host_offset : m->local;
    void *before = m->from_host ? host->entry.bytes + m->before_offset : m->before;
    uint8_t *there = peers_at(host, m);
    if (!is_sound(m)) {
        return PTL_ARG_INVALID;
    }
    if (there == NULL && (m->kind == HPU_GET || m->kind == HPU_FETCH)) {
        return PTL_FAIL;
    }
    if (there == NULL) {
        host->lost++;
        return PTL_OK;
    }
    switch (m->kind) {
    case HPU_PUT:
        return nic_copy(there, data, m->length) == 0 ? PTL_OK : -EFAULT;
    case HPU_GET:
        return nic_copy(before, there, m->length) == 0 ? PTL_OK : -EFAULT;
    case HPU_FETCH:
        return apply(m, there, data, before);
    default:
        return apply(m, there, data, NULL);
    }
}

static void forget(struct hpu_env *env)
{
}

static ptl_ct_event_t *count_of(struct hpu_host *host, ptl_handle_ct_t ct)
{
    for (int i = 0; i < host->count_count; i++) {
        if (host->counts[i].ct == ct) {
            return &host->counts[i].value;
        }
    }
    if (ct == PTL_CT_NONE || ct == PTL_INVALID_HANDLE || host->count_count == HPU_HOST_COUNTS) {
        return NULL;
    }
    host->counts[host->count_count] = (struct hpu_host_count){.ct = ct};
    return &host->counts[host->count_count++].value;
}

static int count(struct hpu_env *env, enum hpu_count how, ptl_handle_ct_t ct, ptl_ct_event_t *value)
{
    ptl_ct_event_t *is = count_of(env->owner, ct);
    if (is == NULL) {
        return PTL_ARG_INVALID;
    }
    if (how == HPU_COUNT_GET) {
        *value = *is;
    } else if (how == HPU_COUNT_SET) {
        *is = *value;
    } else {
        is->success += value->success;
        is->failure += value->failure;
    }
    return PTL_OK;
}

static int header(struct hpu_env *env, ptl_header_t *header)
{
    *header = container_of(env, struct hpu_exec, env)->arg.header;
    return PTL_OK;
}

static void *state(struct hpu_env *env, size_t *length)
{
    const struct hpu_host *host = env->owner;
    *length = host->message.size;
    return host->message.size != 0 ? host->message.bytes : NULL;
}

static const struct hpu_ops ops = {.send = send,
                                   .forget = forget,
                                   .count = count,
                                   .operand_size = atomic_operand_size,
                                   .header = header,
                                   .state = state};

void hpu_host_serve(struct hpu_host *host, struct hpu_env *env, size_t max_payload)
{
    env->me_base = host->entry.bytes;
    env->me_length = host->entry.size;
    env->host_base = host->handler.bytes;
    env->host_length = host->handler.size;
    env->max_payload = max_payload;
    env->counters = host->counters;
    env->counter_count = PTL_SPIN_COUNTERS;
    env->outputs = &host->output;
    env->output_count = 1;
    env->ops = &ops;
    env->owner = host;
}
