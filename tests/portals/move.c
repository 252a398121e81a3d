/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ten calls that move data, behind one structure, and which operations and types they
 * take; see suite.h. The table of 3.15 is written down here once more, apart from the
 * library's, so that the two check each other.
 */
#include "suite.h"

const char *const suite_call_name[CALL_COUNT] = {"put", "get", "atomic", "fetch", "swap"};
const char *const suite_op_name[PTL_OP_LAST] = {
    "min",  "max",  "sum",   "prod",     "lor",      "land",     "bor",      "band",     "lxor",
    "bxor", "swap", "cswap", "cswap_ne", "cswap_le", "cswap_lt", "cswap_ge", "cswap_gt", "mswap"};
const char *const suite_type_name[PTL_DATATYPE_LAST] = {"int8",          "uint8",
                                                        "int16",         "uint16",
                                                        "int32",         "uint32",
                                                        "float",         "int64",
                                                        "uint64",        "double",
                                                        "float_complex", "double_complex",
                                                        "long_double",   "long_double_complex"};

struct suite_move suite_move_to(struct scene *s, enum suite_call call)
{
    return (struct suite_move){.call = call,
                               .md = PTL_INVALID_HANDLE,
                               .get_md = PTL_INVALID_HANDLE,
                               .ack = PTL_NO_ACK_REQ,
                               .to = s->to,
                               .pt = SUITE_PT,
                               .trigger = PTL_INVALID_HANDLE};
}

static int move_now(const struct suite_move *m)
{
    switch (m->call) {
    case CALL_PUT:
        return PtlPut(m->md, m->offset, m->length, m->ack, m->to, m->pt, m->bits, m->remote_offset,
                      m->user_ptr, m->hdr_data);
    case CALL_GET:
        return PtlGet(m->md, m->offset, m->length, m->to, m->pt, m->bits, m->remote_offset,
                      m->user_ptr);
    case CALL_ATOMIC:
        return PtlAtomic(m->md, m->offset, m->length, m->ack, m->to, m->pt, m->bits,
                         m->remote_offset, m->user_ptr, m->hdr_data, m->op, m->type);
    case CALL_FETCH:
        return PtlFetchAtomic(m->get_md, m->get_offset, m->md, m->offset, m->length, m->to, m->pt,
                              m->bits, m->remote_offset, m->user_ptr, m->hdr_data, m->op, m->type);
    case CALL_SWAP:
        return PtlSwap(m->get_md, m->get_offset, m->md, m->offset, m->length, m->to, m->pt, m->bits,
                       m->remote_offset, m->user_ptr, m->hdr_data, m->operand, m->op, m->type);
    default:
        return -1;
    }
}

static int move_triggered(const struct suite_move *m)
{
    switch (m->call) {
    case CALL_PUT:
        return PtlTriggeredPut(m->md, m->offset, m->length, m->ack, m->to, m->pt, m->bits,
                               m->remote_offset, m->user_ptr, m->hdr_data, m->trigger,
                               m->threshold);
    case CALL_GET:
        return PtlTriggeredGet(m->md, m->offset, m->length, m->to, m->pt, m->bits, m->remote_offset,
                               m->user_ptr, m->trigger, m->threshold);
    case CALL_ATOMIC:
        return PtlTriggeredAtomic(m->md, m->offset, m->length, m->ack, m->to, m->pt, m->bits,
                                  m->remote_offset, m->user_ptr, m->hdr_data, m->op, m->type,
                                  m->trigger, m->threshold);
    case CALL_FETCH:
        return PtlTriggeredFetchAtomic(m->get_md, m->get_offset, m->md, m->offset, m->length, m->to,
                                       m->pt, m->bits, m->remote_offset, m->user_ptr, m->hdr_data,
                                       m->op, m->type, m->trigger, m->threshold);
    case CALL_SWAP:
        return PtlTriggeredSwap(m->get_md, m->get_offset, m->md, m->offset, m->length, m->to, m->pt,
                                m->bits, m->remote_offset, m->user_ptr, m->hdr_data, m->operand,
                                m->op, m->type, m->trigger, m->threshold);
    default:
        return -1;
    }
}

int suite_move(const struct suite_move *m)
{
    return m->triggered ? move_triggered(m) : move_now(m);
}

size_t suite_type_size(ptl_datatype_t type)
{
    static const unsigned char sizes[PTL_DATATYPE_LAST] = {1, 1, 2, 2, 4,  4,  4,
                                                           8, 8, 8, 8, 16, 16, 32};
    return type < PTL_DATATYPE_LAST ? sizes[type] : 0;
}

bool suite_legal(enum suite_call call, ptl_op_t op, ptl_datatype_t type)
{
    if (op >= PTL_OP_LAST || type >= PTL_DATATYPE_LAST || (call == CALL_SWAP) != (op >= PTL_SWAP)) {
        return false;
    }
    bool complex_type =
        type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
    bool real = type == PTL_FLOAT || type == PTL_DOUBLE || type == PTL_LONG_DOUBLE;
    switch (op) {
    case PTL_SUM:
    case PTL_PROD:
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
        return true;
    case PTL_LOR:
    case PTL_LAND:
    case PTL_BOR:
    case PTL_BAND:
    case PTL_LXOR:
    case PTL_BXOR:
    case PTL_MSWAP:
        return !complex_type && !real;
    default: /* what compares */
        return !complex_type;
    }
}
