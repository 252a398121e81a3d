/* SPDX-License-Identifier: BSD-3-Clause */
/* The log line of a refused atomic: which of operation, data type and length is wrong, by their
 * names. */
#include "portals/api.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME(name) [name] = #name

static const char *const operations[PTL_OP_LAST] = {
    NAME(PTL_MIN),      NAME(PTL_MAX),      NAME(PTL_SUM),      NAME(PTL_PROD),
    NAME(PTL_LOR),      NAME(PTL_LAND),     NAME(PTL_BOR),      NAME(PTL_BAND),
    NAME(PTL_LXOR),     NAME(PTL_BXOR),     NAME(PTL_SWAP),     NAME(PTL_CSWAP),
    NAME(PTL_CSWAP_NE), NAME(PTL_CSWAP_LE), NAME(PTL_CSWAP_LT), NAME(PTL_CSWAP_GE),
    NAME(PTL_CSWAP_GT), NAME(PTL_MSWAP),
};

static const char *const types[PTL_DATATYPE_LAST] = {
    NAME(PTL_INT8_T),        NAME(PTL_UINT8_T),
    NAME(PTL_INT16_T),       NAME(PTL_UINT16_T),
    NAME(PTL_INT32_T),       NAME(PTL_UINT32_T),
    NAME(PTL_FLOAT),         NAME(PTL_INT64_T),
    NAME(PTL_UINT64_T),      NAME(PTL_DOUBLE),
    NAME(PTL_FLOAT_COMPLEX), NAME(PTL_DOUBLE_COMPLEX),
    NAME(PTL_LONG_DOUBLE),   NAME(PTL_LONG_DOUBLE_COMPLEX),
};

enum { NAME_TEXT = 32 };

static const char *name_of(unsigned value, const char *const *names, unsigned count,
                           char text[NAME_TEXT])
{
    snprintf(text, NAME_TEXT, "%u", value);
    return value < count ? names[value] : text;
}

void api_explain_operation(const struct request *r, enum atomic_call call, char *text, size_t size)
{
    char op[NAME_TEXT], type[NAME_TEXT];
    bool swaps = call == ATOMIC_SWAP;
    snprintf(text, size, "operation %s with data type %s: %s",
             name_of(r->op, operations, PTL_OP_LAST, op),
             name_of(r->datatype, types, PTL_DATATYPE_LAST, type),
             r->op >= PTL_OP_LAST ? "operations are PTL_MIN to PTL_MSWAP"
             : r->datatype >= PTL_DATATYPE_LAST
                 ? "data types are PTL_INT8_T to PTL_LONG_DOUBLE_COMPLEX"
             : (r->op >= PTL_SWAP) == swaps ? "the one is not defined for the other"
             : swaps                        ? "PtlAtomic and PtlFetchAtomic have that one"
                                            : "PtlSwap has that one");
}

void api_explain_atomic(const struct ni *ni, const struct request *r, enum atomic_call call,
                        char *text, size_t size)
{
    uint64_t most = r->kind == OP_FETCH ? (uint64_t)ni->limits.max_fetch_atomic_size
                                        : (uint64_t)ni->limits.max_atomic_size;
    if (!atomic_is_legal(call, r->op, r->datatype)) {
        api_explain_operation(r, call, text, size);
    } else if (r->length > most) {
        snprintf(text, size, "length %" PRIu64 " is more than %s, %" PRIu64, r->length,
                 r->kind == OP_FETCH ? "max_fetch_atomic_size" : "max_atomic_size", most);
    } else if (atomic_operand_size(r->op, r->datatype) != 0) {
        snprintf(text, size,
                 "length %" PRIu64 " must be %zu, one element of data type %s: operation %s has "
                 "one operand",
                 r->length, atomic_size(r->datatype), types[r->datatype], operations[r->op]);
    } else {
        snprintf(text, size, "length %" PRIu64 " is no multiple of %zu, the size of data type %s",
                 r->length, atomic_size(r->datatype), types[r->datatype]);
    }
}
