/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call of device code (device.h). A core is set up for an image once; between two calls only
 * three regions change, those that belong to a call, so that it costs little to begin one.
 *
 * A core gets its budget in slices. Between two of them, and in each handler call, it learns that
 * its NI is being closed (hpu_exec_end()).
 */
#include "hpu/device.h"

#include "base/branch.h"
#include "base/log.h"
#include "hpu/device_profile.h"
#include "hpu/refuse.h"
#include "hpu/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_BASE = 0x10001000,
    USER_BASE = 0x10002000,
    PACKET_BASE = 0x10004400,
    LARGE_STATE_BASE = 0x30000000, /* for HPU memory that is too large for L1 */
    STACK_BASE = 0x1b000000,       /* an address that PsPIN maps to L1, too */
    /* in cycles: the interpreter takes less than a millisecond for them */
    SLICE = 1 << 16,
    GRAIN = 64, /* in cycles: how often HPUs see each other's stores in virtual time */
    FRAME = 96, /* bytes for the arguments of a handler */
};

/* Arguments of handlers as RV32 lays them out; runtime/bytes.c asserts the same. */
struct device_header {
    uint32_t type, gap;
    uint64_t length;
    ptl_process_t target_id, source_id;
    uint64_t match_bits, offset, hdr_data;
    uint32_t user_hdr, gap2;
    uint64_t user_hdr_length;
};

struct device_payload {
    uint64_t length, offset;
    uint32_t base, gap;
};

_Static_assert(sizeof(struct device_header) == 72 && sizeof(struct device_header) <= FRAME,
               "runtime/bytes.c");
_Static_assert(sizeof(struct device_payload) == 24, "runtime/bytes.c");

const char hpu_device_closed[] = "its interface is closed";

/* ---- Cores ---- */

/* Gives the core the next slice; false: nothing is left of the budget. */
static bool deal(struct hpu_core *c)
{
    int64_t all = c->rv32.left + c->kept;
    int64_t more = (all < c->slice ? all : c->slice) - c->rv32.left;
    c->kept -= more;
    c->rv32.budget += more;
    c->rv32.left += more;
    return more > 0;
}

static bool late(struct rv32_core *core, void *context)
{
    (void)core;
    struct hpu_exec *exec = context;
    if (exec->core->code->device->timed) {
        hpu_sched_point(exec);
    }
    return !hpu_exec_ending(exec) && deal(exec->core);
}

static void before_atomic(struct rv32_core *core, void *context)
{
    (void)core;
    hpu_sched_point(context);
}

static int set_up(struct hpu_core *c, const struct hpu_image *image, struct rv32_error *error)
{
    struct rv32_core *core = &c->rv32;
    unsigned both = RV32_READ | RV32_WRITE;
    uint32_t stack = c->code->device->stack_size;
    rv32_core_init(core, &image->program);
    c->image = NULL;
    if (rv32_core_map_image(core, &image->image, error) != 0 ||
        rv32_core_map(core, "stack", STACK_BASE, stack, c->stack_bytes, both, RV32_AREA_L1,
                      error) != 0) {
        return -1;
    }
    c->stack = core->region_count;
    if (rv32_core_map(core, "packet", PACKET_BASE, 0, NULL, both, RV32_AREA_L1, error) != 0) {
        return -1;
    }
    c->packet = core->region_count;
    if (rv32_core_map(core, "state", DEVICE_STATE_BASE, 0, NULL, both, RV32_AREA_L1, error) != 0) {
        return -1;
    }
    c->state = core->region_count;
    if (rv32_core_map(core, "message state", MESSAGE_BASE, 0, NULL, both, RV32_AREA_L1, error) !=
        0) {
        return -1;
    }
    c->message = core->region_count;
    if (rv32_core_map(core, "user header", USER_BASE, 0, NULL, RV32_READ, RV32_AREA_L1, error) !=
        0) {
        return -1;
    }
    c->kept_header = core->region_count;
    c->lent = false;
    /* faults are reported at their exact instruction, as the processor does for native handlers */
    core->exact = true;
    core->ecall = hpu_device_serve;
    core->late = late;
    core->point = c->code->device->timed ? before_atomic : NULL;
    c->image = image;
    return 0;
}

