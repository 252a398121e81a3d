/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on a window's memory. Origin and target are walked side by side: each stretch of bytes
 * that goes on at both ends is a block of one operation of libpinwheel-rma. Where both ends are one
 * stretch it is that library's simplest call.
 *
 *      origin   ████  ████  ████          blocks   ████ ██ ██ ████
 *      target   ██████  ██████
 */
#include "move.h"

#include "dynamic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An operation whose arguments are all right. */
struct ready {
    const struct move *m;
    const struct type *origin, *result, *target; /* result: of get_accumulate only */
    size_t bytes;
    enum pw_rma_op op;
    enum pw_rma_type basic;
};

/* ---- Operations ---- */

static const struct {
    MPI_Op op;
    enum pw_rma_op is;
    unsigned classes;
} operations[] = {
    {MPI_SUM, PW_RMA_SUM, CLASS_INTEGER | CLASS_REAL | CLASS_COMPLEX},
    {MPI_REPLACE, PW_RMA_REPLACE, ~0u},
    {MPI_NO_OP, PW_RMA_NO_OP, ~0u},
    {MPI_MAX, PW_RMA_MAX, CLASS_INTEGER | CLASS_REAL},
    {MPI_MIN, PW_RMA_MIN, CLASS_INTEGER | CLASS_REAL},
    {MPI_PROD, PW_RMA_PROD, CLASS_INTEGER | CLASS_REAL | CLASS_COMPLEX},
    {MPI_LAND, PW_RMA_LAND, CLASS_INTEGER | CLASS_LOGICAL},
    {MPI_LOR, PW_RMA_LOR, CLASS_INTEGER | CLASS_LOGICAL},
    {MPI_LXOR, PW_RMA_LXOR, CLASS_INTEGER | CLASS_LOGICAL},
    {MPI_BAND, PW_RMA_BAND, CLASS_INTEGER | CLASS_BYTE},
    {MPI_BOR, PW_RMA_BOR, CLASS_INTEGER | CLASS_BYTE},
    {MPI_BXOR, PW_RMA_BXOR, CLASS_INTEGER | CLASS_BYTE},
    {MPI_MAXLOC, PW_RMA_MAXLOC, CLASS_PAIR},
    {MPI_MINLOC, PW_RMA_MINLOC, CLASS_PAIR},
};

enum fit { FITS, NO_SUCH_OPERATION, NO_MEANING, NO_SWAP };

/* Which operation of ours an MPI_Op is on a type. */
static enum fit find_op(const struct move *m, const struct type *type, enum pw_rma_op *op)
{
    if (m->kind == MOVE_COMPARE_SWAP) {
        unsigned fits = CLASS_INTEGER | CLASS_LOGICAL | CLASS_BYTE;
        return (type->class & fits) != 0 && type->lasts ? FITS : NO_SWAP;
    }
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (operations[i].op == m->op) {
            *op = operations[i].is;
            return (operations[i].classes & type->class) != 0 ? FITS : NO_MEANING;
        }
    }
    return NO_SUCH_OPERATION;
}

static int choose_op(struct window *w, struct ready *r)
{
    static const char *const texts[] = {
        [NO_SUCH_OPERATION] = "the operation must be a predefined one",
        [NO_MEANING] = "the operation has no meaning for the type",
        [NO_SWAP] = "the type must be a predefined one of integers, logicals or bytes"};
    enum fit fit = find_op(r->m, r->target, &r->op);
    return fit == FITS ? MPI_SUCCESS
                       : window_error(w, fit == NO_SWAP ? MPI_ERR_TYPE : MPI_ERR_OP, "%s: %s",
                                      r->m->call, texts[fit]);
}

/* ---- Sending ---- */

static int send_plain(const struct ready *r, struct pw_rma_key *key, uint64_t base,
                      struct pw_rma_request *request)
{
    const struct move *m = r->m;
    size_t n = m->kind >= MOVE_ACCUMULATE ? r->bytes / pw_rma_type_size(r->basic) : r->bytes;
    switch (m->kind) {
    case MOVE_PUT:
        return pw_rma_put(key, m->origin.start, n, base, request);
    case MOVE_GET:
        return pw_rma_get(key, m->origin.start, n, base, request);
    case MOVE_ACCUMULATE:
        return pw_rma_accumulate(key, m->origin.start, n, base, r->op, r->basic, request);
    case MOVE_COMPARE_SWAP:
        return pw_rma_compare_swap(key, m->origin.start, m->compare, m->result.start, base,
                                   r->basic, request);
    default:
        return pw_rma_get_accumulate(key, m->origin.start, m->result.start, n, base, r->op,
                                     r->basic, request);
    }
}

