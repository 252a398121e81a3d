/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs handlers on frames; see context.h. load.c has how their images are loaded. */
#include "raw/context.h"

#include "raw/load.h"
#include "raw/message.h"

#include <string.h>
#include <time.h>

static const struct hpu_shared *const hpu = &pinwheel_hpu_shared;

/* ---- What handlers ask ---- */

static int no_message(struct hpu_env *env, const struct hpu_message *m)
{
    return PTL_FAIL;
}

static void forget(struct hpu_env *env)
{
}

static int no_counter(struct hpu_env *env, enum hpu_count how, ptl_handle_ct_t ct,
                      ptl_ct_event_t *value)
{
    return PTL_ARG_INVALID;
}

static size_t no_operand(ptl_op_t op, ptl_datatype_t type)
{
    return 0;
}

static int header(struct hpu_env *env, ptl_header_t *h)
{
    const struct raw_context *c = env->owner;
    *h = c->message->header;
    if (c->exec->call != HPU_CALL_HEADER) {
        h->user_hdr = NULL; /* the first frame is gone */
    }
    return PTL_OK;
}

static void *message_state(struct hpu_env *env, size_t *length)
{
    struct raw_context *c = env->owner;
    c->message->state_used = true;
    *length = sizeof(c->message->state);
    return c->message->state;
}

static int frame_call(struct hpu_env *env, enum hpu_frame_call what, uint8_t **room, size_t length)
{
    struct raw_context *c = env->owner;
    bool has_frame = c->exec->call == HPU_CALL_PAYLOAD;
    switch (what) {
    case HPU_FRAME_REPLY:
        if (!has_frame) {
            return PTL_FAIL;
        }
        if (length < RAW_FRAME_LEAST || length > c->frame->length) {
            return PTL_ARG_INVALID;
        }
        c->fate = RAW_REPLY;
        c->reply = (uint32_t)length;
        return PTL_OK;
    case HPU_FRAME_PASS:
        if (!has_frame || !c->source->can_pass) {
            return PTL_FAIL;
        }
        c->fate = RAW_PASS;
        return PTL_OK;
    case HPU_FRAME_ROOM:
        if (length < RAW_FRAME_LEAST || length > c->source->frame_most) {
            return PTL_ARG_INVALID;
        }
        *room = c->source->ops->room(c->source, (uint32_t)length);
        return *room != NULL ? PTL_OK : PTL_NO_SPACE;
    case HPU_FRAME_SEND:
        if (c->source->ops->send(c->source, (uint32_t)length) != 0) {
            return PTL_NO_SPACE;
        }
        c->counts.sent++;
        return PTL_OK;
    }
    return PTL_FAIL;
}

const struct hpu_ops raw_context_ops = {
    .send = no_message,
    .forget = forget,
    .count = no_counter,
    .operand_size = no_operand,
    .header = header,
    .state = message_state,
    .frame = frame_call,
};

/* ---- Running ---- */

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Runs the call that was set up. A handler that yields is resumed at once, and ended if it has done
 * that for its whole budget. */
static int run(struct raw_context *c)
{
    struct hpu_exec *exec = c->exec;
    int64_t begun = 0, budget = c->options.budget_us * 1000;
    hpu->exec_take(exec); /* the pool has a context for each thread, and this is the one */
    int result = hpu->exec_run(exec);
    while (result == HPU_WAIT) {
        if (c->waits != NULL) {
            c->waits(c->waits_for);
        }
        int64_t now = cpu_ns();
        begun = begun != 0 ? begun : now;
        if (budget != 0 && now - begun > budget) {
            hpu->exec_cancel(exec);
            return TIMEOUT;
        }
        result = hpu->exec_run(exec);
    }
    hpu->exec_give(exec);
    return result;
}

/* Counts a frame whose handler has not succeeded. */
static void count_end(struct raw_context *c, int result)
{
    struct raw_counts *n = &c->counts;
    bool drop = result == DROP || result == DROP_PENDING;
    *(result == SEGV      ? &n->faults
      : result == TIMEOUT ? &n->timeouts
      : drop              ? &n->dropped
                          : &n->failed) += 1;
}