static struct hpu_core *new_core(const struct hpu_device *t)
{
    size_t size = (sizeof(struct hpu_core) + t->stack_size + 63) & ~(size_t)63;
    struct hpu_core *c = aligned_alloc(64, size);
    if (c != NULL) {
        c->image = NULL;
        memset(c->stack_bytes, 0, t->stack_size);
    }
    return c;
}

/* Puts a core with the image of `code` into the slot, and returns it. If it cannot, it logs why and
 * returns NULL. */
static __attribute__((noinline)) struct hpu_core *fill_slot(struct hpu_core **slot,
                                                            const struct hpu_device_code *code)
{
    if (*slot == NULL) {
        *slot = new_core(code->device);
    }
    if (*slot == NULL) {
        log_line(LOG_ERROR, "handler %s cannot be run: no memory for a core", code->name);
        return NULL;
    }
    struct rv32_error error = {""};
    (*slot)->code = code;
    if (set_up(*slot, code->image, &error) != 0) {
        log_line(LOG_ERROR, "handler %s cannot be run: %s", code->name, error.text);
        return NULL;
    }
    return *slot;
}

/* Returns the core of the context's slot, with the image of `code` loaded; NULL if fill_slot() has
 * none. */
static struct hpu_core *core_for(struct hpu_exec *exec, const struct hpu_device_code *code)
{
    struct hpu_core **slot = &code->device->cores[hpu_ctx_slot(exec->ctx)];
    struct hpu_core *c = *slot;
    if (unlikely(c == NULL || c->image != code->image)) {
        return fill_slot(slot, code);
    }
    c->code = code;
    return c;
}

/* ---- The arguments of a call ---- */

/* Maps the HPU memory of the call, and returns its address for device code. */
static uint32_t move_state(struct hpu_core *c, const struct hpu_env *env)
{
    bool large = env->state_length > DEVICE_STATE_MAX;
    uint32_t base = large ? LARGE_STATE_BASE : DEVICE_STATE_BASE;
    rv32_core_move(&c->rv32, c->state, base, (uint32_t)env->state_length, env->state,
                   RV32_READ | RV32_WRITE, large ? RV32_AREA_HANDLER : RV32_AREA_L1);
    return base;
}

static uint32_t user_header(struct hpu_core *c, const ptl_header_t *h)
{
    uint32_t size = h->user_hdr != NULL ? (uint32_t)h->user_hdr_length : 0;
    uint8_t *bytes = (uint8_t *)(uintptr_t)h->user_hdr;
    if ((uintptr_t)bytes % 4 != 0 && size <= DEVICE_USER_HEADER_MAX) {
        bytes = memcpy(c->user_header, bytes, size);
    }
    rv32_core_move(&c->rv32, c->packet, PACKET_BASE, size, bytes, RV32_READ, RV32_AREA_L1);
    return size != 0 ? PACKET_BASE : 0;
}

/* Puts an argument of more than 8 bytes into the frame on the stack; a0 points to it. */
static void *frame(struct hpu_core *c, struct rv32_call *call)
{
    uint32_t at = c->code->device->stack_size - FRAME;
    call->stack = STACK_BASE + at;
    call->arguments[0] = STACK_BASE + at;
    return c->stack_bytes + at;
}

static struct device_header lay_out(const ptl_header_t *h, uint32_t user_hdr)
{
    return (struct device_header){.type = h->type,
                                  .length = h->length,
                                  .target_id = h->target_id,
                                  .source_id = h->source_id,
                                  .match_bits = h->match_bits,
                                  .offset = h->offset,
                                  .hdr_data = h->hdr_data,
                                  .user_hdr = user_hdr,
                                  .user_hdr_length = h->user_hdr_length};
}

