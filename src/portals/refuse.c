/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines that say what the code of a refused call does not: which argument was wrong, and what
 * would be right; and the names of codes. A call that succeeds runs nothing of this file. */
#include "base/log.h"
#include "base/sys.h"
#include "nic/initiate.h"
#include "portals/api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {[OP_PUT] = "a put",
                                    [OP_GET] = "a get",
                                    [OP_ATOMIC] = "an atomic operation",
                                    [OP_FETCH] = "a fetching operation"};

/* The log leaves out most repetitions of a line, since a program may repeat a refused call in a
 * loop. */
int api_refuse_state(int rc, const char *format, ...)
{
    char text[400], note[LOG_NOTE];
    uint64_t key = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (const char *c = text; *c != '\0'; c++) {
        key = key * 31 + (unsigned char)*c;
    }
    if (log_again(key, clock_ns(), note)) {
        log_line(LOG_WARN, "%s%s", text, note);
    }
    return rc;
}

/* Writes what is wrong with the MD and range of one side of a data movement; false: nothing is. */
static bool side_wrong(struct ni *ni, const struct request *r, ptl_handle_md_t handle,
                       ptl_size_t offset, const char *side, char *text, size_t size)
{
    const struct md *md = table_get(&ni->mds, handle);
    if (md == NULL) {
        snprintf(text, size, "%smd_handle 0x%" PRIx32 " is no memory descriptor of an interface",
                 side, handle);
        return true;
    }
    if (offset > md->length || r->length > md->length - offset) {
        snprintf(text, size,
                 "%soffset %" PRIu64 " and length %" PRIu64 " reach beyond the %" PRIu64
                 " bytes of the memory descriptor",
                 side, offset, r->length, md->length);
        return true;
    }
    return false;
}

static void explain_ack(const struct request *r, char *text, size_t size)
{
    if (r->ack != ACK_NEVER) {
        snprintf(text, size, "there is no ack_req %u", r->ack);
        return;
    }
    snprintf(text, size,
             "the memory descriptor cannot take the ack: PTL_ACK_REQ needs an event queue in it, "
             "and no PTL_MD_UNRELIABLE, PTL_CT_ACK_REQ a counter");
}

static void explain_target(const struct ni *ni, const struct request *r, char *text, size_t size)
{
    if (ni_is_logical(ni)) {
        snprintf(text, size, "target_id rank %u is beyond the %" PRIu64 " that PtlSetMap has named",
                 r->target.rank, (uint64_t)ni->map_size);
    } else {
        snprintf(text, size, "target_id nid 0x%08x pid %u is no process: PIDs are 1 to %d",
                 r->target.phys.nid, r->target.phys.pid, PTL_PID_MAX);
    }
}

int api_refuse(struct ni *ni, const struct request *r, const struct api_sides *sides)
{
    char text[240];
    bool short_enough = r->length <= (uint64_t)ni->limits.max_msg_size || r->kind > OP_GET;
    bool fetches = r->kind == OP_FETCH, swaps = fetches && r->op >= PTL_SWAP;
    if (side_wrong(ni, r, sides->md, sides->offset, fetches ? "put_" : "", text, sizeof(text))) {
    } else if (!short_enough) {
        snprintf(text, sizeof(text), "length %" PRIu64 " is more than max_msg_size, %" PRIu64,
                 r->length, (uint64_t)ni->limits.max_msg_size);
    } else if (r->pt_index > UINT16_MAX) {
        snprintf(text, sizeof(text), "pt_index %u is beyond any portal table", r->pt_index);
    } else if (r->ack >= ACK_REQUESTS) {
        explain_ack(r, text, sizeof(text));
    } else if (r->kind >= OP_ATOMIC && !request_atomic_sound(ni, r, swaps)) {
        enum atomic_call call = swaps ? ATOMIC_SWAP : fetches ? ATOMIC_FETCH : ATOMIC_PLAIN;
        api_explain_atomic(ni, r, call, text, sizeof(text));
    } else if (!fetches ||
               !side_wrong(ni, r, sides->get_md, sides->get_offset, "get_", text, sizeof(text))) {
        explain_target(ni, r, text, sizeof(text));
    }
    return api_refuse_call("%s is refused: %s", kinds[r->kind], text);
}

int api_refuse_handle(const struct request *r, ptl_handle_md_t handle)
{
    const struct process *p = process_current();
    return p == NULL || p->users == 0
               ? PTL_NO_INIT
               : api_refuse_call("%s is refused: %smd_handle 0x%" PRIx32 " names no open interface",
                                 kinds[r->kind], r->kind == OP_FETCH ? "put_" : "", handle);
}

int api_refuse_operation(const struct request *r, enum atomic_call call)
{
    char text[240];
    api_explain_operation(r, call, text, sizeof(text));
    return api_refuse_call("%s is refused: %s", kinds[r->kind], text);
}

