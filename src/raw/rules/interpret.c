/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of interpret.h. A value knows what it is: a number, or an offset into one of the
 * few memories that a program has. */
#include "raw/rules/interpret.h"

#include <string.h>

enum kind { NOTHING, NUMBER, CONTEXT, FRAME, END, META, STACK, MAP, COUNTER };
enum { REGISTERS = 11, STACK_BYTES = 512, STEPS_MOST = 1 << 20 };

struct value {
    enum kind kind;
    uint64_t n; /* the number; of an address the offset in its memory, of STACK from its end */
};

struct machine {
    struct raw_interpreted *run;
    struct value r[REGISTERS];
    uint8_t stack[STACK_BYTES];
    bool written[STACK_BYTES];
    bool has_meta;
    uint8_t meta[RAW_META];
};

static struct value number(uint64_t n)
{
    return (struct value){NUMBER, n};
}

static bool stack_at(int64_t at, unsigned size)
{
    return at >= -STACK_BYTES && at + (int64_t)size <= 0;
}

static bool load(struct machine *m, unsigned size, struct value from, int16_t off, struct value *to)
{
    int64_t at = (int64_t)from.n + off;
    uint64_t n = 0;
    if (from.kind == CONTEXT && size == 4) {
        switch (at) {
        case offsetof(struct xdp_md, data):
            *to = (struct value){FRAME, 0};
            return true;
        case offsetof(struct xdp_md, data_end):
            *to = (struct value){END, m->run->length};
            return true;
        case offsetof(struct xdp_md, data_meta):
            *to = (struct value){META, m->has_meta ? (uint64_t)-RAW_META : 0};
            return true;
        case offsetof(struct xdp_md, rx_queue_index):
            *to = number(m->run->queue);
            return true;
        default:
            return false;
        }
    }
    if (from.kind == FRAME && at >= 0 && (uint64_t)at + size <= m->run->length) {
        memcpy(&n, m->run->frame + at, size);
    } else if (from.kind == STACK && stack_at(at, size)) {
        for (unsigned i = 0; i < size; i++) {
            if (!m->written[STACK_BYTES + at + i]) {
                return false;
            }
        }
        memcpy(&n, m->stack + STACK_BYTES + at, size);
    } else {
        return false;
    }
    *to = number(n);
    return true;
}

static bool store(struct machine *m, unsigned size, struct value to, int16_t off, struct value what)
{
    int64_t at = (int64_t)to.n + off;
    if (what.kind != NUMBER) {
        return false;
    }
    if (to.kind == STACK && stack_at(at, size)) {
        memcpy(m->stack + STACK_BYTES + at, &what.n, size);
        memset(m->written + STACK_BYTES + at, true, size);
        return true;
    }
    if (to.kind == META && m->has_meta && at >= -RAW_META && at + (int64_t)size <= 0) {
        memcpy(m->meta + RAW_META + at, &what.n, size);
        return true;
    }
    return false;
}

static bool add_atomic(struct machine *m, const struct bpf_insn *i)
{
    struct value to = m->r[i->dst_reg], what = m->r[i->src_reg];
    if (to.kind != COUNTER || what.kind != NUMBER || i->imm != BPF_ADD ||
        (i->off != 0 && i->off != offsetof(struct raw_counter, bytes))) {
        return false;
    }
    *(i->off == 0 ? &m->run->counters[to.n].frames : &m->run->counters[to.n].bytes) += what.n;
    return true;
}

