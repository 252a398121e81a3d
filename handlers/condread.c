/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional read; see condread.h. Rows come in by DMA, a block of them at a time; what
 * is selected gathers in a packet on the stack, which leaves when the next does not fit.
 */
#include "condread.h"

#include "bytes.h"
#include "spin_handler.h"

enum { BLOCK = 2048, OUT = 2048 };

_Static_assert(BLOCK >= (int)CONDREAD_ROW && OUT >= (int)CONDREAD_ROW, "a row fits");

/* A result on its way. */
struct result {
    const struct condread_state *s;
    struct condread_request *r;
    uint64_t length; /* gathered */
    uint64_t most;   /* before it must leave */
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

/* -1, 0, 1; 2: they do not compare (NaN). */
#define COMPARE(T)                                                                                 \
    do {                                                                                           \
        T a, b;                                                                                    \
        bytes_copy(&a, x, sizeof(T));                                                              \
        bytes_copy(&b, y, sizeof(T));                                                              \
        return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;                                            \
    } while (0)

static int compare_bytes(const uint8_t *x, const uint8_t *y, uint64_t width)
{
    for (uint64_t i = 0; i < width; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare(uint32_t type, const uint8_t *x, const uint8_t *y, uint64_t width)
{
    switch (type) {
    case PTL_INT8_T:
        COMPARE(int8_t);
    case PTL_UINT8_T:
        COMPARE(uint8_t);
    case PTL_INT16_T:
        COMPARE(int16_t);
    case PTL_UINT16_T:
        COMPARE(uint16_t);
    case PTL_INT32_T:
        COMPARE(int32_t);
    case PTL_UINT32_T:
        COMPARE(uint32_t);
    case PTL_INT64_T:
        COMPARE(int64_t);
    case PTL_UINT64_T:
        COMPARE(uint64_t);
    case PTL_FLOAT:
        COMPARE(float);
    case PTL_DOUBLE:
        COMPARE(double);
    default:
        return compare_bytes(x, y, width);
    }
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

static bool matches(const struct condread_request *r, const uint8_t *row)
{
    int c = compare(r->type, row + r->column, r->value, r->width);
    switch (r->op) {
    case CONDREAD_EQ:
        return c == 0;
    case CONDREAD_NE:
        return c != 0;
    case CONDREAD_LT:
        return c == -1;
    case CONDREAD_LE:
        return c == -1 || c == 0;
    case CONDREAD_GT:
        return c == 1;
    default:
        return c == 1 || c == 0;
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
        out->r->room = out->length; /* none of those behind either, were it shorter */
    }
}

static void scan(struct result *out, uint64_t rows)
{
    uint8_t block[BLOCK];
    const struct condread_state *s = out->s;
    for (uint64_t done = 0; done < rows;) {
        uint64_t n = smaller(BLOCK / s->row, rows - done);
        PtlHandlerDMAFromHostB((out->r->first + done) * s->row, block, n * s->row, PTL_ME_HOST_MEM);
        for (uint64_t i = 0; i < n; i++) {
            if (matches(out->r, block + i * s->row)) {
                select_row(out, block + i * s->row);
            }
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
