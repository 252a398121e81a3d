/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by which handlers get the header of their message, and its state. */
#include "hpu/calls.h"

int PtlHandlerHeader(ptl_header_t *header)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    ptl_header_t found;
    int rc = exec->env.ops->header(&exec->env, &found);
    if (rc == PTL_OK) {
        call_copy(exec, __func__, header, &found, sizeof(found));
    }
    call_leave(exec, __func__);
    return rc;
}

void *PtlHandlerMessageState(void)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return NULL;
    }
    size_t length;
    void *state = exec->env.ops->state(&exec->env, &length);
    call_leave(exec, __func__);
    /* cppcheck-suppress returnDanglingLifetime ; the state is the message's, never `length` */
    return state;
}
