/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the code of a refused data movement does not say: which argument it was, and what would
 * have been right; and the names of codes. Nothing of this is on the way of a call that is taken.
 */
#include "portals/api.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kinds[] = {[OP_PUT] = "a put",
                                    [OP_GET] = "a get",
                                    [OP_ATOMIC] = "an atomic operation",
                                    [OP_FETCH] = "a fetching operation"};

/* The MD of one side, and its part; false: it is as it should be. */
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

static void explain_atomic(const struct ni *ni, const struct request *r, char *text, size_t size)
{
    uint64_t most = r->kind == OP_FETCH ? (uint64_t)ni->limits.max_fetch_atomic_size
                                        : (uint64_t)ni->limits.max_atomic_size;
    if (r->length > most) {
        snprintf(text, size, "length %" PRIu64 " is more than %s, %" PRIu64, r->length,
                 r->kind == OP_FETCH ? "max_fetch_atomic_size" : "max_atomic_size", most);
    } else {
        snprintf(text, size,
                 "operation %u is not one that this call has for data type %u and length %" PRIu64,
                 r->op, r->datatype, r->length);
    }
}

static void explain_target(const struct ni *ni, const struct request *r, char *text, size_t size)
{
    if (ni_is_logical(ni)) {
        snprintf(text, size, "target rank %u is beyond the %" PRIu64 " that PtlSetMap has named",
                 r->target.rank, (uint64_t)ni->map_size);
    } else {
        snprintf(text, size, "target nid 0x%08x pid %u is no process: PIDs are 1 to %u",
                 r->target.phys.nid, r->target.phys.pid, PTL_PID_MAX);
    }
}

int api_refuse(struct ni *ni, const struct request *r, const struct api_sides *sides)
{
    char text[240];
    bool short_enough = r->length <= (uint64_t)ni->limits.max_msg_size || r->kind > OP_GET;
    bool fetches = r->kind == OP_FETCH;
    if (side_wrong(ni, r, sides->md, sides->offset, fetches ? "put_" : "", text, sizeof(text))) {
    } else if (!short_enough) {
        snprintf(text, sizeof(text), "length %" PRIu64 " is more than max_msg_size, %" PRIu64,
                 r->length, (uint64_t)ni->limits.max_msg_size);
    } else if (r->pt_index > UINT16_MAX) {
        snprintf(text, sizeof(text), "pt_index %u is beyond any portal table", r->pt_index);
    } else if (r->ack >= ACK_REQUESTS) {
        explain_ack(r, text, sizeof(text));
    } else if (r->kind >= OP_ATOMIC && !request_atomic_sound(ni, r, fetches && r->op >= PTL_SWAP)) {
        explain_atomic(ni, r, text, sizeof(text));
    } else if (!fetches ||
               !side_wrong(ni, r, sides->get_md, sides->get_offset, "get_", text, sizeof(text))) {
        explain_target(ni, r, text, sizeof(text));
    }
    log_line(LOG_WARN, "%s is refused: %s", kinds[r->kind], text);
    return PTL_ARG_INVALID;
}

int api_refuse_handle(const struct request *r, ptl_handle_md_t handle)
{
    log_line(LOG_WARN, "%s is refused: md_handle 0x%" PRIx32 " names no open interface",
             kinds[r->kind], handle);
    return PTL_ARG_INVALID;
}

int api_refuse_operation(const struct request *r, bool exists)
{
    if (exists) {
        log_line(LOG_WARN, "%s is refused: its operand is NULL, or cannot be read", kinds[r->kind]);
    } else {
        log_line(LOG_WARN, "%s is refused: operation %u is not one that it has for data type %u",
                 kinds[r->kind], r->op, r->datatype);
    }
    return PTL_ARG_INVALID;
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
