/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ecalls of device code: a table made from rv32/runtime/calls.h, with a row for each call, and
 * one function that serves all calls by it.
 *
 *   a0...a7, stack ──► words ──► arguments ──pointers checked──► PtlHandler...() ──► a0, a1
 *
 * The functions are those of native handlers. Their arguments are numbers and addresses of this
 * process, in integer registers and on the stack. So all can be called by one type with as many
 * arguments as the longest has: a function with fewer ignores the others (System V ABI, x86-64).
 */
#include "hpu/calls.h"
#include "hpu/device.h"
#include "hpu/output.h"
#include "hpu/rv32/runtime/calls.h"
#include "hpu/sched.h"

#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS = DEVICE_ARGUMENTS, RA = 1, SP = 2, T0 = 5, A0 = 10, REGISTERS = 8 };

enum kind {
    ARGUMENT_END,
    ARGUMENT_BYTE,
    ARGUMENT_WORD,
    ARGUMENT_DOUBLE,
    ARGUMENT_PAIR,
    ARGUMENT_OPAQUE,
    ARGUMENT_READS,
    ARGUMENT_WRITES,
    ARGUMENT_CHANGES,
    ARGUMENT_FILLS,
    ARGUMENT_TAKES,
    ARGUMENT_OPERAND,
    ARGUMENT_TEXT,
    ARGUMENT_STRUCT_16
};

enum result { RESULT_NONE, RESULT_FLAG, RESULT_WORD, RESULT_DOUBLE };

struct call {
    const char *name;
    void (*function)(void);
    enum rv32_call_cost cost;
    enum result result;
    /* kind of each argument; in the upper bits the number of the argument that has its length, or
     * its bytes */
    uint16_t argument[ARGUMENTS];
};

#define KIND 0xff
#define WITH(n) ((n) << 8)

#define BYTE ARGUMENT_BYTE
#define WORD ARGUMENT_WORD
#define DOUBLE ARGUMENT_DOUBLE
#define PAIR ARGUMENT_PAIR
#define OPAQUE ARGUMENT_OPAQUE
#define READS(i) (ARGUMENT_READS | WITH(i))
#define WRITES(i) (ARGUMENT_WRITES | WITH(i))
#define CHANGES(n) (ARGUMENT_CHANGES | WITH(n))
#define FILLS(n) (ARGUMENT_FILLS | WITH(n))
#define TAKES(n) (ARGUMENT_TAKES | WITH(n))
#define OPERAND(i) (ARGUMENT_OPERAND | WITH(i))
#define TEXT ARGUMENT_TEXT
#define STRUCT_16 ARGUMENT_STRUCT_16

/* ---- User pointers that do not fit 32 bits ---- */

/* A value below this is its own pointer; from here on a pointer is an index. */
#define USER_BASE 0xfffff000u

/* Device code's PtlHandlerUserPtr(): makes a pointer of 32 bits stand for a value of 64. */
static uint64_t user_pointer(uint64_t value)
{
    struct hpu_exec *exec = hpu_exec_current();
    struct hpu_core *c = exec->core;
    if (value < USER_BASE) {
        return value;
    }
    if (c->users == DEVICE_USERS) {
        hpu_device_end(exec, FAIL, "too many pointers in one call");
    }
    c->user[c->users] = value;
    return USER_BASE + c->users++;
}

static uint64_t user_value(const struct hpu_core *c, uint32_t pointer)
{
    uint32_t i = pointer - USER_BASE;
    return i < c->users ? c->user[i] : pointer;
}

/* ---- Words ---- */

/* The argument words of a call, read one after the other: from registers, then from the stack. */
struct words {
    struct rv32_core *core;
    unsigned next;
    bool missing; /* the stack ends before the words do */
};

static uint32_t next_word(struct words *w)
{
    unsigned i = w->next++;
    uint32_t value = 0;
    if (i < REGISTERS) {
        return w->core->x[A0 + i];
    }
    const void *at =
        rv32_core_reach(w->core, w->core->x[SP] + (i - REGISTERS) * 4, sizeof(value), RV32_READ);
    if (at == NULL) {
        w->missing = true;
        return 0;
    }
    memcpy(&value, at, sizeof(value));
    return value;
}

/* Reads an argument of two words. An aligned one begins at an even word on the stack; in registers
 * it takes the next two. */