static void set_arguments(struct hpu_core *c, const struct hpu_exec *exec, struct rv32_call *call)
{
    if (exec->call == HPU_CALL_HEADER) {
        const ptl_header_t *h = &exec->arg.header;
        *(struct device_header *)frame(c, call) = lay_out(h, user_header(c, h));
        call->arguments[1] = move_state(c, &exec->env);
    } else if (exec->call == HPU_CALL_PAYLOAD) {
        const ptl_payload_t *p = &exec->arg.payload;
        rv32_core_move(&c->rv32, c->packet, PACKET_BASE, (uint32_t)p->length, p->base,
                       RV32_READ | RV32_WRITE, RV32_AREA_L1);
        *(struct device_payload *)frame(c, call) =
            (struct device_payload){p->length, p->offset, PACKET_BASE, 0};
        call->arguments[1] = move_state(c, &exec->env);
    } else {
        call->arguments[0] = (uint32_t)exec->arg.completion.dropped;
        call->arguments[1] = (uint32_t)(exec->arg.completion.dropped >> 32);
        call->arguments[2] = exec->arg.completion.flow_control;
        rv32_core_move(&c->rv32, c->packet, PACKET_BASE, 0, NULL, RV32_READ, RV32_AREA_L1);
        call->arguments[3] = move_state(c, &exec->env);
        call->stack = STACK_BASE + c->code->device->stack_size;
    }
}

/* ---- Regions that a call gets when it asks ---- */

uint64_t hpu_device_header(uint64_t header)
{
    struct hpu_exec *exec = hpu_exec_current();
    struct hpu_core *c = exec->core;
    ptl_header_t h;
    int rc = exec->env.ops->header(&exec->env, &h);
    if (rc != PTL_OK) {
        return (uint64_t)rc;
    }
    uint32_t at = h.user_hdr == NULL || h.user_hdr_length == 0 ? 0 : PACKET_BASE;
    if (at != 0 && exec->call != HPU_CALL_HEADER) {
        rv32_core_move(&c->rv32, c->kept_header, USER_BASE, (uint32_t)h.user_hdr_length,
                       (void *)(uintptr_t)h.user_hdr, RV32_READ, RV32_AREA_L1);
        c->lent = true;
        at = USER_BASE;
    }
    *(struct device_header *)(uintptr_t)header = lay_out(&h, at);
    return PTL_OK;
}

uint64_t hpu_device_message_state(void)
{
    struct hpu_exec *exec = hpu_exec_current();
    struct hpu_core *c = exec->core;
    size_t length;
    void *state = exec->env.ops->state(&exec->env, &length);
    if (state == NULL) {
        return 0;
    }
    rv32_core_move(&c->rv32, c->message, MESSAGE_BASE, (uint32_t)length, state,
                   RV32_READ | RV32_WRITE, RV32_AREA_L1);
    c->lent = true;
    return MESSAGE_BASE;
}

/* Unmaps the regions that the call before this one got: they are another message's. */
static __attribute__((noinline)) void take_back(struct hpu_core *c)
{
    rv32_core_move(&c->rv32, c->message, MESSAGE_BASE, 0, NULL, RV32_READ | RV32_WRITE,
                   RV32_AREA_L1);
    rv32_core_move(&c->rv32, c->kept_header, USER_BASE, 0, NULL, RV32_READ, RV32_AREA_L1);
    c->lent = false;
}

/* ---- Running ---- */

/* Logs the end of device code, or tells the observer. Two lines count as the same if they have the
 * same place, or if both are TIMEOUT, since a handler whose time is over may be anywhere. */
static void tell(const struct hpu_exec *exec, int result, const char *text)
{
    const struct hpu_device *t = exec->core->code->device;
    if (t->observer != NULL) {
        t->observer->ended(t->observer->context, result, text);
        return;
    }
    const char *label = t->timing->label;
    const struct rv32_core *core = &exec->core->rv32;
    /* A stub has many callers, so the return address counts, too; and images lie at the same
     * addresses. */
    uint64_t place = ((uint64_t)core->x[1] << 32 | core->result.pc) ^ (uintptr_t)exec->core->image;
    hpu_tell(exec, result == TIMEOUT ? TIMEOUT : place, "ended with %s: %s%s%s%s%s%s",
             result == SEGV      ? "SEGV"
             : result == TIMEOUT ? "TIMEOUT"
                                 : "FAIL",
             text, label != NULL ? " (cycles of " : "", label != NULL ? t->timing->name : "",
             label != NULL ? ": " : "", label != NULL ? label : "", label != NULL ? ")" : "");
}

