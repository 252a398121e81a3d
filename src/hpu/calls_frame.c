/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of handlers on frames of an Ethernet interface: what becomes of the frame, and new ones. */
#include "hpu/calls.h"

static int ask(struct hpu_exec *exec, enum hpu_frame_call what, uint8_t **room, size_t length)
{
    const struct hpu_ops *ops = exec->env.ops;
    return ops->frame != NULL ? ops->frame(&exec->env, what, room, length) : PTL_FAIL;
}

int PtlHandlerFrameReply(ptl_size_t length)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = ask(exec, HPU_FRAME_REPLY, NULL, length);
    call_leave(exec, __func__);
    return rc;
}

int PtlHandlerFrameSend(const void *frame, ptl_size_t length)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    uint8_t *room = NULL;
    int rc = ask(exec, HPU_FRAME_ROOM, &room, length);
    if (rc == PTL_OK) {
        call_copy(exec, __func__, room, frame, length);
        rc = ask(exec, HPU_FRAME_SEND, &room, length);
    }
    call_leave(exec, __func__);
    return rc;
}

int PtlHandlerFramePass(void)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = ask(exec, HPU_FRAME_PASS, NULL, 0);
    call_leave(exec, __func__);
    return rc;
}
