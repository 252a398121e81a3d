/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of real.h, by those of this processor (SSE2), whose rounding modes and flags are
 * set before and read after each one; the thread's own are as before then.
 *
 *   rounding to the nearest, halves away from zero, and fused operations, which SSE2 lacks:
 *   wide ──towards zero, its last bit set if anything was cut off──► narrow
 *
 * A wide format has more than twice the digits and two, so that the second rounding is exact: it
 * sees on which side of a half the result lies (rounding to odd).
 */
#include "real.h"

#include <string.h>
#include <xmmintrin.h>

enum { INEXACT = 1, UNDERFLOW_ = 2, OVERFLOW_ = 4, BY_ZERO = 8, INVALID = 16 }; /* in fcsr */

/* Keeps the compiler from moving an operation on `v` to before or behind this place. */
#define HOLD(v) __asm__ volatile("" : "+x"(v))

/* ---- The processor's modes and flags ---- */

enum { MASKS = 0x1f80, HOST_INEXACT = 0x20 };

static void begin_mode(unsigned mode)
{
    static const uint16_t modes[] = {[RV32_ROUND_NEAR] = 0,
                                     [RV32_ROUND_ZERO] = 3,
                                     [RV32_ROUND_DOWN] = 1,
                                     [RV32_ROUND_UP] = 2,
                                     [RV32_ROUND_AWAY] = 0};
    _mm_setcsr(MASKS | (unsigned)modes[mode] << 13);
}

static unsigned flags_now(void)
{
    static const uint8_t flags[] = {INVALID, 0, BY_ZERO, OVERFLOW_, UNDERFLOW_, INEXACT};
    unsigned host = _mm_getcsr(), ours = 0;
    for (unsigned i = 0; i < sizeof(flags); i++) {
        ours |= (host >> i & 1) != 0 ? flags[i] : 0u;
    }
    return ours;
}

/* ---- Floats ---- */

#define REAL float
#define WIDE double
#define BITS uint32_t
#define WIDE_BITS uint64_t
#define DIGITS 23
#define WIDE_DIGITS 52
#define WIDE_BIAS 1023
#define NAME(name) name##_s
#include "real_run.h"

static float unbox(uint64_t v)
{
    uint32_t bits = (v & RV32_BOXED) == RV32_BOXED ? (uint32_t)v : canonical_s;
    return from_bits_s(bits);
}

static uint64_t box(float v)
{
    return RV32_BOXED | to_bits_s(v);
}

/* ---- Doubles ---- */

__extension__ typedef __float128 quad;
__extension__ typedef unsigned __int128 quad_bits;

#define REAL double
#define WIDE quad
#define BITS uint64_t
#define WIDE_BITS quad_bits
#define DIGITS 52
#define WIDE_DIGITS 112
#define WIDE_BIAS 16383
#define NAME(name) name##_d
#include "real_run.h"

/* ---- Operations ---- */

/* One operation, with the flags that it has raised so far. */
struct real {
    unsigned op, mode, flags;
    uint64_t a, b, c;
};

static bool is_double(unsigned op)
{
    return (op - RV32_FADD_S) % 2 != 0;
}

/* An operation on floats, whose result is a float; `op` is that of floats. */
static float compute_float(struct real *r)
{
    float a = unbox(r->a), b = unbox(r->b), c = unbox(r->c);
    return compute_s(r->op, a, b, c, r->mode, &r->flags);
}

static double compute_double(struct real *r)
{
    return compute_d(r->op - 1, from_bits_d(r->a), from_bits_d(r->b), from_bits_d(r->c), r->mode,
                     &r->flags);
}

/* Returns an integer rounded from a real: the nearest one that it can hold if there is none. */
static uint32_t to_integer(struct real *r, double v, bool is_nan, bool is_signed)
{
    double least = is_signed ? -2147483648.0 : 0, most = is_signed ? 2147483647.0 : 4294967295.0;
    if (is_nan || v >= 8589934592.0 || v <= -8589934592.0) {
        r->flags |= INVALID;
        return is_nan || v > 0 ? (is_signed ? INT32_MAX : UINT32_MAX)
                               : (is_signed ? (uint32_t)INT32_MIN : 0);
    }
    double whole = (double)(int64_t)v, rest = v - whole, step = 0;
    bool odd = ((int64_t)v & 1) != 0;
    switch (r->mode) {
    case RV32_ROUND_NEAR:
        step = rest > 0.5 || (rest == 0.5 && odd)     ? 1
               : rest < -0.5 || (rest == -0.5 && odd) ? -1
                                                      : 0;
        break;
    case RV32_ROUND_DOWN:
        step = rest < 0 ? -1 : 0;
        break;
    case RV32_ROUND_UP:
        step = rest > 0 ? 1 : 0;
        break;
    case RV32_ROUND_AWAY:
        step = rest >= 0.5 ? 1 : rest <= -0.5 ? -1 : 0;
        break;
    default:
        break;
    }
    whole += step;
    if (whole < least || whole > most) {
        r->flags |= INVALID;
        whole = whole < least ? least : most;
    } else if (rest != 0) {
        r->flags |= INEXACT;
    }
    return (uint32_t)(int64_t)whole;
}