/* Gives up the context of a handler that has not returned, as a fault does with native ones. */
static _Noreturn void end_run(struct hpu_exec *exec, const struct rv32_result *r)
{
    const struct hpu_image *image = exec->core->image;
    exec->result = r->end == RV32_STOPPED   ? (int)r->value /* device_calls.c has logged why */
                   : r->end == RV32_TIMEOUT ? TIMEOUT
                                            : SEGV;
    if (r->end == RV32_TIMEOUT && hpu_exec_ending(exec)) {
        tell(exec, exec->result, hpu_device_closed);
    } else if (r->end != RV32_STOPPED) {
        struct rv32_error text = {""};
        rv32_result_text(r, &image->image, &image->lines, &text);
        /* behind the word that tell() puts there anyway */
        const char *what = strstr(text.text, ": ");
        tell(exec, exec->result, what != NULL ? what + 2 : text.text);
    }
    hpu_ctx_abandon(exec->ctx);
}

int hpu_device_run(struct hpu_exec *exec, const struct hpu_device_code *code)
{
    struct hpu_core *c = core_for(exec, code);
    if (c == NULL) {
        return FAIL;
    }
    if (unlikely(c->lent)) {
        take_back(c);
    }
    const struct hpu_device_observer *observer = code->device->observer;
    int64_t budget = code->device->budget;
    /* an observer has the whole call in one slice */
    c->slice = observer != NULL ? INT64_MAX : code->device->timed ? GRAIN : SLICE;
    struct rv32_call call = {.pc = code->pc, .budget = budget < c->slice ? budget : c->slice};
    c->kept = budget - call.budget;
    set_arguments(c, exec, &call);
    exec->core = c;
    c->call = NULL;
    c->rearmed = 0;
    c->users = 0;
    c->rv32.ecall_context = exec;
    const struct rv32_result *r =
        observer != NULL             ? observer->run(observer->context, &c->rv32, &call)
        : code->device->rows != NULL ? hpu_device_profile(code, &c->rv32, &call)
                                     : rv32_core_call(&c->rv32, &call);
    exec->core_cycles += r->cycles;
    if (r->end != RV32_RETURNED) {
        end_run(exec, r);
    }
    exec->core = NULL;
    return (int)r->value;
}

/* Whether the handler call in progress was made by its stub, which has the same name. */
static bool in_stub(const struct hpu_core *c)
{
    const struct rv32_symbol *s = rv32_image_function(&c->image->image, c->rv32.result.pc);
    return s != NULL && c->call != NULL && strcmp(s->name, c->call) == 0;
}

/* Writes "function, file.c:12", or less if less is known. */
static void describe_place(const struct hpu_image *image, uint32_t pc, char *text, size_t size)
{
    const struct rv32_symbol *s = rv32_image_function(&image->image, pc);
    const struct rv32_line *l = rv32_lines_at(&image->lines, pc);
    int n = snprintf(text, size, "%.60s", s != NULL ? s->name : "?");
    if (l != NULL) {
        snprintf(text + n, size - (size_t)n, ", %.100s:%d", l->file, l->line);
    }
}

/* The stub has no source line: so the place of the call in its caller is logged. */
void hpu_device_ended(const struct hpu_exec *exec, int result, const char *why)
{
    enum { RA = 1 };
    char text[800], source[180] = "", caller[256] = "";
    struct hpu_core *c = exec->core;
    uint32_t pc = in_stub(c) ? c->rv32.x[RA] - 2 : c->rv32.result.pc;
    uint32_t call = rv32_result_run_time_caller(&c->rv32, &c->image->image, pc);
    describe_place(c->image, pc, source, sizeof(source));
    if (call != 0) {
        int n = snprintf(caller, sizeof(caller), ", called from 0x%08x in ", call);
        describe_place(c->image, call, caller + n, sizeof(caller) - (size_t)n);
    }
    snprintf(text, sizeof(text), "in %s%s%.300s; pc 0x%08x in %s%s",
             c->call != NULL ? c->call : "ecall", why != NULL ? ": " : "", why != NULL ? why : "",
             pc, source, caller);
    tell(exec, result, text);
}

void hpu_device_resumed(struct hpu_exec *exec)
{
    struct hpu_core *c = exec->core;
    if (c != NULL) {
        int64_t used = c->rv32.budget - c->rv32.left - c->rearmed;
        c->rearmed += used;
        c->kept += used;
        deal(c);
    }
}
