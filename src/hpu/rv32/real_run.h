/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on reals of one format, included by real.c once for each:
 *
 *   REAL, BITS     the format, and an integer of its size
 *   WIDE, WIDE_BITS  a format with more than twice the digits
 *   DIGITS, WIDE_DIGITS  bits of their fractions
 *   WIDE_BIAS      of the exponent of WIDE
 *   NAME           makes names of this format
 *
 * `op` is an operation of floats also for doubles.
 */

#define SIGN ((BITS)1 << (sizeof(BITS) * 8 - 1))
#define QUIET ((BITS)1 << (DIGITS - 1))
#define INFINITE ((BITS) ~(SIGN | (((BITS)1 << DIGITS) - 1)))

static const BITS NAME(canonical) = INFINITE | QUIET;

static inline REAL NAME(from_bits)(BITS bits)
{
    REAL v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline BITS NAME(to_bits)(REAL v)
{
    BITS bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline bool NAME(is_nan)(BITS v)
{
    return (BITS)(v & ~SIGN) > INFINITE;
}

static inline bool NAME(is_signalling)(BITS v)
{
    return NAME(is_nan)(v) && (v & QUIET) == 0;
}

/* Sets the last bit of a wide result that was cut off. NaNs, infinities and zeros are exact, and
 * have no such bit. */
static WIDE NAME(to_odd)(WIDE v)
{
    WIDE_BITS bits;
    HOLD(v);
    if ((_mm_getcsr() & HOST_INEXACT) != 0) {
        memcpy(&bits, &v, sizeof(bits));
        bits |= 1;
        memcpy(&v, &bits, sizeof(v));
    }
    return v;
}

/* Cuts the lowest `shift` bits of a significand off, and rounds it by them. */
static WIDE_BITS NAME(round)(WIDE_BITS all, unsigned shift, unsigned mode, bool sign)
{
    WIDE_BITS kept = all >> shift, cut = all - (kept << shift), half = (WIDE_BITS)1 << (shift - 1);
    bool up = mode == RV32_ROUND_NEAR   ? cut > half || (cut == half && (kept & 1) != 0)
              : mode == RV32_ROUND_AWAY ? cut >= half
              : mode == RV32_ROUND_UP   ? cut != 0 && !sign
                                        : mode == RV32_ROUND_DOWN && cut != 0 && sign;
    return kept + up;
}

/* What a number beyond the greatest one becomes. */
static REAL NAME(overflow)(unsigned mode, BITS sign, unsigned *flags)
{
    bool infinite = mode == RV32_ROUND_UP     ? sign == 0
                    : mode == RV32_ROUND_DOWN ? sign != 0
                                              : mode != RV32_ROUND_ZERO;
    *flags |= OVERFLOW_ | INEXACT;
    return NAME(from_bits)(sign | (infinite ? INFINITE : INFINITE - 1));
}

/* Rounds a wide number; whether a result is tiny is seen after rounding, as the instruction set has
 * it. */
static REAL NAME(narrow)(WIDE v, unsigned mode, unsigned *flags)
{
    enum { LEAST = 2 - (1 << (sizeof(BITS) * 8 - 2 - DIGITS)), SHIFT = WIDE_DIGITS - DIGITS };
    WIDE_BITS bits;
    memcpy(&bits, &v, sizeof(bits));
    bool under = bits >> (sizeof(bits) * 8 - 1) != 0;
    BITS sign = under ? SIGN : 0;
    WIDE_BITS all = bits & (((WIDE_BITS)1 << WIDE_DIGITS) - 1);
    int field = (int)(bits >> WIDE_DIGITS) & (2 * WIDE_BIAS + 1), exponent = field - WIDE_BIAS;
    if (field == 2 * WIDE_BIAS + 1) {
        return NAME(from_bits)(all != 0 ? NAME(canonical) : sign | INFINITE);
    }
    if (field != 0) {
        all |= (WIDE_BITS)1 << WIDE_DIGITS;
    } else {
        exponent++;
    }
    if (exponent > 1 - LEAST) {
        return NAME(overflow)(mode, sign, flags);
    }
    bool small = exponent < LEAST;
    int below = small ? LEAST - exponent : 0;
    unsigned shift = SHIFT + (unsigned)(below < DIGITS + 2 ? below : DIGITS + 2);
    WIDE_BITS kept = NAME(round)(all, shift, mode, under);
    bool inexact = (all & (((WIDE_BITS)1 << shift) - 1)) != 0;
    bool tiny = small &&
                (exponent < LEAST - 1 || NAME(round)(all, SHIFT, mode, under) >> (DIGITS + 1) == 0);
    BITS size = (BITS)kept + (small ? 0 : (BITS)(exponent - LEAST) << DIGITS);
    if (size >= INFINITE) {
        return NAME(overflow)(mode, sign, flags);
    }
    *flags |= (inexact ? INEXACT : 0u) | (inexact && tiny ? UNDERFLOW_ : 0u);
    return NAME(from_bits)(sign | size);
}

/* a * b + c, rounded once. */
static REAL NAME(fuse)(REAL a, REAL b, REAL c, unsigned mode, unsigned *flags)
{
    begin_mode(RV32_ROUND_ZERO);
    HOLD(a);
    HOLD(b);
    HOLD(c);
    WIDE product = (WIDE)a * (WIDE)b, z = (WIDE)c; /* exact */
    HOLD(product);
    HOLD(z);
    WIDE sum = NAME(to_odd)(product + z);
    *flags |= flags_now() & INVALID;
    if (sum == 0) { /* its sign depends on the rounding mode */
        begin_mode(mode);
        HOLD(product);
        HOLD(z);
        sum = product + z;
        HOLD(sum);
    }
    return NAME(narrow)(sum, mode, flags);
}

/* An operation of two numbers as the processor has it, in the mode that is set. */
#define PLAIN(TYPE, name)                                                                          \
    static TYPE NAME(name)(unsigned op, TYPE a, TYPE b)                                            \
    {                                                                                              \
        TYPE r;                                                                                    \
        HOLD(a);                                                                                   \
        HOLD(b);                                                                                   \
        switch (op) {                                                                              \
        case RV32_FADD_S:                                                                          \
            r = a + b;                                                                             \
            break;                                                                                 \
        case RV32_FSUB_S:                                                                          \
            r = a - b;                                                                             \
            break;                                                                                 \
        case RV32_FMUL_S:                                                                          \
            r = a * b;                                                                             \
            break;                                                                                 \
        default:                                                                                   \
            r = a / b;                                                                             \
            break;                                                                                 \
        }                                                                                          \
        HOLD(r);                                                                                   \
        return r;                                                                                  \
    }
PLAIN(REAL, plain)
PLAIN(WIDE, wide)
#undef PLAIN

/* The root never lies at a half, so rounding halves away is rounding to the nearest. */
static REAL NAME(root)(REAL a)
{
    HOLD(a);
    REAL r;
    if (sizeof(REAL) == sizeof(float)) {
        __asm__ volatile("sqrtss %1, %0" : "=x"(r) : "x"(a));
    } else {
        __asm__ volatile("sqrtsd %1, %0" : "=x"(r) : "x"(a));
    }
    return r;
}

static REAL NAME(compute)(unsigned op, REAL a, REAL b, REAL c, unsigned mode, unsigned *flags)
{
    REAL r;
    switch (op) {
    case RV32_FMADD_S:
        r = NAME(fuse)(a, b, c, mode, flags);
        break;
    case RV32_FMSUB_S:
        r = NAME(fuse)(a, b, NAME(from_bits)(NAME(to_bits)(c) ^ SIGN), mode, flags);
        break;
    case RV32_FNMSUB_S:
        r = NAME(fuse)(NAME(from_bits)(NAME(to_bits)(a) ^ SIGN), b, c, mode, flags);
        break;
    case RV32_FNMADD_S:
        r = NAME(fuse)(NAME(from_bits)(NAME(to_bits)(a) ^ SIGN), b,
                       NAME(from_bits)(NAME(to_bits)(c) ^ SIGN), mode, flags);
        break;
    case RV32_FSQRT_S:
        r = NAME(root)(a);
        *flags |= flags_now();
        break;
    default:
        if (mode == RV32_ROUND_AWAY) {
            begin_mode(RV32_ROUND_ZERO);
            HOLD(a);
            HOLD(b);
            WIDE w = NAME(to_odd)(NAME(wide)(op, (WIDE)a, (WIDE)b));
            *flags |= flags_now() & (INVALID | BY_ZERO);
            r = NAME(narrow)(w, mode, flags);
        } else {
            r = NAME(plain)(op, a, b);
            *flags |= flags_now();
        }
        break;
    }
    return NAME(is_nan)(NAME(to_bits)(r)) ? NAME(from_bits)(NAME(canonical)) : r;
}

/* Whether a < b, of numbers. */
static bool NAME(less)(BITS a, BITS b)
{
    bool zeros = (BITS)((a | b) & ~SIGN) == 0, under_a = (a & SIGN) != 0, under_b = (b & SIGN) != 0;
    if (under_a != under_b) {
        return under_a && !zeros;
    }
    return under_a ? a > b : a < b;
}

static BITS NAME(extreme)(bool least, BITS a, BITS b)
{
    if (NAME(is_nan)(a) || NAME(is_nan)(b)) {
        return !NAME(is_nan)(a) ? a : !NAME(is_nan)(b) ? b : NAME(canonical);
    }
    /* of two zeros the one with a sign is less */
    bool less = NAME(less)(a, b) || ((a & SIGN) != 0 && (b & SIGN) == 0);
    return less == least ? a : b;
}

static unsigned NAME(class)(BITS v)
{
    BITS size = v & ~SIGN;
    bool sign = (v & SIGN) != 0;
    if (NAME(is_nan)(v)) {
        return (v & QUIET) != 0 ? 1u << 9 : 1u << 8;
    }
    unsigned at = size == INFINITE ? 0 : size >= (BITS)1 << DIGITS ? 1 : size != 0 ? 2 : 3;
    return 1u << (sign ? at : 7 - at);
}

/* What picks bits of its operands, compares or sorts them. */
static BITS NAME(pick)(unsigned op, BITS a, BITS b, unsigned *flags)
{
    bool nan = NAME(is_nan)(a) || NAME(is_nan)(b);
    bool signalling = NAME(is_signalling)(a) || NAME(is_signalling)(b);
    switch (op) {
    case RV32_FSGNJ_S:
        return (a & ~SIGN) | (b & SIGN);
    case RV32_FSGNJN_S:
        return (a & ~SIGN) | (~b & SIGN);
    case RV32_FSGNJX_S:
        return a ^ (b & SIGN);
    case RV32_FCLASS_S:
        return NAME(class)(a);
    case RV32_FMIN_S:
    case RV32_FMAX_S:
        *flags |= signalling ? INVALID : 0;
        return NAME(extreme)(op == RV32_FMIN_S, a, b);
    case RV32_FEQ_S:
        *flags |= signalling ? INVALID : 0;
        return !nan && (a == b || (BITS)((a | b) & ~SIGN) == 0);
    default:
        *flags |= nan ? INVALID : 0;
        return !nan && (NAME(less)(a, b) || (op == RV32_FLE_S && !NAME(less)(b, a)));
    }
}

#undef SIGN
#undef QUIET
#undef INFINITE
#undef REAL
#undef WIDE
#undef BITS
#undef WIDE_BITS
#undef DIGITS
#undef WIDE_DIGITS
#undef WIDE_BIAS
#undef NAME