static uint32_t convert_to_integer(struct real *r)
{
    bool is_signed = r->op == RV32_FCVT_W_S || r->op == RV32_FCVT_W_D;
    if (is_double(r->op)) {
        double v = from_bits_d(r->a);
        return to_integer(r, v, is_nan_d(r->a), is_signed);
    }
    float v = unbox(r->a);
    return to_integer(r, is_nan_s(to_bits_s(v)) ? 0 : (double)v, is_nan_s(to_bits_s(v)), is_signed);
}

static uint64_t convert_float(struct real *r, double from)
{
    return box(narrow_s(from, r->mode, &r->flags));
}

static uint64_t float_of_double(struct real *r)
{
    if (is_nan_d(r->a)) {
        r->flags |= is_signalling_d(r->a) ? INVALID : 0;
        return RV32_BOXED | canonical_s;
    }
    return convert_float(r, from_bits_d(r->a));
}

static uint64_t double_of_float(struct real *r)
{
    float v = unbox(r->a);
    if (is_nan_s(to_bits_s(v))) {
        r->flags |= is_signalling_s(to_bits_s(v)) ? INVALID : 0;
        return canonical_d;
    }
    return to_bits_d((double)v);
}

/* Operations on bits, without rounding. */
static uint64_t pick(struct real *r)
{
    uint32_t a = to_bits_s(unbox(r->a)), b = to_bits_s(unbox(r->b));
    return is_double(r->op) ? pick_d(r->op - 1, r->a, r->b, &r->flags)
                            : pick_s(r->op, a, b, &r->flags);
}

/* Runs it; the result is an integer's if that is what its register holds. */
static uint64_t run(struct real *r)
{
    switch (r->op) {
    case RV32_FMV_X_W:
        return (uint32_t)r->a;
    case RV32_FMV_W_X:
        return RV32_BOXED | (uint32_t)r->a;
    case RV32_FCVT_S_D:
        return float_of_double(r);
    case RV32_FCVT_D_S:
        return double_of_float(r);
    case RV32_FCVT_S_W:
        return convert_float(r, (int32_t)r->a);
    case RV32_FCVT_S_WU:
        return convert_float(r, (uint32_t)r->a);
    case RV32_FCVT_D_W:
        return to_bits_d((int32_t)r->a);
    case RV32_FCVT_D_WU:
        return to_bits_d((uint32_t)r->a);
    case RV32_FCVT_W_S ... RV32_FCVT_WU_D:
        return convert_to_integer(r);
    case RV32_FSGNJ_S ... RV32_FMAX_D:
        return is_double(r->op) ? pick(r) : RV32_BOXED | pick(r);
    case RV32_FEQ_S ... RV32_FCLASS_D:
        return pick(r);
    default:
        return is_double(r->op) ? to_bits_d(compute_double(r)) : box(compute_float(r));
    }
}

bool rv32_real_run(struct rv32_core *core, const struct rv32_cell *ip)
{
    const struct rv32_traits *t = &rv32_traits[ip->op];
    unsigned mode = (unsigned)ip->imm >> 8, host = _mm_getcsr();
    bool rounds = (t->reals & RV32_REAL_ROUNDS) != 0;
    if (mode == RV32_ROUND_DYNAMIC) {
        mode = core->fcsr >> 5;
    }
    if (rounds && mode > RV32_ROUND_AWAY) {
        return false;
    }
    struct real r = {.op = ip->op,
                     .mode = mode,
                     .a = (t->reals & RV32_REAL_RS1) != 0 ? core->f[ip->rs1] : core->x[ip->rs1],
                     .b = core->f[ip->rs2],
                     .c = core->f[ip->imm % RV32_REALS_AT]};
    begin_mode(rounds ? mode : (unsigned)RV32_ROUND_NEAR);
    uint64_t result = run(&r);
    _mm_setcsr(host);
    core->fcsr |= r.flags;
    if ((t->reals & RV32_REAL_RD) != 0) {
        core->f[ip->rd] = result;
    } else {
        core->x[ip->rd] = (uint32_t)result;
    }
    return true;
}

void rv32_real_rule(struct rv32_core *core, const struct rv32_cell *ip)
{
    enum { FLAGS = 31, MODES = 7, FLAG_BITS = 5, ALL = 255 };
    uint32_t shift = ip->imm == RV32_CSR_FRM ? FLAG_BITS : 0;
    uint32_t mask = ip->imm == RV32_CSR_FRM ? MODES : ip->imm == RV32_CSR_FFLAGS ? FLAGS : ALL;
    uint32_t old = core->fcsr >> shift & mask;
    bool immediate = ip->op >= RV32_CSRRWI;
    uint32_t operand = immediate ? ip->rs1 : core->x[ip->rs1];
    uint32_t now = ip->op == RV32_CSRRW || ip->op == RV32_CSRRWI   ? operand
                   : ip->op == RV32_CSRRS || ip->op == RV32_CSRRSI ? old | operand
                                                                   : old & ~operand;
    core->fcsr = (core->fcsr & ~(mask << shift)) | (now & mask) << shift;
    core->x[ip->rd] = old;
}