static int send_blocks(const struct ready *r, struct pw_rma_key *key,
                       const struct pw_rma_block *blocks, size_t n, struct pw_rma_request *request)
{
    switch (r->m->kind) {
    case MOVE_PUT:
        return pw_rma_put_blocks(key, blocks, n, request);
    case MOVE_GET:
        return pw_rma_get_blocks(key, blocks, n, request);
    case MOVE_ACCUMULATE:
        return pw_rma_accumulate_blocks(key, blocks, n, r->op, r->basic, request);
    default:
        return pw_rma_get_accumulate_blocks(key, blocks, n, r->op, r->basic, request);
    }
}

struct walks {
    struct walk origin, result, target;
    size_t left;
};

static struct walks walks_begin(const struct ready *r, uint64_t base)
{
    const struct move *m = r->m;
    return (struct walks){
        .origin = {r->origin, (uintptr_t)m->origin.start, 0, 0, 0},
        .result = {r->result, (uintptr_t)m->result.start, 0, 0, 0},
        .target = {r->target, base, 0, 0, 0},
        .left = r->bytes,
    };
}

/* The next stretch of bytes that goes on at all ends. */
static struct pw_rma_block next_block(const struct ready *r, struct walks *s)
{
    struct pw_rma_block b = {0};
    uint64_t at;
    size_t n = walk_left(&s->target, s->left, &b.offset);
    if (r->origin != NULL) {
        n = walk_left(&s->origin, n, &at);
        b.local = (void *)(uintptr_t)at;
    }
    if (r->result != NULL) {
        n = walk_left(&s->result, n, &at);
        b.result = (void *)(uintptr_t)at;
        walk_on(&s->result, n);
    }
    if (r->origin != NULL) {
        walk_on(&s->origin, n);
    }
    walk_on(&s->target, n);
    s->left -= n;
    b.length = n;
    return b;
}

/* With a request all blocks are one operation; without, they go in portions. */
static int send_all(const struct ready *r, struct pw_rma_key *key, uint64_t base,
                    struct pw_rma_request *request)
{
    enum { PORTION = 128 };
    struct pw_rma_block portion[PORTION], *blocks = portion;
    struct walks s = walks_begin(r, base);
    size_t count = 0, room = PORTION;
    int rc = 0;
    while (s.left > 0 && rc == 0) {
        if (count == room && request == NULL) {
            rc = send_blocks(r, key, blocks, count, NULL);
            count = 0;
        } else if (count == room) {
            struct pw_rma_block *larger = malloc(2 * room * sizeof(*larger));
            if (larger == NULL) {
                rc = -ENOMEM;
                break;
            }
            for (size_t i = 0; i < count; i++) {
                larger[i] = blocks[i];
            }
            if (blocks != portion) {
                free(blocks);
            }
            blocks = larger;
            room *= 2;
        }
        blocks[count++] = next_block(r, &s);
    }
    rc = rc == 0 ? send_blocks(r, key, blocks, count, request) : rc;
    if (blocks != portion) {
        free(blocks);
    }
    return rc;
}

static int send_move(const struct ready *r, struct pw_rma_key *key, uint64_t base,
                     struct pw_rma_request *request)
{
    bool plain = r->target->plain && (r->origin == NULL || r->origin->plain) &&
                 (r->result == NULL || r->result->plain);
    return plain ? send_plain(r, key, base, request) : send_all(r, key, base, request);
}

/* ---- Where ---- */

/* The bytes that an operation touches at the target, from *low up to *high. */
static bool find_range(const struct ready *r, uint64_t unit, __int128 *low, __int128 *high)
{
    __int128 start = (__int128)r->m->disp * unit;
    __int128 last = (__int128)(r->m->count - 1) * r->target->extent;
    *low = start + r->target->low + (last < 0 ? last : 0);
    *high = start + r->target->high + (last > 0 ? last : 0);
    return *low >= 0 && *high <= (__int128)UINT64_MAX;
}

static int out_of_range(struct window *w, const struct move *m, uint64_t length)
{
    return window_error(w, MPI_ERR_RMA_RANGE,
                        "%s: displacement %td with %lld elements is outside the %llu bytes of rank "
                        "%d",
                        m->call, m->disp, (long long)m->count, (unsigned long long)length, m->rank);
}

/* Finds the attached memory of a stretch, and sends as much of it as lies there: *sent. */
static int send_piece(struct window *w, struct target *t, const struct ready *r,
                      const struct pw_rma_block *b, size_t *sent)
{
    struct pw_rma_key *key;
    struct pw_rma_request request;
    uint64_t base;
    struct pw_rma_block part = *b;
    int rc = dynamic_find(w, t, b->offset, b->offset + 1, &key, &base);
    if (rc != 0) {
        return rc;
    }
    uint64_t left = base + pw_rma_key_length(key) - b->offset;
    part.length = left < b->length ? left : b->length;
    part.offset -= base;
    rc = send_blocks(r, key, &part, 1, &request);
    *sent = part.length;
    return rc == 0 ? pw_rma_wait(&request) : rc;
}

