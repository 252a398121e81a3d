/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by which handlers reach their host other than by messages: counters, and text. */
#include "hpu/calls.h"

#include "base/list.h"
#include "hpu/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* ---- Counters of the host ---- */

CALL_INLINE int count(const char *name, enum hpu_count how, ptl_handle_ct_t ct,
                      ptl_ct_event_t *value)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = exec->env.ops->count(&exec->env, how, ct, value);
    call_leave(exec, name);
    return rc;
}

int PtlHandlerCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    ptl_ct_event_t value;
    int rc = exec->env.ops->count(&exec->env, HPU_COUNT_GET, ct_handle, &value);
    if (rc == PTL_OK) {
        call_copy(exec, __func__, event, &value, sizeof(value));
    }
    call_leave(exec, __func__);
    return rc;
}

int PtlHandlerCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
    return count(__func__, HPU_COUNT_SET, ct_handle, &new_ct);
}

int PtlHandlerCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
    return increment.success != 0 && increment.failure != 0
               ? PTL_ARG_INVALID
               : count(__func__, HPU_COUNT_ADD, ct_handle, &increment);
}

/* ---- Text ---- */

int call_print(struct hpu_exec *exec, struct hpu_text *from, uint64_t format, size_t *length)
{
    char line[HPU_LINE_MOST];
    int rc = hpu_format(line, sizeof(line), length, from, format);
    if (rc == 0 && exec->hpu < exec->env.output_count) {
        hpu_output_add(&exec->env.outputs[exec->hpu], line, *length);
    }
    return rc == -EINVAL ? PTL_ARG_INVALID : rc;
}

struct native_text {
    struct hpu_text text;
    va_list arguments;
};

static int native_byte(struct hpu_text *t, uint64_t address, char *c)
{
    return nic_copy(c, (const void *)(uintptr_t)address, 1);
}

static int native_argument(struct hpu_text *t, enum hpu_text_kind kind, uint64_t *value)
{
    struct native_text *n = container_of(t, struct native_text, text);
    double real;
    switch (kind) {
    case HPU_TEXT_INT:
        *value = (uint64_t)va_arg(n->arguments, int);
        break;
    case HPU_TEXT_DOUBLE:
        real = va_arg(n->arguments, double);
        memcpy(value, &real, sizeof(real));
        break;
    case HPU_TEXT_POINTER:
        *value = (uintptr_t)va_arg(n->arguments, void *);
        break;
    default:
        *value = (uint64_t)va_arg(n->arguments, long);
    }
    return 0;
}

int PtlHandlerPrintf(const char *format, ...)
{
    struct hpu_exec *exec = call_enter();
    struct native_text n = {.text = {native_byte, native_argument}};
    size_t length;
    if (exec == NULL) {
        return PTL_FAIL;
    }
    va_start(n.arguments, format);
    int rc = call_print(exec, &n.text, (uintptr_t)format, &length);
    va_end(n.arguments);
    if (rc == -EFAULT) {
        call_refuse(exec, __func__, SEGV, "its text is not there");
    }
    call_leave(exec, __func__);
    return rc;
}
