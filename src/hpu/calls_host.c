/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers say to their host besides messages: counts, and text. */
#include "hpu/calls.h"

#include <errno.h>

#include "hpu/output.h"

/* ---- Counters of the host ---- */

static int count(enum hpu_count how, ptl_handle_ct_t ct, ptl_ct_event_t *value)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = exec->env.ops->count(&exec->env, how, ct, value);
    call_leave(exec);
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
        call_copy(exec, event, &value, sizeof(value));
    }
    call_leave(exec);
    return rc;
}

int PtlHandlerCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
    return count(HPU_COUNT_SET, ct_handle, &new_ct);
}

int PtlHandlerCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
    return increment.success != 0 && increment.failure != 0
               ? PTL_ARG_INVALID
               : count(HPU_COUNT_ADD, ct_handle, &increment);
}

/* ---- Text ---- */

int PtlHandlerPrintf(const char *format, ...)
{
    char line[HPU_LINE_MOST];
    size_t length;
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    va_list args;
    va_start(args, format);
    int rc = hpu_format(line, sizeof(line), &length, format, args);
    va_end(args);
    if (rc == -EFAULT) {
        call_end_handler(exec, SEGV);
    }
    if (rc == 0 && exec->hpu < exec->env.output_count) {
        hpu_output_add(&exec->env.outputs[exec->hpu], line, length);
    }
    call_leave(exec);
    return rc == 0 ? PTL_OK : PTL_ARG_INVALID;
}