/* Runs the header handler, and says what is to become of the message; *result is its code. */
static enum raw_way run_header(struct raw_context *c, struct raw_message *m,
                               const struct raw_frame *f, int *result)
{
    m->header = (ptl_header_t){.type = PTL_REQUEST_FRAME,
                               .length = f->length,
                               .match_bits = m->key.set,
                               .offset = f->time,
                               .hdr_data = m->key.id[0],
                               .user_hdr = f->bytes,
                               .user_hdr_length = f->length};
    c->counts.messages++;
    if (!c->has[HPU_CALL_HEADER]) {
        return RAW_WAY_PROCESS;
    }
    hpu->exec_header(c->pool, c->exec, (ptl_header_handler_t)c->handler[HPU_CALL_HEADER],
                     &m->header);
    *result = run(c);
    switch (*result) {
    case PROCESS_DATA:
    case PROCESS_DATA_PENDING:
        return RAW_WAY_PROCESS;
    case PROCEED:
    case PROCEED_PENDING:
        return RAW_WAY_PASS;
    default:
        return RAW_WAY_DROP;
    }
}

static void run_payload(struct raw_context *c, struct raw_message *m, const struct raw_frame *f)
{
    const ptl_payload_t payload = {.length = f->length, .offset = m->bytes, .base = f->bytes};
    if (!c->has[HPU_CALL_PAYLOAD]) {
        c->counts.consumed++;
        return;
    }
    hpu->exec_payload(c->pool, c->exec, (ptl_payload_handler_t)c->handler[HPU_CALL_PAYLOAD],
                      &payload);
    int result = run(c);
    if (result != SUCCESS) {
        m->dropped += f->length;
        c->fate = RAW_DROP;
        count_end(c, result);
        return;
    }
    *(c->fate == RAW_REPLY  ? &c->counts.replied
      : c->fate == RAW_PASS ? &c->counts.passed
                            : &c->counts.consumed) += 1;
}

static void run_completion(struct raw_context *c, struct raw_message *m, bool aged)
{
    c->message = m;
    if (m->way == RAW_WAY_PROCESS && c->has[HPU_CALL_COMPLETION]) {
        hpu->exec_completion(c->pool, c->exec,
                             (ptl_completion_handler_t)c->handler[HPU_CALL_COMPLETION], m->dropped,
                             aged);
        (void)run(c);
    }
    *(aged ? &c->counts.aged : &c->counts.ended) += 1;
    raw_message_end(c, m);
}

void raw_context_host(struct raw_context *c, void *memory, size_t length,
                      void (*waits)(void *owner), void *owner)
{
    c->exec->env.host_base = memory;
    c->exec->env.host_length = length;
    c->waits = waits;
    c->waits_for = owner;
}

void raw_context_frame(struct raw_context *c, struct raw_source *source,
                       const struct raw_rules *rules, const struct raw_frame *f)
{
    bool begins;
    int result = DROP; /* why the frame is dropped, if its message is */
    const struct raw_set *set = &rules->set[(unsigned)f->verdict >> 1];
    struct raw_message *m = raw_message_find(c, set, f, &begins);
    c->counts.frames++;
    if (m == NULL) {
        /* messages that are too old by now make room */
        raw_context_age(c, source, f->time, false);
        m = raw_message_find(c, set, f, &begins);
    }
    if (m == NULL) {
        c->counts.no_room++;
        source->ops->done(source, f, RAW_DROP, 0);
        return;
    }
    c->source = source;
    c->frame = f;
    c->message = m;
    c->fate = RAW_DROP;
    if (begins) {
        m->way = run_header(c, m, f, &result);
    }
    if (m->way == RAW_WAY_PROCESS) {
        run_payload(c, m, f);
    } else if (m->way == RAW_WAY_PASS) {
        c->fate = RAW_PASS;
        c->counts.passed++;
    } else {
        m->dropped += f->length;
        count_end(c, result);
    }
    m->bytes += f->length;
    source->ops->done(source, f, c->fate, c->reply);
    if ((f->verdict & 1) != 0) {
        run_completion(c, m, false);
    }
}

void raw_context_age(struct raw_context *c, struct raw_source *source, uint64_t now, bool all)
{
    struct raw_message *m;
    c->source = source;
    while ((m = LIST_FIRST(struct raw_message, &c->ages, link)) != NULL &&
           (all || (now > m->last && now - m->last > c->options.age_ns))) {
        run_completion(c, m, true);
    }
}