/* An operation whose bytes are in several pieces of attached memory, stretch by stretch. */
static int send_pieces(struct window *w, struct target *t, const struct ready *r)
{
    struct walks s = walks_begin(r, (uint64_t)r->m->disp);
    int rc = r->m->kind == MOVE_COMPARE_SWAP ? -ESTALE : 0;
    while (s.left > 0 && rc == 0) {
        struct pw_rma_block b = next_block(r, &s);
        while (b.length > 0 && rc == 0) {
            size_t sent = 0;
            rc = send_piece(w, t, r, &b, &sent);
            b.local = b.local != NULL ? (char *)b.local + sent : NULL;
            b.result = b.result != NULL ? (char *)b.result + sent : NULL;
            b.offset += sent;
            b.length -= sent;
        }
    }
    return rc;
}

/* All of an operation to one piece. */
static int send_whole(struct window *w, struct target *t, const struct ready *r, uint64_t low,
                      uint64_t high)
{
    struct pw_rma_key *key;
    struct pw_rma_request request;
    uint64_t base;
    int rc = dynamic_find(w, t, low, high, &key, &base);
    if (rc == 0) {
        rc = send_move(r, key, (uint64_t)r->m->disp - base, &request);
    }
    return rc == 0 ? pw_rma_wait(&request) : rc;
}

/* A dynamic window's memory is looked up, and the operation waited for: a region that is gone is
 * told then, and another one may be at the same addresses. */
static int move_dynamic(struct window *w, struct target *t, const struct ready *r)
{
    __int128 low, high;
    if (!find_range(r, 1, &low, &high)) {
        return out_of_range(w, r->m, 0);
    }
    pthread_mutex_lock(&w->lock);
    int rc = send_whole(w, t, r, (uint64_t)low, (uint64_t)high);
    if (rc == -ESTALE) {
        dynamic_drop(t);
        rc = send_whole(w, t, r, (uint64_t)low, (uint64_t)high);
    }
    rc = rc == -ESTALE ? send_pieces(w, t, r) : rc;
    pthread_mutex_unlock(&w->lock);
    if (rc != 0) {
        return window_error(w, class_of(rc),
                            "%s: address 0x%llx is in no memory that rank %d has attached",
                            r->m->call, (unsigned long long)r->m->disp, r->m->rank);
    }
    return MPI_SUCCESS;
}

static int move_static(struct window *w, const struct target *t, const struct ready *r,
                       struct pw_rma_request *request)
{
    __int128 low, high;
    if (!find_range(r, t->disp_unit, &low, &high) || high > (__int128)t->length) {
        return out_of_range(w, r->m, t->length);
    }
    int rc = send_move(r, t->key, (uint64_t)r->m->disp * t->disp_unit, request);
    if (rc != 0) {
        return window_error(w, class_of(rc), "%s: rank %d: error %d", r->m->call, r->m->rank, rc);
    }
    return MPI_SUCCESS;
}

/* ---- Arguments ---- */

static int side_type(struct window *w, const struct move *m, const struct side *s,
                     const struct type **type)
{
    if (s->count < 0) {
        return window_error(w, MPI_ERR_COUNT, "%s: count %lld", m->call, (long long)s->count);
    }
    int rc = type_of(s->datatype, type);
    return rc == MPI_SUCCESS ? rc : window_error(w, rc, "%s: a datatype is none", m->call);
}

static int check_types(struct window *w, struct ready *r)
{
    const struct move *m = r->m;
    if (m->kind >= MOVE_ACCUMULATE) {
        if (r->target->class == CLASS_MIXED ||
            (r->origin != NULL && r->origin->size > 0 &&
             (r->origin->basic != r->target->basic || r->origin->class == CLASS_MIXED))) {
            return window_error(w, MPI_ERR_TYPE, "%s: all elements must be of one predefined type",
                                m->call);
        }
        r->basic = r->target->basic;
    }
    if ((r->origin != NULL && r->origin->size * (size_t)m->origin.count != r->bytes) ||
        (r->result != NULL && r->result->size * (size_t)m->result.count != r->bytes)) {
        return window_error(w, MPI_ERR_TYPE, "%s: the target has %zu bytes, but not this process",
                            m->call, r->bytes);
    }
    return MPI_SUCCESS;
}

