/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional read; see condread.h. The handler fetches rows by DMA, a block of them at a time. It
 * gathers selected columns in a packet on its stack, and sends the packet when the next column does
 * not fit.
 */
#include "condread.h"

#include "bytes.h"
#include "spin_handler.h"

enum { BLOCK = 2048, OUT = 2048 };

_Static_assert(BLOCK >= (int)CONDREAD_ROW && OUT >= (int)CONDREAD_ROW, "a row fits");

/* The part of a result that the handler is gathering. */
struct result {
    const struct condread_state *s;
    struct condread_request *r;
    uint64_t length; /* bytes gathered */
    uint64_t most;   /* bytes at which the packet must be sent */
    bool failed;
    uint8_t data[OUT];
};

static void send(struct result *out, uint64_t hdr_data)
{
    const struct condread_request *r = out->r;
    if (PtlHandlerPutFromDevice(out->data, out->length, PTL_NO_ACK_REQ, r->client, r->bits,
                                r->offset, NULL, hdr_data) != PTL_OK) {
        out->failed = true;
    }
    out->r->offset += out->length;
    out->r->room -= out->length;
    out->length = 0;
}

/* ---- Comparing ---- */

/* The result of a comparison, as bits. A comparison with NaN gives NEITHER. */
enum { LESS = 1, SAME = 2, MORE = 4, NEITHER = 8 };

/* Returns the results of a comparison, as bits, that the operation of a request accepts. */
static unsigned wanted(uint32_t op)
{
    static const uint8_t bits[CONDREAD_OPS] = {
        [CONDREAD_EQ] = SAME, [CONDREAD_NE] = LESS | MORE | NEITHER,
        [CONDREAD_LT] = LESS, [CONDREAD_LE] = LESS | SAME,
        [CONDREAD_GT] = MORE, [CONDREAD_GE] = MORE | SAME,
    };
    return bits[op];
}

static unsigned compare_bytes(const uint8_t *x, const uint8_t *y, uint64_t width)
{
    for (uint64_t i = 0; i < width; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? LESS : MORE;
        }
    }
    return SAME;
}

static uint32_t width_of(uint32_t type)
{
    static const uint8_t widths[] = {
        [PTL_INT8_T] = 1,   [PTL_UINT8_T] = 1,  [PTL_INT16_T] = 2, [PTL_UINT16_T] = 2,
        [PTL_INT32_T] = 4,  [PTL_UINT32_T] = 4, [PTL_FLOAT] = 4,   [PTL_INT64_T] = 8,
        [PTL_UINT64_T] = 8, [PTL_DOUBLE] = 8,
    };
    return type < sizeof(widths) ? widths[type] : 0;
}

