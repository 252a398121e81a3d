/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handler calls that a handler on the RV32 core has made. They are recorded one by one
 * (hpu/device.h) and printed as in C: pointers as places in the handler's memory, calls that print
 * with their text.
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

enum { HPU_CALLS_MOST = 10000 }; /* how many calls are recorded; later ones are only counted */

struct hpu_made_call {
    struct hpu_device_call call;
    bool returned;
    char *text; /* text that the call has printed; NULL: none */
};

struct hpu_calls {
    const struct hpu_output *output; /* where the handler prints */
    struct hpu_made_call *made;
    uint64_t count, cycles; /* of all calls, recorded or not */
    uint64_t printed;       /* bytes of text so far */
    bool full;              /* memory was short for another call */
};

/* hpu_calls_begin() records a call that the handler makes, hpu_calls_end() its return. */
void hpu_calls_begin(struct hpu_calls *c, const struct hpu_device_call *call);
void hpu_calls_end(struct hpu_calls *c, const struct hpu_device_call *call);
void hpu_calls_free(struct hpu_calls *c);

/* hpu_call_text() writes a call as "name(argument, ...) = result". */
void hpu_call_text(const struct hpu_made_call *m, const struct rv32_core *core, char *text,
                   size_t size);

/* hpu_calls_print() prints the calls in lines, hpu_calls_json() into an open JSON object. where()
 * writes the source line of a call. */
typedef void hpu_where_text(const void *context, uint32_t pc, char *text, size_t size);
void hpu_calls_print(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                     const void *context);
void hpu_calls_json(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                    const void *context, struct json *to);

#endif
