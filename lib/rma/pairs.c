/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that do at the target what its interface lacks: atomic operations on pairs of a value
 * and an index. They stand in the place of the operation of an atomic message, which is one packet:
 *
 *      packet ──► each element: old from the region, combined with the packet's, new to the region;
 *                 the old one stays in the packet, which is the reply of a message that fetches
 *
 * All messages to a region's pairs are done by one HPU, one after the other (hpu_mask): so none
 * needs a lock, and none sees half of another. What a message asks for is checked first; that it
 * lies in the region the interface has found, since the entry takes no other (PTL_ME_NO_TRUNCATE).
 */
#include "pairs.h"

#include "pinwheel_rma.h"
#include "spin_handler.h"

#include <stdbool.h>

enum { CHUNK = 512, LARGEST_PAIR = 32 };

/* The parts of a pair. */
enum part { NO_PART, I16, I32, I64, F32, F64, X87 };

struct pair_type {
    uint8_t value, index; /* enum part */
    uint8_t index_at, size;
};

static const struct pair_type pair_types[] = {
    {F32, I32, 4, 8}, {F64, I32, 8, 16},  {I64, I32, 8, 16}, {I32, I32, 4, 8},
    {I16, I32, 4, 8}, {X87, I32, 16, 32}, {F32, F32, 4, 8},  {F64, F64, 8, 16},
};

#define UNALIGNED(name, type)                                                                      \
    struct name {                                                                                  \
        type is;                                                                                   \
    } __attribute__((packed, may_alias))
UNALIGNED(word16, int16_t);
UNALIGNED(word32, int32_t);
UNALIGNED(word64, int64_t);
UNALIGNED(real32, float);
UNALIGNED(real64, double);

enum order { LESS, EQUAL, GREATER, UNORDERED };
#define ORDER(a, b) ((a) < (b) ? LESS : (a) == (b) ? EQUAL : (a) > (b) ? GREATER : UNORDERED)
#define ORDER_AS(type, a, b) ORDER(((const struct type *)(a))->is, ((const struct type *)(b))->is)

/* Compares two 80-bit reals of x86 by their bits, since an HPU has none. */
static enum order order_x87(const uint8_t *a, const uint8_t *b)
{
    uint64_t x = (uint64_t)((const struct word64 *)a)->is;
    uint64_t y = (uint64_t)((const struct word64 *)b)->is;
    uint16_t p = (uint16_t)((const struct word16 *)(a + 8))->is;
    uint16_t q = (uint16_t)((const struct word16 *)(b + 8))->is;
    unsigned e = p & 0x7fffu, f = q & 0x7fffu;
    if ((e == 0x7fff && x << 1 != 0) || (f == 0x7fff && y << 1 != 0)) {
        return UNORDERED;
    }
    bool minus = (p & 0x8000) != 0 && x != 0, other = (q & 0x8000) != 0 && y != 0;
    if (minus != other) {
        return minus ? LESS : GREATER;
    }
    if (x == 0 || y == 0) {
        e = x == 0 ? 0 : e + 1;
        f = y == 0 ? 0 : f + 1;
    }
    enum order o = e != f ? ORDER(e, f) : ORDER(x, y);
    return !minus || o == EQUAL ? o : o == LESS ? GREATER : LESS;
}

static enum order order_of(unsigned part, const uint8_t *a, const uint8_t *b)
{
    switch (part) {
    case I16:
        return ORDER_AS(word16, a, b);
    case I32:
        return ORDER_AS(word32, a, b);
    case I64:
        return ORDER_AS(word64, a, b);
    case F32:
        return ORDER_AS(real32, a, b);
    case F64:
        return ORDER_AS(real64, a, b);
    default:
        return order_x87(a, b);
    }
}

/* Whether the data's pair takes the place of the target's: the better value, or the smaller index
 * of two equal values. */
static bool takes(const struct pair_type *t, unsigned op, const uint8_t *data,
                  const uint8_t *target)
{
    if (op == PW_RMA_REPLACE || op == PW_RMA_NO_OP) {
        return op == PW_RMA_REPLACE;
    }
    enum order o = order_of(t->value, data, target);
    if (o == EQUAL) {
        return order_of(t->index, data + t->index_at, target + t->index_at) == LESS;
    }
    return o == (op == PW_RMA_MINLOC ? LESS : GREATER);
}

