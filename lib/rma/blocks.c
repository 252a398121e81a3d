/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on many blocks: lists, and vectors of equally long ones. All blocks are checked before
 * the first is sent. Each is done on mapped memory, or is a message of its own, or several where it
 * is longer than one may be; all of them are one operation with one request.
 */
#include "inside.h"

enum verb { PUT, GET, ACCUMULATE, GET_ACCUMULATE };

struct job {
    enum verb verb;
    enum pw_rma_op op;
    enum pw_rma_type type;
    size_t count;
    const struct pw_rma_block *blocks; /* NULL: those of `vector` */
    const struct pw_rma_vector *vector;
};

/* Strides may be negative: sums wrap, and what is outside of the region is found by the check. */
static struct pw_rma_block block_at(const struct job *j, size_t i)
{
    const struct pw_rma_vector *v = j->vector;
    if (j->blocks != NULL) {
        return j->blocks[i];
    }
    return (struct pw_rma_block){
        .local = (void *)((uintptr_t)v->local + (uintptr_t)v->local_stride * i),
        .result = (void *)((uintptr_t)v->result + (uintptr_t)v->result_stride * i),
        .offset = v->offset + (uint64_t)v->stride * i,
        .length = v->length,
    };
}

static void take_block(struct atomic *a, const struct job *j, const struct pw_rma_block *b)
{
    a->from = b->local;
    a->result = j->verb == GET_ACCUMULATE ? b->result : NULL;
    a->offset = b->offset;
}

static int check_block(const struct job *j, const struct pw_rma_key *key,
                       const struct pw_rma_block *b)
{
    struct atomic a = {.op = j->op, .type = j->type};
    switch (j->verb) {
    case PUT:
        return operation_check(key, b->local, b->length, b->offset, PW_RMA_WRITE);
    case GET:
        return operation_check(key, b->local, b->length, b->offset, PW_RMA_READ);
    default:
        take_block(&a, j, b);
        if (j->verb == GET_ACCUMULATE && a.result == NULL) {
            return -EINVAL;
        }
        return atomic_check(&a, key, b->length);
    }
}

static int send_block(const struct job *j, struct atomic *a, const struct pw_rma_block *b)
{
    struct pw_rma_key *key = a->o.key;
    switch (j->verb) {
    case PUT:
        return direct_put(key, b->local, b->length, b->offset)
                   ? 0
                   : put_send(&a->o, b->local, b->length, b->offset);
    case GET:
        return direct_get(key, b->local, b->length, b->offset)
                   ? 0
                   : get_send(&a->o, b->local, b->length, b->offset);
    default:
        take_block(a, j, b);
        return direct_atomic(a, key, b->length, NULL) ? 0 : atomic_send(a, b->length);
    }
}

static int run(const struct job *j, struct pw_rma_key *key, struct pw_rma_request *request)
{
    struct atomic a = {.op = j->op, .type = j->type};
    int rc = 0;
    for (size_t i = 0; i < j->count && rc == 0; i++) {
        struct pw_rma_block b = block_at(j, i);
        rc = check_block(j, key, &b);
    }
    if (rc != 0) {
        return rc;
    }
    operation_begin(&a.o, key, request);
    for (size_t i = 0; i < j->count && rc == 0; i++) {
        struct pw_rma_block b = block_at(j, i);
        rc = send_block(j, &a, &b);
    }
    operation_begun(&a.o);
    return rc;
}

int pw_rma_put_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks, size_t count,
                      struct pw_rma_request *request)
{
    return run(&(struct job){.verb = PUT, .blocks = blocks, .count = count}, key, request);
}

int pw_rma_get_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks, size_t count,
                      struct pw_rma_request *request)
{
    return run(&(struct job){.verb = GET, .blocks = blocks, .count = count}, key, request);
}

int pw_rma_accumulate_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks,
                             size_t count, enum pw_rma_op op, enum pw_rma_type type,
                             struct pw_rma_request *request)
{
    return run(&(struct job){ACCUMULATE, op, type, count, blocks, NULL}, key, request);
}

int pw_rma_get_accumulate_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks,
                                 size_t count, enum pw_rma_op op, enum pw_rma_type type,
                                 struct pw_rma_request *request)
{
    return run(&(struct job){GET_ACCUMULATE, op, type, count, blocks, NULL}, key, request);
}

int pw_rma_put_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                      struct pw_rma_request *request)
{
    return run(&(struct job){.verb = PUT, .vector = vector, .count = vector->count}, key, request);
}

int pw_rma_get_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                      struct pw_rma_request *request)
{
    return run(&(struct job){.verb = GET, .vector = vector, .count = vector->count}, key, request);
}

int pw_rma_accumulate_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                             enum pw_rma_op op, enum pw_rma_type type,
                             struct pw_rma_request *request)
{
    return run(&(struct job){ACCUMULATE, op, type, vector->count, NULL, vector}, key, request);
}

int pw_rma_get_accumulate_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                                 enum pw_rma_op op, enum pw_rma_type type,
                                 struct pw_rma_request *request)
{
    return run(&(struct job){GET_ACCUMULATE, op, type, vector->count, NULL, vector}, key, request);
}