static uint64_t next_double(struct words *w, bool aligned)
{
    if (aligned && w->next > REGISTERS) {
        w->next += w->next % 2;
    }
    uint64_t low = next_word(w);
    return low | (uint64_t)next_word(w) << 32;
}

/* ---- Text ---- */

/* The arguments of PtlHandlerPrintf() as the ilp32 ABI passes them: one of 64 bits begins at an
 * even word. */
struct device_text {
    struct hpu_text text;
    struct words words;
    uint64_t wrong; /* the address at which there is no memory */
};

static int text_byte(struct hpu_text *t, uint64_t address, char *c)
{
    struct device_text *w = container_of(t, struct device_text, text);
    const char *at = address <= UINT32_MAX
                         ? rv32_core_reach(w->words.core, (uint32_t)address, 1, RV32_READ)
                         : NULL;
    if (at == NULL) {
        w->wrong = address;
        return -EFAULT;
    }
    *c = *at;
    return 0;
}

static int text_argument(struct hpu_text *t, enum hpu_text_kind kind, uint64_t *value)
{
    struct words *w = &container_of(t, struct device_text, text)->words;
    switch (kind) {
    case HPU_TEXT_LONG_LONG:
    case HPU_TEXT_DOUBLE:
        w->next += w->next % 2;
        *value = next_word(w);
        *value |= (uint64_t)next_word(w) << 32;
        break;
    case HPU_TEXT_INT:
    case HPU_TEXT_LONG:
        *value = (uint64_t)(int32_t)next_word(w);
        break;
    default:
        *value = next_word(w);
    }
    return w->missing ? -EFAULT : 0;
}

/* Device code's PtlHandlerPrintf(). It is charged by the byte, as PsPIN's output takes bytes one by
 * one. */
static int print_text(uint64_t format)
{
    struct hpu_exec *exec = hpu_exec_current();
    struct rv32_core *core = &exec->core->rv32;
    struct device_text t = {.text = {text_byte, text_argument}, .words = {.core = core, .next = 1}};
    size_t length;
    int rc = call_print(exec, &t.text, format, &length);
    if (rc == -EFAULT) {
        char why[96];
        snprintf(why, sizeof(why),
                 t.words.missing ? "its arguments are not on the stack"
                                 : "its text at 0x%08x is not in its memory",
                 (uint32_t)t.wrong);
        hpu_device_end(exec, SEGV, why);
    }
    if (rc == PTL_OK) {
        rv32_core_charge(core, (uint32_t)length *
                                   rv32_cost_call(core->program->timing, RV32_COST_PRINT, 0));
    }
    return rc;
}

/* ---- The table ---- */

