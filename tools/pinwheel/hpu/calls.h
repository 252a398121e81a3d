/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handler calls that a handler on the RV32 core has made, noted one by one as the core makes
 * them (hpu/device.h), and printed as C has them: pointers as places in the handler's memory, text
 * as what was printed.
 *
 *      cycle  took  call
 *         21    25  PtlHandlerDMAToHostB(packet, 0, 64, 1) = 0                lines_payload
 * lines.c:21
 */
#ifndef PINWHEEL_HPU_CALLS_H
#define PINWHEEL_HPU_CALLS_H

#include "pinwheel/util/json.h"

#include "hpu/device.h"
#include "hpu/output.h"

enum { HPU_CALLS_MOST = 10000 }; /* that are noted; others are counted */

struct hpu_made_call {
    struct hpu_device_call call;
    bool returned;
    char *text; /* that it printed; NULL: none */
};

struct hpu_calls {
    const struct hpu_output *output; /* where the handler prints */
    struct hpu_made_call *made;
    uint64_t count, cycles; /* of all */
    uint64_t printed;       /* bytes */
    bool full;              /* no memory for another one */
};

/* hpu_calls_begin() notes a call that is being made, hpu_calls_end() that it has returned. */
void hpu_calls_begin(struct hpu_calls *c, const struct hpu_device_call *call);
void hpu_calls_end(struct hpu_calls *c, const struct hpu_device_call *call);
void hpu_calls_free(struct hpu_calls *c);

/* hpu_call_text() writes "name(argument, ...) = result". */
void hpu_call_text(const struct hpu_made_call *m, const struct rv32_core *core, char *text,
                   size_t size);

/* hpu_calls_print() prints them in lines, hpu_calls_json() into an open object; where() writes
 * where in the source a call is. */
typedef void hpu_where_text(const void *context, uint32_t pc, char *text, size_t size);
void hpu_calls_print(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                     const void *context);
void hpu_calls_json(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                    const void *context, struct json *to);

#endif
