/* SPDX-License-Identifier: BSD-3-Clause */
/* The log line of a handler that was ended (refuse.h). */
#include "hpu/refuse.h"

#include "base/log.h"
#include "base/nic_copy.h"
#include "base/sys.h"
#include "hpu/device.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The `cause` of hpu_tell() where that is not a place in the code: TIMEOUT, or RETURNED plus the
 * return code. */
#define RETURNED (UINT64_C(1) << 63)

/* Writes "function+0x12 (libx.so+0x1234)". The second part is what addr2line takes, and all that is
 * known of static functions. */
static void describe_code(uintptr_t address, char *text, size_t size)
{
    Dl_info info = {0};
    if (dladdr((const void *)address, &info) == 0 || info.dli_fname == NULL) {
        snprintf(text, size, "no code");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *object = slash != NULL ? slash + 1 : info.dli_fname;
    uintptr_t offset = address - (uintptr_t)info.dli_fbase;
    if (info.dli_sname != NULL) {
        snprintf(text, size, "%.60s+0x%" PRIxPTR " (%.60s+0x%" PRIxPTR ")", info.dli_sname,
                 address - (uintptr_t)info.dli_saddr, object, offset);
    } else {
        snprintf(text, size, "%.60s+0x%" PRIxPTR, object, offset);
    }
}

static void (*code_of(const struct hpu_exec *exec))(void)
{
    return exec->call == HPU_CALL_HEADER    ? (void (*)(void))exec->handler.header
           : exec->call == HPU_CALL_PAYLOAD ? (void (*)(void))exec->handler.payload
                                            : (void (*)(void))exec->handler.completion;
}

/* Writes the name of the handler, as it was registered, and where its code is. */
static void describe_handler(const struct hpu_exec *exec, char *text, size_t size)
{
    char code[160];
    if (exec->env.code != NULL) {
        snprintf(text, size, "%.80s on RV32", exec->env.code[exec->call].name);
        return;
    }
    const struct ptl_handler_entry *entry = hpu_registered(code_of(exec));
    describe_code((uintptr_t)code_of(exec), code, sizeof(code));
    if (entry == NULL) {
        snprintf(text, size, "%s", code);
    } else {
        /* behind the name of the function, which is the handler's */
        char *object = strchr(code, '(');
        snprintf(text, size, object != NULL ? "%.80s %s" : "%.80s (%s)", entry->name,
                 object != NULL ? object : code);
    }
}

void hpu_tell(const struct hpu_exec *exec, uint64_t cause, const char *format, ...)
{
    char handler[256], text[800], note[LOG_NOTE];
    /* log_again() knows equal lines by their key. The odd factor keeps the keys of two handlers
     * apart. */
    uint64_t key = (uintptr_t)code_of(exec) * UINT64_C(0x9e3779b97f4a7c15) + cause;
    if (!log_again(key, clock_ns(), note)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    describe_handler(exec, handler, sizeof(handler));
    log_line(LOG_WARN, "handler %s %s%s", handler, text, note);
}

void call_refuse_from(struct hpu_exec *exec, const char *name, const void *caller, int result,
                      const char *format, ...)
{
    char why[224], where[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    if (exec->core != NULL) {
        hpu_device_end(exec, result, why);
    }
    describe_code((uintptr_t)caller - 1, where, sizeof(where));
    hpu_tell(exec, (uintptr_t)caller, "ended with %s: in %s: %s; called from %s",
             result == SEGV ? "SEGV" : "FAIL", name, why, where);
    exec->result = result;
    hpu_ctx_abandon(exec->ctx);
}

void call_refuse_place_from(struct hpu_exec *exec, const char *name, const void *caller,
                            ptl_size_t offset, ptl_size_t length, unsigned options)
{
    const struct hpu_env *env = &exec->env;
    bool me = options == PTL_ME_HOST_MEM;
    if (!me && options != PTL_HANDLER_HOST_MEM) {
        call_refuse_from(exec, name, caller, SEGV,
                         "options 0x%x is neither PTL_ME_HOST_MEM nor PTL_HANDLER_HOST_MEM",
                         options);
    }
    call_refuse_from(exec, name, caller, SEGV,
                     "offset %" PRIu64 ", length %" PRIu64 ": %s has %zu bytes", offset, length,
                     me ? "the entry (PTL_ME_HOST_MEM)" : "PTL_HANDLER_HOST_MEM",
                     me ? env->me_length : env->host_length);
}

/* ---- Time and return codes ---- */

void hpu_refuse_late(const struct hpu_exec *exec, const char *name, const void *caller)
{
    char where[160];
    uintptr_t at = caller != NULL ? (uintptr_t)caller - 1 : hpu_ctx_guard(exec->ctx)->instruction;
    describe_code(at, where, sizeof(where));
    hpu_tell(exec, TIMEOUT, "ended with TIMEOUT: %s; in %s%s%s",
             hpu_exec_ending(exec) ? hpu_device_closed
                                   : "used more than PINWHEEL_HANDLER_BUDGET_US",
             name != NULL ? name : "", name != NULL ? ", called from " : "", where);
}

void hpu_refuse_code(const struct hpu_exec *exec, int result)
{
    static const char *const may[] = {
        [HPU_CALL_HEADER] =
            "header handler may return DROP, PROCESS_DATA, PROCEED or their _PENDING",
        [HPU_CALL_PAYLOAD] = "payload handler may return SUCCESS or DROP",
        [HPU_CALL_COMPLETION] = "completion handler may return SUCCESS or SUCCESS_PENDING",
    };
    hpu_tell(exec, RETURNED + (unsigned)result, "returned %d, which counts as FAIL: a %s", result,
             may[exec->call]);
}

/* ---- Faults of native handlers ---- */

/* Writes where a jump to a bad address came from, as far as the top of the stack tells: after a
 * call that is the return address; after a return, which has popped its target, only the beginning
 * of the caller's frame. */
static void describe_jump(const struct fault_guard *guard, char *text, size_t size)
{
    uintptr_t behind = 0;
    char where[160] = "no code";
    if (nic_copy(&behind, (const void *)guard->stack_pointer, sizeof(behind)) == 0) {
        describe_code(behind - 1, where, sizeof(where));
    }
    snprintf(text, size, "control left the code for 0x%" PRIxPTR ", called from %s", guard->address,
             where);
}

/* Whether an instruction that has faulted is a jump or a call through a register, or a return: then
 * its target was bad. One through memory is not counted, since the load of the target may have
 * failed. */
static bool is_leap(uintptr_t instruction)
{
    enum {
        REX = 0x40,
        GROUP = 0xff,
        CALL = 2,
        JUMP = 4,
        REGISTER = 3,
        RETURN = 0xc3,
        NOTRACK = 0x3e
    };
    uint8_t bytes[4] = {0};
    const uint8_t *at = bytes;
    if (nic_copy(bytes, (const void *)instruction, sizeof(bytes)) != 0) {
        return false;
    }
    at += *at == NOTRACK;
    at += (*at & 0xf0) == REX;
    unsigned which = at[1] >> 3 & 7;
    return *at == RETURN ||
           (*at == GROUP && at[1] >> 6 == REGISTER && (which == CALL || which == JUMP));
}

void hpu_refuse_fault(const struct hpu_exec *exec)
{
    const struct fault_guard *guard = hpu_ctx_guard(exec->ctx);
    size_t size;
    uintptr_t stack = (uintptr_t)hpu_ctx_stack(exec->ctx, &size);
    char why[384], where[160];
    describe_code(guard->instruction, where, sizeof(where));
    uintptr_t below = stack - guard->address;
    bool memory = guard->signal == SIGSEGV || guard->signal == SIGBUS;
    if (memory && guard->code == SI_KERNEL) {
        snprintf(why, sizeof(why), "%s; in %s",
                 is_leap(guard->instruction)
                     ? "control left the code for an address that cannot be"
                     : "an address that cannot be, a misaligned vector access, or a privileged "
                       "instruction",
                 where);
    } else if (memory && guard->address == guard->instruction) {
        describe_jump(guard, why, sizeof(why));
    } else if (memory && below - 1 < size) {
        snprintf(why, sizeof(why),
                 "a stack overflow by %" PRIuPTR ": the stack has %zu bytes at 0x%" PRIxPTR
                 "; in %s",
                 below, size, stack, where);
    } else if (memory) {
        snprintf(why, sizeof(why), "may not access 0x%" PRIxPTR "; in %s", guard->address, where);
    } else {
        snprintf(why, sizeof(why), "%s; in %s",
                 guard->signal == SIGFPE   ? "a division that has no result"
                 : guard->signal == SIGILL ? "an illegal instruction"
                                           : "a fault",
                 where);
    }
    hpu_tell(exec, guard->instruction, "ended with SEGV: %s", why);
}