int api_refuse_operand(const struct request *r)
{
    return api_refuse_call("%s is refused: its operand is NULL, or cannot be read", kinds[r->kind]);
}

int api_refuse_null(const char *call, const char *names, ...)
{
    int rc = PTL_OK;
    va_list pointers;
    va_start(pointers, names);
    for (const char *name = names; rc == PTL_OK && *name != '\0';) {
        int length = (int)strcspn(name, " ");
        if (va_arg(pointers, const void *) == NULL) {
            rc = api_refuse_call("%s is refused: %.*s is NULL", call, length, name);
        }
        name += length + (name[length] == ' ');
    }
    va_end(pointers);
    return rc;
}

int api_refuse_space(const char *call, const char *limit, int most)
{
    return api_refuse_state(PTL_NO_SPACE,
                            "%s is refused: %s, %d, is used up, or memory is; free some, or ask "
                            "PtlNIInit for more",
                            call, limit, most);
}

int api_refuse_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind)
{
    static const struct {
        const char *parameter, *thing, *until;
    } kinds_of[] = {
        [HANDLE_NI] = {"ni_handle", "open interface", "PtlNIInit until PtlNIFini"},
        [HANDLE_EQ] = {"eq_handle", "event queue of the interface", "PtlEQAlloc until PtlEQFree"},
        [HANDLE_CT] = {"ct_handle", "counter of the interface", "PtlCTAlloc until PtlCTFree"},
        [HANDLE_MD] = {"md_handle", "memory descriptor of the interface",
                       "PtlMDBind until PtlMDRelease"},
        [HANDLE_LE] = {"handle", "entry of the interface", "an append until it is unlinked"},
        [HANDLE_HPU] = {"hpu_mem", "HPU memory of the interface",
                        "PtlHPUAllocMem until PtlHPUFreeMem"},
        [HANDLE_TIMER] = {"timer", "timer", "PtlHandlersTimer until its end"},
    };
    const struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    struct ni *other;
    void *object;
    if (kind != HANDLE_NI && api_object(handle, kind, &other, &object) == PTL_OK) {
        return api_refuse_call("%s is refused: %s 0x%" PRIx32 " names no %s, but one of another "
                               "interface; all of a call must be of the same one",
                               call, kinds_of[kind].parameter, handle, kinds_of[kind].thing);
    }
    return api_refuse_call("%s is refused: %s 0x%" PRIx32 " names no %s; it is "
                           "valid from %s",
                           call, kinds_of[kind].parameter, handle, kinds_of[kind].thing,
                           kinds_of[kind].until);
}

int api_refuse_increment(const char *call, ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
    struct ni *ni;
    struct ct *ct;
    int rc = api_find(call, ct_handle, HANDLE_CT, &ni, &ct);
    return rc != PTL_OK
               ? rc
               : api_refuse_call("%s is refused: increment has success %" PRIu64
                                 " and failure %" PRIu64 ": one of them must be 0",
                                 call, (uint64_t)increment.success, (uint64_t)increment.failure);
}

const char *PtlErrorStr(unsigned code)
{
#define TEXT(name, meaning) [name] = #name ": " meaning
    static const char *const texts[] = {
        TEXT(PTL_OK, "done"),
        TEXT(PTL_ARG_INVALID, "an argument is out of range, stale, of the wrong kind or null"),
        TEXT(PTL_CT_NONE_REACHED, "no counter has reached its value within the time"),
        TEXT(PTL_EQ_DROPPED, "an event is delivered, at least one before it was lost"),
        TEXT(PTL_EQ_EMPTY, "there is no event"),
        TEXT(PTL_FAIL, "the system refused something; the log on stderr says what"),
        TEXT(PTL_IGNORED, "there is a map already, it stays"),
        TEXT(PTL_IN_USE, "an operation is using the object: try again"),
        TEXT(PTL_LIST_TOO_LONG, "the limit max_list_size is reached"),
        TEXT(PTL_NO_INIT, "no PtlInit in this process"),
        TEXT(PTL_NO_SPACE, "a limit of the interface, or memory, is used up"),
        TEXT(PTL_PID_IN_USE, "another process or interface has the requested PID"),
        TEXT(PTL_PT_FULL, "no portal table index is free"),
        TEXT(PTL_PT_EQ_NEEDED, "flow control needs an event queue"),
        TEXT(PTL_PT_IN_USE, "the portal table index is allocated, or has entries"),
        TEXT(PTL_ABORTED, "a waiting call was ended by PtlAbort"),
        TEXT(PTL_INTERRUPTED, "of Portals before 4.3; never returned"),
    };
#undef TEXT
    return code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : "no code of Portals";
}