/* Compares rows without branches but for the loop's: the contents of rows cannot be predicted. */
#define NEXT_OF(T)                                                                                 \
    do {                                                                                           \
        T a, b;                                                                                    \
        bytes_copy(&b, r->value, sizeof(T));                                                       \
        for (; i < n; i++, at += size) {                                                           \
            bytes_copy(&a, at, sizeof(T));                                                         \
            unsigned is = (unsigned)(a < b) | (unsigned)(a == b) << 1 | (unsigned)(a > b) << 2;    \
            if (((is | (unsigned)(is == 0) << 3) & want) != 0) {                                   \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        return i;                                                                                  \
    } while (0)

/* Returns the first of the rows i to n - 1, of `size` bytes each, that the request selects; n if
 * there is none. */
static uint64_t next_match(const struct condread_request *r, const uint8_t *rows, uint64_t size,
                           uint64_t i, uint64_t n)
{
    const uint8_t *at = rows + i * size + r->column;
    unsigned want = wanted(r->op);
    switch (r->type) {
    case PTL_INT8_T:
        NEXT_OF(int8_t);
    case PTL_UINT8_T:
        NEXT_OF(uint8_t);
    case PTL_INT16_T:
        NEXT_OF(int16_t);
    case PTL_UINT16_T:
        NEXT_OF(uint16_t);
    case PTL_INT32_T:
        NEXT_OF(int32_t);
    case PTL_UINT32_T:
        NEXT_OF(uint32_t);
    case PTL_INT64_T:
        NEXT_OF(int64_t);
    case PTL_UINT64_T:
        NEXT_OF(uint64_t);
    case PTL_FLOAT:
        NEXT_OF(float);
    case PTL_DOUBLE:
        NEXT_OF(double);
    default:
        while (i < n && (compare_bytes(at, r->value, r->width) & want) == 0) {
            i++;
            at += size;
        }
        return i;
    }
}

/* ---- Scanning ---- */

static void select_row(struct result *out, const uint8_t *row)
{
    const struct condread_request *r = out->r;
    out->r->matched++;
    if (out->length + r->select_width > out->most) {
        send(out, 0);
    }
    if (out->length + r->select_width <= r->room) {
        bytes_copy(out->data + out->length, row + r->select, r->select_width);
        out->length += r->select_width;
    } else {
        /* so that no later, shorter column is sent in place of this one */
        out->r->room = out->length;
    }
}

static void scan(struct result *out, uint64_t rows)
{
    uint8_t block[BLOCK];
    const struct condread_state *s = out->s;
    for (uint64_t done = 0; done < rows;) {
        uint64_t n = smaller(BLOCK / s->row, rows - done);
        PtlHandlerDMAFromHostB((out->r->first + done) * s->row, block, n * s->row, PTL_ME_HOST_MEM);
        for (uint64_t i = 0; (i = next_match(out->r, block, s->row, i, n)) < n; i++) {
            select_row(out, block + i * s->row);
        }
        done += n;
    }
    out->r->first += rows;
    out->r->rows -= rows;
}

static bool is_request(const struct condread_state *s, const ptl_payload_t *p)
{
    const struct condread_request *r = (const struct condread_request *)p->base;
    uint32_t width = p->length == sizeof(*r) ? width_of(r->type) : 0;
    return p->offset == 0 && p->length == sizeof(*r) && r->op < CONDREAD_OPS &&
           (width != 0 || r->type == CONDREAD_BYTES) && (width == 0 || r->width == width) &&
           r->width <= CONDREAD_VALUE && range_fits(r->column, r->width, s->row) &&
           range_fits(r->select, r->select_width, s->row) && range_fits(r->first, r->rows, s->rows);
}

__handler static int condread_packet(const ptl_payload_t p, void *state)
{
    const struct condread_state *s = state;
    struct result out;
    out.s = s;
    out.r = (struct condread_request *)p.base;
    out.length = 0;
    out.failed = false;
    if (!is_request(s, &p)) {
        return FAIL;
    }
    out.most = smaller(OUT, s->packet);
    scan(&out, smaller(s->steps, out.r->rows));
    if (out.r->rows == 0) {
        send(&out, condread_end(out.r->tag, out.r->matched));
        return out.failed ? FAIL : SUCCESS;
    }
    if (out.length != 0) {
        send(&out, 0);
    }
    int rc = PtlHandlerPutFromDevice(out.r, sizeof(*out.r), PTL_NO_ACK_REQ, s->self, s->bits, 0,
                                     NULL, 0);
    return out.failed || rc != PTL_OK ? FAIL : SUCCESS;
}
PTL_HANDLER(condread_packet);

int condread_handlers(ptl_size_t row, ptl_size_t rows, ptl_size_t steps, ptl_process_t self,
                      ptl_match_bits_t bits, ptl_size_t packet, struct condread_state *state,
                      ptl_handlers_t *handlers)
{
    if (row == 0 || row > CONDREAD_ROW || rows >= UINT64_C(1) << 48 || steps == 0 ||
        packet < sizeof(struct condread_request) || row > packet) {
        return PTL_ARG_INVALID;
    }
    *state = (struct condread_state){row, rows, steps, bits, self, packet};
    *handlers = (ptl_handlers_t){
        .payload_handler = condread_packet,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
    return PTL_OK;
}
