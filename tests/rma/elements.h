/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trials of one atomic operation on a row of elements, whatever their type: what rank 0 gets and
 * what is there afterwards are those of a model.
 */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "region.h"

enum { ELEMENTS = 300, WIDEST = 32, LENGTH = ELEMENTS * WIDEST, REAL_LONG = 10 };

static _Alignas(64) unsigned char memory[LENGTH], model[LENGTH], data[LENGTH], old[LENGTH],
    found[LENGTH];

/* What a program knows of its types: it fills elements, and does an operation on `count` of them.
 */
struct elements {
    void (*fill)(unsigned char *to, enum pw_rma_type type, uint64_t *state);
    void (*run)(enum pw_rma_op op, enum pw_rma_type type, unsigned char *target,
                const unsigned char *from, size_t count);
    enum pw_rma_path path;
};

/* Compares elements; of a long double the ten bytes that mean something. */
static inline void elements_same(const unsigned char *a, const unsigned char *b,
                                 enum pw_rma_type type, enum pw_rma_op op)
{
    size_t size = pw_rma_type_size(type);
    bool longs = type == PW_RMA_LONG_DOUBLE || type == PW_RMA_LONG_DOUBLE_COMPLEX;
    for (size_t i = 0; i < ELEMENTS * size; i++) {
        if ((!longs || i % 16 < REAL_LONG) && a[i] != b[i]) {
            FAIL("type %d, operation %d, element %zu: byte %zu is %02x, not %02x", (int)type,
                 (int)op, i / size, i % size, a[i], b[i]);
        }
    }
}

/* One operation on one type, with and without the old values; `shift` puts all of it off its
 * natural alignment. */
static inline void elements_try(const struct elements *how, struct pw_rma_key *key,
                                enum pw_rma_op op, enum pw_rma_type type, bool fetches,
                                unsigned shift, uint64_t *state)
{
    struct pw_rma_request request;
    struct pw_rma_request *r = splitmix(state) % 2 == 0 ? &request : NULL;
    struct pw_rma_peer *peer = pw_rma_key_peer(key);
    size_t size = pw_rma_type_size(type), whole = (ELEMENTS - 1) * size;
    size_t first = splitmix(state) % 20, count = ELEMENTS - 20 - splitmix(state) % 40;
    size_t at = first * size;
    CHECK_EQ(pw_rma_path(key, op, type), how->path);
    memset(model, 0, LENGTH);
    how->fill(model, type, state);
    how->fill(data, type, state);
    memset(old, 0x5a, LENGTH);
    memcpy(found, old, LENGTH);
    DONE(pw_rma_put(key, model, whole, shift, NULL));
    DONE(pw_rma_flush(peer));
    if (fetches) {
        memcpy(old + at, model + at, count * size);
        DONE(pw_rma_get_accumulate(key, data + at, found + at, count, shift + at, op, type, r));
    } else {
        DONE(pw_rma_accumulate(key, data + at, count, shift + at, op, type, r));
    }
    DONE(r != NULL ? pw_rma_wait(r) : pw_rma_flush(peer));
    elements_same(found, old, type, op);
    if (op != PW_RMA_NO_OP) {
        how->run(op, type, model + at, data + at, count);
    }
    memcpy(found, model, LENGTH);
    DONE(pw_rma_get(key, found, whole, shift, NULL));
    DONE(pw_rma_flush(peer));
    elements_same(found, model, type, op);
}

#endif