#define PtlHandlerDMATest hpu_device_test
#define PtlHandlerDMAWait hpu_device_wait
#define PtlHandlerUserPtr user_pointer
#define PtlHandlerPrintf print_text
#define PtlHandlerHeader hpu_device_header
#define PtlHandlerMessageState hpu_device_message_state
#define pinwheel_load_8 hpu_device_load_8
#define pinwheel_exchange_8 hpu_device_exchange_8
#define pinwheel_cas_1 hpu_device_cas_1
#define pinwheel_cas_2 hpu_device_cas_2
#define pinwheel_cas_8 hpu_device_cas_8
#define RV32_CALL(number, name, cost, result, ...)                                                 \
    [number] = {#name, (void (*)(void))name, RV32_COST_##cost, RESULT_##result, {__VA_ARGS__}},

static const struct call calls[] = {RV32_CALLS};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

const uint32_t hpu_device_last_call = CALLS - 1;

/* ---- Arguments ---- */

static void read_arguments(const struct hpu_core *c, const struct call *call, struct words *w,
                           uint64_t *value)
{
    for (int i = 0; i < ARGUMENTS && call->argument[i] != ARGUMENT_END; i++) {
        switch (call->argument[i] & KIND) {
        case ARGUMENT_BYTE:
            value[i] = (uint8_t)next_word(w);
            break;
        case ARGUMENT_DOUBLE:
            value[i] = next_double(w, true);
            break;
        case ARGUMENT_PAIR:
            value[i] = next_double(w, false);
            break;
        case ARGUMENT_OPAQUE:
            value[i] = user_value(c, next_word(w));
            break;
        default:
            value[i] = next_word(w);
        }
    }
}

/* ---- Pointers ---- */

/* Replaces an address of the device code by that in this process; false: the device code has no
 * such memory. */
static bool follow(struct rv32_core *core, uint64_t *value, uint64_t bytes, unsigned access)
{
    if (bytes == 0) {
        return true; /* no byte is accessed */
    }
    core->result.end = (access & RV32_WRITE) != 0 ? RV32_FAULT_STORE : RV32_FAULT_LOAD;
    core->result.address = (uint32_t)*value;
    core->result.bytes = bytes <= UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    void *at = bytes <= UINT32_MAX
                   ? rv32_core_reach(core, (uint32_t)*value, (uint32_t)bytes, access)
                   : NULL;
    *value = (uintptr_t)at;
    return at != NULL;
}

/* The bytes that a handler call moves, by which it is charged. */
struct moved {
    uint64_t bytes;
    uint32_t operand;
};

/* Translates the pointers among a call's arguments to host addresses. Returns the number of the
 * argument that is wrong, from 1, or 0. */
static int follow_pointers(const struct hpu_exec *exec, const struct call *call, uint64_t *value,
                           struct moved *moved)
{
    struct rv32_core *core = &exec->core->rv32;
    for (int i = 0; i < ARGUMENTS && call->argument[i] != ARGUMENT_END; i++) {
        unsigned with = call->argument[i] >> 8;
        bool ok = true;
        switch (call->argument[i] & KIND) {
        case ARGUMENT_READS:
            moved->bytes = value[with];
            ok = follow(core, &value[i], moved->bytes, RV32_READ);
            break;
        case ARGUMENT_WRITES:
            moved->bytes = value[with];
            ok = follow(core, &value[i], moved->bytes, RV32_WRITE);
            break;
        case ARGUMENT_CHANGES:
            ok = follow(core, &value[i], with, RV32_READ | RV32_WRITE);
            break;
        case ARGUMENT_TAKES:
            ok = follow(core, &value[i], with, RV32_READ);
            break;
        case ARGUMENT_FILLS:
            ok = value[i] == 0 || follow(core, &value[i], with, RV32_WRITE);
            break;
        case ARGUMENT_OPERAND:
            moved->operand = (uint32_t)exec->env.ops->operand_size((ptl_op_t)value[with],
                                                                   (ptl_datatype_t)value[with + 1]);
            ok = follow(core, &value[i], moved->operand, RV32_READ);
            break;
        case ARGUMENT_STRUCT_16:
            ok = follow(core, &value[i], 16, RV32_READ);
            break;
        default:
            break;
        }
        if (!ok) {
            return i + 1;
        }
    }
    return 0;
}

/* ---- Cycles ---- */

/* Charges the core for a handler call. One that prints is charged later, when the length of its
 * text is known. A swap also pays for its operand, which the handler writes word by word. */
static void charge(struct hpu_core *c, enum rv32_call_cost cost, const struct moved *moved)
{
    struct rv32_core *core = &c->rv32;
    const struct rv32_timing *t = core->program->timing;
    if (cost == RV32_COST_PRINT) {
        return;
    }
    rv32_core_charge(core, rv32_cost_call(t, cost, moved->bytes) +
                               (moved->operand + 3) / 4 * t->class[RV32_CLASS_STORE]);
}

/* ---- The observer ---- */

/* Returns the cycle at which the ecall began: the core has already charged the instructions behind
 * it, up to a jump (program.h). */
static uint64_t begun(const struct rv32_core *core)
{
    const struct rv32_program *p = core->program;
    uint32_t next = core->result.pc + 4 - p->base;
    return hpu_device_now(core) - (next < p->size ? (uint64_t)p->rest[p->at[next / 2]].cycles : 0);
}

static void describe(const struct rv32_core *core, const struct call *call, const uint64_t *value,
                     struct hpu_device_call *made)
{
    *made = (struct hpu_device_call){.name = call->name,
                                     .cycle = begun(core),
                                     .pc = core->x[RA] - 2,
                                     .gives = call->result != RESULT_NONE};
    for (int i = 0; i < ARGUMENTS && call->argument[i] != ARGUMENT_END; i++) {
        unsigned kind = call->argument[i] & KIND;
        made->argument[made->count] = value[i];
        made->kind[made->count++] = kind == ARGUMENT_PAIR ? HPU_DEVICE_PROCESS
                                    : kind <= ARGUMENT_DOUBLE || kind == ARGUMENT_OPAQUE
                                        ? HPU_DEVICE_NUMBER
                                        : HPU_DEVICE_POINTER;
    }
}

/* ---- Calling ---- */

typedef uint64_t any_call(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* Calls the function. A struct of 16 bytes takes two places, as x86-64 passes it in two
 * registers. */
static uint64_t make_call(const struct call *call, const uint64_t *value)
{
    any_call *f = (any_call *)call->function;
    uint64_t v[ARGUMENTS + 1] = {0};
    for (int i = 0, n = 0; i < ARGUMENTS && n < ARGUMENTS && call->argument[i] != ARGUMENT_END;
         i++, n++) {
        if (call->argument[i] == ARGUMENT_STRUCT_16) {
            /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): follow_pointers() saw it */
            memcpy(&v[n++], (const void *)(uintptr_t)value[i], 16);
        } else {
            v[n] = value[i];
        }
    }
    return f(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
}

static void give_result(struct rv32_core *core, enum result kind, uint64_t value)
{
    if (kind == RESULT_NONE) {
        return;
    }
    core->x[A0] = kind == RESULT_FLAG ? (uint8_t)value : (uint32_t)value;
    if (kind == RESULT_DOUBLE) {
        core->x[A0 + 1] = (uint32_t)(value >> 32);
    }
}

static int refuse(const struct hpu_exec *exec, const char *why)
{
    hpu_device_ended(exec, SEGV, why);
    return SEGV;
}

static int serve(struct hpu_exec *exec, const struct call *call)
{
    struct hpu_core *c = exec->core;
    struct rv32_core *core = &c->rv32;
    const struct hpu_device_observer *observer = c->code->device->observer;
    struct words w = {.core = core};
    uint64_t value[ARGUMENTS] = {0}, asked[ARGUMENTS];
    struct hpu_device_call made;
    struct moved moved = {0};
    if (hpu_exec_ending(exec)) {
        hpu_device_ended(exec, TIMEOUT, hpu_device_closed);
        return TIMEOUT;
    }
    read_arguments(c, call, &w, value);
    if (w.missing) {
        return refuse(exec, "its arguments are not on the stack");
    }
    memcpy(asked, value, sizeof(asked));
    if (observer != NULL) {
        describe(core, call, asked, &made);
        observer->called(observer->context, &made);
    }
    int wrong = follow_pointers(exec, call, value, &moved);
    if (wrong != 0) {
        char why[256], place[RV32_PLACE];
        core->result.sp = core->x[SP];
        rv32_result_near(core);
        rv32_result_place(&core->result, place);
        snprintf(why, sizeof(why), "argument %d, 0x%08x, is no pointer into its memory: %u bytes%s",
                 wrong, (uint32_t)asked[wrong - 1], core->result.bytes, place);
        return refuse(exec, why);
    }
    uint64_t before = hpu_device_now(core);
    if (c->code->device->timed) {
        charge(c, hpu_device_issue(call->cost), &moved);
        hpu_sched_point(exec);
    } else {
        charge(c, call->cost, &moved);
    }
    uint64_t result = make_call(call, value);
    hpu_device_begun(c, call->cost, (uint32_t)result, moved.bytes);
    give_result(core, call->result, result);
    if (observer != NULL) {
        made.cycles = hpu_device_now(core) - before;
        made.result = core->x[A0];
        observer->returned(observer->context, &made);
    }
    return 0;
}

_Noreturn void hpu_device_end(struct hpu_exec *exec, int result, const char *why)
{
    hpu_device_ended(exec, result, why);
    exec->core->ended = result;
    __builtin_longjmp(exec->core->end, 1);
}

int hpu_device_serve(struct rv32_core *core, void *context)
{
    struct hpu_exec *exec = context;
    struct hpu_core *c = exec->core;
    uint32_t number = core->x[T0];
    const struct call *call = number < CALLS ? &calls[number] : &calls[0];
    c->call = call->name;
    if (call->name == NULL) {
        char why[96];
        snprintf(why, sizeof(why), "there is no handler call %u", number);
        return refuse(exec, why);
    }
    return __builtin_setjmp(c->end) == 0 ? serve(exec, call) : c->ended;
}