static bool alu(struct machine *m, const struct bpf_insn *i, bool wide)
{
    struct value *dst = &m->r[i->dst_reg];
    bool by_register = BPF_SRC(i->code) == BPF_X && BPF_OP(i->code) != BPF_END;
    struct value src = by_register ? m->r[i->src_reg] : number((uint64_t)(int64_t)i->imm);
    unsigned shift = (unsigned)src.n & (wide ? 63 : 31);
    if (i->dst_reg == 10 || src.kind == NOTHING ||
        (BPF_OP(i->code) != BPF_MOV && dst->kind == NOTHING)) {
        return false;
    }
    if (BPF_OP(i->code) == BPF_MOV && wide) {
        *dst = src;
        return true;
    }
    if (BPF_OP(i->code) == BPF_ADD && wide && dst->kind > NUMBER && src.kind == NUMBER) {
        dst->n += src.n;
        return dst->kind == FRAME || dst->kind == META || dst->kind == STACK;
    }
    if (src.kind != NUMBER || (BPF_OP(i->code) != BPF_MOV && dst->kind != NUMBER)) {
        return false;
    }
    uint64_t a = wide ? dst->n : (uint32_t)dst->n, b = wide ? src.n : (uint32_t)src.n;
    switch (BPF_OP(i->code)) {
    case BPF_MOV:
        a = b;
        break;
    case BPF_ADD:
        a += b;
        break;
    case BPF_MUL:
        a *= b;
        break;
    case BPF_AND:
        a &= b;
        break;
    case BPF_OR:
        a |= b;
        break;
    case BPF_LSH:
        a <<= shift;
        break;
    case BPF_RSH:
        a >>= shift;
        break;
    case BPF_END:
        if (wide || i->imm != 32 || BPF_SRC(i->code) != BPF_TO_BE) {
            return false;
        }
        a = __builtin_bswap32((uint32_t)a);
        break;
    default:
        return false;
    }
    *dst = number(wide ? a : (uint32_t)a);
    return true;
}

/* Two values that may be compared: numbers, or addresses of one memory. An address of the frame is
 * compared with its end, one of the metadata with the frame's first byte. */
static bool comparable(struct value *a, struct value *b)
{
    if (a->kind == META && b->kind == FRAME) {
        /* offsets of both count from the frame's first byte */
        a->n += RAW_META;
        b->n += RAW_META;
        return true;
    }
    return (a->kind == NUMBER && b->kind == NUMBER) || (a->kind == FRAME && b->kind == END) ||
           (a->kind == COUNTER && b->kind == NUMBER && b->n == 0);
}

static bool condition(struct machine *m, const struct bpf_insn *i, bool wide, bool *taken)
{
    struct value a = m->r[i->dst_reg];
    struct value b =
        BPF_SRC(i->code) == BPF_X ? m->r[i->src_reg] : number((uint64_t)(int64_t)i->imm);
    if (BPF_OP(i->code) == BPF_JA) {
        *taken = true;
        return true;
    }
    if (!comparable(&a, &b) || (!wide && a.kind != NUMBER)) {
        return false;
    }
    if (a.kind == COUNTER) { /* which is no null pointer */
        *taken = BPF_OP(i->code) == BPF_JNE;
        return BPF_OP(i->code) == BPF_JNE || BPF_OP(i->code) == BPF_JEQ;
    }
    uint64_t x = wide ? a.n : (uint32_t)a.n, y = wide ? b.n : (uint32_t)b.n;
    switch (BPF_OP(i->code)) {
    case BPF_JEQ:
        *taken = x == y;
        return true;
    case BPF_JNE:
        *taken = x != y;
        return true;
    case BPF_JGT:
        *taken = x > y;
        return true;
    case BPF_JLT:
        *taken = x < y;
        return true;
    default:
        return false;
    }
}

static bool lookup(struct machine *m)
{
    struct value key;
    if (m->r[1].kind != MAP || m->r[2].kind != STACK || !load(m, 4, m->r[2], 0, &key)) {
        return false;
    }
    bool found = m->run->counters != NULL && key.n < RAW_COUNTERS;
    m->r[0] = found ? (struct value){COUNTER, key.n} : number(0);
    return true;
}

static bool adjust_meta(struct machine *m)
{
    if (m->r[1].kind != CONTEXT || m->r[2].kind != NUMBER || m->r[2].n != (uint64_t)-RAW_META) {
        return false;
    }
    m->has_meta = !m->run->no_meta;
    m->r[0] = number(m->has_meta ? 0 : (uint64_t)-22);
    /* the kernel takes away what was known of the frame */
    for (int r = 6; r < 10; r++) {
        if (m->r[r].kind == FRAME || m->r[r].kind == END) {
            m->r[r].kind = NOTHING;
        }
    }
    return true;
}