/* Finds the types, and which operation it is. What was found is dropped by ready_drop(). */
static int get_ready(struct window *w, const struct move *m, struct ready *r)
{
    struct side target = {NULL, m->count, m->datatype};
    bool reads = m->kind == MOVE_GET_ACCUMULATE && m->op == MPI_NO_OP;
    *r = (struct ready){.m = m};
    int rc = side_type(w, m, &target, &r->target);
    if (rc == MPI_SUCCESS && !reads) {
        rc = side_type(w, m, &m->origin, &r->origin);
    }
    if (rc == MPI_SUCCESS && m->kind >= MOVE_GET_ACCUMULATE) {
        rc = side_type(w, m, &m->result, &r->result);
    }
    if (rc == MPI_SUCCESS) {
        r->bytes = r->target->size * (size_t)m->count;
        rc = m->kind >= MOVE_ACCUMULATE ? choose_op(w, r) : rc;
    }
    return rc == MPI_SUCCESS ? check_types(w, r) : rc;
}

static void ready_drop(const struct ready *r)
{
    const struct type *types[] = {r->origin, r->result, r->target};
    for (int i = 0; i < 3; i++) {
        if (types[i] != NULL) {
            type_drop(types[i]);
        }
    }
}

static void count(struct window *w, const struct move *m)
{
    _Atomic uint64_t *counter = m->kind == MOVE_PUT   ? &w->puts
                                : m->kind == MOVE_GET ? &w->gets
                                                      : &w->atomics;
    /* of several threads at once some are missed */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Begins an operation that has bytes, or finishes it. */
static int run(struct window *w, const struct ready *r, struct pw_rma_request *request, bool *over)
{
    struct target *t;
    int rc = window_target(w, (uint32_t)r->m->rank, &t);
    if (rc != MPI_SUCCESS) {
        return window_error(w, rc, "%s: rank %d cannot be reached", r->m->call, r->m->rank);
    }
    count(w, r->m);
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        *over = true;
        return move_dynamic(w, t, r);
    }
    return move_static(w, t, r, request);
}

int move_run(struct window *w, const struct move *m, MPI_Request *request)
{
    struct ready r;
    struct pending *p = NULL;
    bool over = false;
    if (m->rank == MPI_PROC_NULL) {
        return request != NULL ? request_over(NULL, request) : MPI_SUCCESS;
    }
    int rc = epoch_check(w, m->call, m->rank);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = get_ready(w, m, &r);
    if (rc == MPI_SUCCESS && request != NULL && (p = request_make()) == NULL) {
        rc = window_error(w, MPI_ERR_NO_MEM, "%s: no memory for a request", m->call);
    }
    if (rc == MPI_SUCCESS && r.bytes > 0) {
        rc = run(w, &r, p != NULL ? &p->request : NULL, &over);
    } else {
        over = true;
    }
    ready_drop(&r);
    if (p == NULL) {
        return rc;
    }
    if (rc != MPI_SUCCESS) {
        free(p);
        return rc;
    }
    return over ? request_over(p, request) : request_begun(p, request);
}

int move_quick(struct window *w, const struct move *m)
{
    const struct type *type = type_known(m->datatype);
    if (m->rank < 0 || (uint32_t)m->rank >= w->ranks->size || type == NULL ||
        m->origin.datatype != m->datatype || m->origin.count != m->count) {
        return MOVE_NOT_QUICK;
    }
    struct ready r = {.m = m, .basic = type->basic};
    if (m->kind >= MOVE_ACCUMULATE &&
        ((m->kind != MOVE_ACCUMULATE &&
          (m->result.datatype != m->datatype || m->result.count != m->count)) ||
         find_op(m, type, &r.op) != FITS)) {
        return MOVE_NOT_QUICK;
    }
    struct target *t = target_find(w, (uint32_t)m->rank);
    if (t == NULL || (!w->all_locked && t->locked == UNLOCKED) ||
        __atomic_load_n(&t->peer, __ATOMIC_ACQUIRE) == NULL || t->key == NULL || m->disp < 0) {
        return MOVE_NOT_QUICK;
    }
    uint64_t at, end;
    if (__builtin_mul_overflow((uint64_t)m->count, type->size, &r.bytes) ||
        __builtin_mul_overflow((uint64_t)m->disp, t->disp_unit, &at) ||
        __builtin_add_overflow(at, r.bytes, &end) || end > t->length || r.bytes == 0) {
        return MOVE_NOT_QUICK;
    }
    count(w, m);
    int rc = send_plain(&r, t->key, at, NULL);
    return rc == 0 ? MPI_SUCCESS
                   : window_error(w, class_of(rc), "%s: rank %d: error %d", m->call, m->rank, rc);
}