static void copy(uint8_t *to, const uint8_t *from, uint32_t size)
{
    for (uint32_t i = 0; i < size; i += 8) {
        ((struct word64 *)(to + i))->is = ((const struct word64 *)(from + i))->is;
    }
}

/* The type and operation that a message asks for; NULL: there is no such. */
static const struct pair_type *asked(ptl_hdr_data_t call, unsigned *op)
{
    unsigned type = (unsigned)(call >> 8 & 0xff) - PW_RMA_FLOAT_INT;
    *op = (unsigned)(call & 0xff);
    bool is = call >> 16 == (uint64_t)PAIRS_VERSION << 32 &&
              type < sizeof(pair_types) / sizeof(pair_types[0]) &&
              (*op == PW_RMA_MINLOC || *op == PW_RMA_MAXLOC || *op == PW_RMA_REPLACE ||
               *op == PW_RMA_NO_OP);
    return is ? &pair_types[type] : NULL;
}

/* Does an operation on `n` bytes of pairs; the old ones take the place of the data. */
static void run(const struct pair_type *t, unsigned op, uint8_t *data, uint8_t *target, uint64_t n)
{
    uint8_t old[LARGEST_PAIR];
    for (uint8_t *element = target; element < target + n; data += t->size, element += t->size) {
        copy(old, element, t->size);
        if (takes(t, op, data, element)) {
            copy(element, data, t->size);
        }
        copy(data, old, t->size);
    }
}

__handler static int pairs_header(const ptl_header_t h, void *state)
{
    unsigned op;
    (void)state;
    const struct pair_type *t = asked(h.hdr_data, &op);
    bool is = (h.type == PTL_REQUEST_ATOMIC || h.type == PTL_REQUEST_FETCH_ATOMIC) && t != NULL &&
              h.length % t->size == 0;
    return is ? PROCESS_DATA : FAIL;
}
PTL_HANDLER(pairs_header);

__handler static int pairs_payload(const ptl_payload_t p, void *state)
{
    _Alignas(16) uint8_t target[CHUNK];
    ptl_header_t h;
    unsigned op;
    (void)state;
    const struct pair_type *t = PtlHandlerHeader(&h) == PTL_OK ? asked(h.hdr_data, &op) : NULL;
    if (t == NULL || p.length % t->size != 0) {
        return FAIL;
    }
    for (uint64_t done = 0; done < p.length;) {
        uint64_t at = h.offset + p.offset + done;
        uint64_t n = p.length - done < CHUNK ? p.length - done : CHUNK;
        PtlHandlerDMAFromHostB(at, target, n, PTL_ME_HOST_MEM);
        run(t, op, p.base + done, target, n);
        if (op != PW_RMA_NO_OP) {
            PtlHandlerDMAToHostB(target, at, n, PTL_ME_HOST_MEM);
        }
        done += n;
    }
    return SUCCESS;
}
PTL_HANDLER(pairs_payload);

#ifndef __riscv
bool pairs_do(ptl_hdr_data_t call, uint8_t *data, uint8_t *target, uint64_t n)
{
    unsigned op;
    const struct pair_type *t = asked(call, &op);
    if (t == NULL || n % t->size != 0) {
        return false;
    }
    run(t, op, data, target, n);
    return true;
}

int pairs_handlers(ptl_handle_ni_t ni, uint32_t number, ptl_handlers_t *handlers)
{
    ptl_spin_limits_t limits;
    int rc = PtlSpinLimits(ni, &limits);
    if (rc != PTL_OK) {
        return rc;
    }
    unsigned hpus = limits.num_hpus < 64 ? limits.num_hpus : 64;
    *handlers = (ptl_handlers_t){
        .header_handler = pairs_header,
        .payload_handler = pairs_payload,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_mask = hpus == 0 ? 0 : UINT64_C(1) << number % hpus,
    };
    return PTL_OK;
}
#endif