static bool redirect(struct machine *m)
{
    if (m->r[1].kind != MAP || m->r[2].kind != NUMBER || m->r[3].kind != NUMBER) {
        return false;
    }
    m->run->socket = (uint32_t)m->r[2].n;
    bool is_there = m->run->socket < 64 && (m->run->sockets >> m->run->socket & 1) != 0;
    m->r[0] = number(is_there ? XDP_REDIRECT : m->r[3].n & 3);
    return true;
}

static bool get_length(struct machine *m)
{
    m->r[0] = number(m->run->length);
    return m->r[1].kind == CONTEXT;
}

static bool call(struct machine *m, int32_t function)
{
    bool done = function == BPF_FUNC_map_lookup_elem    ? lookup(m)
                : function == BPF_FUNC_xdp_adjust_meta  ? adjust_meta(m)
                : function == BPF_FUNC_redirect_map     ? redirect(m)
                : function == BPF_FUNC_xdp_get_buff_len ? get_length(m)
                                                        : false;
    for (int r = 1; r <= 5; r++) {
        m->r[r].kind = NOTHING;
    }
    return done;
}

static unsigned size_of(uint8_t code)
{
    unsigned size = BPF_SIZE(code);
    return size == BPF_W ? 4 : size == BPF_H ? 2 : size == BPF_B ? 1 : 8;
}

/* Runs the instruction at *at, and sets *at to the next; false: it may not be run. */
static bool step(struct machine *m, const struct raw_code *code, size_t *at)
{
    const struct bpf_insn *i = &code->insn[*at];
    bool taken = false;
    ++*at;
    if (i->dst_reg >= REGISTERS || i->src_reg >= REGISTERS) {
        return false;
    }
    switch (BPF_CLASS(i->code)) {
    case BPF_ALU64:
        return alu(m, i, true);
    case BPF_ALU:
        return alu(m, i, false);
    case BPF_LDX:
        return BPF_MODE(i->code) == BPF_MEM && i->dst_reg != 10 &&
               load(m, size_of(i->code), m->r[i->src_reg], i->off, &m->r[i->dst_reg]);
    case BPF_STX:
        if (BPF_MODE(i->code) == BPF_ATOMIC) {
            return BPF_SIZE(i->code) == BPF_DW && add_atomic(m, i);
        }
        return BPF_MODE(i->code) == BPF_MEM &&
               store(m, size_of(i->code), m->r[i->dst_reg], i->off, m->r[i->src_reg]);
    case BPF_LD:
        if (i->code != (BPF_LD | BPF_DW | BPF_IMM) || *at >= code->count || i->dst_reg == 10) {
            return false;
        }
        m->r[i->dst_reg] =
            (struct value){i->src_reg == BPF_PSEUDO_MAP_FD ? MAP : NUMBER,
                           (uint32_t)i->imm | (uint64_t)(uint32_t)code->insn[*at].imm << 32};
        ++*at;
        return true;
    case BPF_JMP:
    case BPF_JMP32:
        if (BPF_OP(i->code) == BPF_CALL) {
            return call(m, i->imm);
        }
        if (i->off < 0 || !condition(m, i, BPF_CLASS(i->code) == BPF_JMP, &taken)) {
            return false;
        }
        *at += taken ? (size_t)i->off : 0;
        return true;
    default:
        return false;
    }
}

int raw_interpret(const struct raw_code *code, struct raw_interpreted *run)
{
    struct machine m = {.run = run};
    size_t at = 0;
    m.r[1] = (struct value){CONTEXT, 0};
    m.r[10] = (struct value){STACK, 0};
    run->action = XDP_ABORTED;
    run->verdict = RAW_NONE;
    run->socket = 0;
    run->steps = 0;
    while (at < code->count && run->steps++ < STEPS_MOST) {
        run->broken = at;
        if (code->insn[at].code == (BPF_JMP | BPF_EXIT)) {
            uint32_t verdict;
            memcpy(&verdict, m.meta, sizeof(verdict));
            run->action = (int)m.r[0].n;
            run->verdict = m.has_meta ? (int)verdict : RAW_NONE;
            return m.r[0].kind == NUMBER ? 0 : RAW_BROKEN;
        }
        if (!step(&m, code, &at)) {
            return RAW_BROKEN;
        }
    }
    return RAW_BROKEN;
}
