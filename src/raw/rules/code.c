/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The compiler from rules to eBPF; see code.h.
 *
 *      r6 context   r7 first byte   r8 behind the last   r1, r2, r3 scratch
 *      r9 from its low end: 32 bits verdict, 16 bits context, 16 bits counter
 *
 * The verifier lets a program read a byte only behind a comparison of its address with r8. `seen`
 * is how many bytes the way that leads to an instruction has proved to be there, so that a set
 * compares once for each byte that is further on than those before.
 *
 * Jumps go forwards. A jump whose target is not known yet is noted in a list of its target, and
 * gets its distance when the target's place is reached.
 */
#include "raw/rules/code.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };
enum { CTX_DATA = 0, CTX_END = 4, CTX_META = 8, CTX_QUEUE = 16 };      /* struct xdp_md */
enum { SKB_LENGTH = 0, SKB_TAGGED = 20, SKB_DATA = 76, SKB_END = 80 }; /* struct __sk_buff */
enum { INGRESS_NEXT = -1, INGRESS_DROP = 2 };                          /* enum tcx_action_base */

/* The places of the jumps to one target. */
struct label {
    uint32_t *from;
    uint64_t count, capacity;
};

struct maker {
    struct raw_code *code;
    int error;
    /* the next set; the ends by action, where what matched is counted; XDP_PASS */
    struct label miss, hit[3], pass;
};

static void emit(struct maker *m, struct bpf_insn insn)
{
    struct raw_code *c = m->code;
    uint64_t capacity = c->capacity;
    if (m->error != 0 || !ARRAY_ROOM(c->insn, c->count, capacity, 256)) {
        m->error = m->error != 0 ? m->error : -ENOMEM;
        return;
    }
    c->capacity = capacity;
    c->insn[c->count++] = insn;
}

static struct bpf_insn op(uint8_t code, unsigned dst, unsigned src, int16_t off, int32_t imm)
{
    return (struct bpf_insn){
        .code = code, .dst_reg = dst & 15, .src_reg = src & 15, .off = off, .imm = imm};
}

static void jump(struct maker *m, struct bpf_insn insn, struct label *to)
{
    if (!ARRAY_ROOM(to->from, to->count, to->capacity, 16)) {
        m->error = -ENOMEM;
        return;
    }
    to->from[to->count++] = (uint32_t)m->code->count;
    emit(m, insn);
}

/* The target of a label's jumps is the next instruction. */
static void here(struct maker *m, struct label *label)
{
    for (uint64_t i = 0; i < label->count && m->error == 0; i++) {
        size_t distance = m->code->count - label->from[i] - 1;
        if (distance > INT16_MAX) {
            m->error = -E2BIG;
            return;
        }
        m->code->insn[label->from[i]].off = (int16_t)distance;
    }
    label->count = 0;
}

/* Proves that the frame has `bytes` bytes; else jumps. */
static void reach(struct maker *m, unsigned bytes, unsigned *seen, struct label *otherwise)
{
    if (bytes <= *seen) {
        return;
    }
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R2, R7, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, (int32_t)bytes));
    jump(m, op(BPF_JMP | BPF_JGT | BPF_X, R2, R8, 0, 0), otherwise);
    *seen = bytes;
}

/* Loads the first `bytes` bytes of a word to r1, with 0 behind them. */
static void load(struct maker *m, const struct raw_rule *r, unsigned bytes)
{
    int16_t at = (int16_t)r->offset;
    unsigned size = bytes == 4 ? BPF_W : bytes == 1 ? BPF_B : BPF_H;
    emit(m, op((uint8_t)(BPF_LDX | BPF_MEM | size), R1, R7, at, 0));
    if (bytes == 3) { /* two and one, as a little-endian machine has them */
        emit(m, op(BPF_LDX | BPF_MEM | BPF_B, R2, R7, (int16_t)(at + 2), 0));
        emit(m, op(BPF_ALU | BPF_LSH | BPF_K, R2, 0, 0, 16));
        emit(m, op(BPF_ALU | BPF_OR | BPF_X, R1, R2, 0, 0));
    }
    if (!r->little) {
        emit(m, op(BPF_ALU | BPF_END | BPF_TO_BE, R1, 0, 0, 32));
    }
}

/* Jumps to `otherwise` unless a rule is true; with `then` not NULL, to that if it is. */
static void rule(struct maker *m, const struct raw_rule *r, unsigned *seen, struct label *then,
                 struct label *otherwise)
{
    unsigned bytes = raw_mask_bytes(r->mask, r->little);
    reach(m, r->offset + bytes, seen, otherwise);
    if (bytes > 0) {
        load(m, r, bytes);
        if (r->mask != UINT32_MAX) {
            emit(m, op(BPF_ALU | BPF_AND | BPF_K, R1, 0, 0, (int32_t)r->mask));
        }
    } else {
        emit(m, op(BPF_ALU | BPF_MOV | BPF_K, R1, 0, 0, 0));
    }
    if (r->start == r->end) {
        jump(m, op(BPF_JMP32 | BPF_JNE | BPF_K, R1, 0, 0, (int32_t)r->start), otherwise);
    } else {
        if (r->start != 0) {
            jump(m, op(BPF_JMP32 | BPF_JLT | BPF_K, R1, 0, 0, (int32_t)r->start), otherwise);
        }
        if (r->end != UINT32_MAX) {
            jump(m, op(BPF_JMP32 | BPF_JGT | BPF_K, R1, 0, 0, (int32_t)r->end), otherwise);
        }
    }
    if (then != NULL) {
        jump(m, op(BPF_JMP | BPF_JA, 0, 0, 0, 0), then);
    }
}

static void clauses(struct maker *m, const struct raw_clause *clause, unsigned count,
                    unsigned *seen, struct label *miss)
{
    for (unsigned c = 0; c < count; c++) {
        struct label found = {0}, next = {0};
        unsigned least = *seen;
        for (unsigned i = 0; i < clause[c].count; i++) {
            /* what one alternative has proved the others have not */
            unsigned alone = least;
            bool last = i + 1 == clause[c].count;
            rule(m, &clause[c].rule[i], &alone, last ? NULL : &found, last ? miss : &next);
            here(m, &next);
            *seen = clause[c].count == 1 ? alone : least;
        }
        here(m, &found);
        free(found.from);
        free(next.from);
    }
}

/* Counts the frame and its bytes for its set. */
static void count_set(struct maker *m, const struct raw_code_maps *maps)
{
    if (maps->counters < 0) {
        return;
    }
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R1, R9, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 48));
    emit(m, op(BPF_STX | BPF_MEM | BPF_W, R10, R1, -4, 0));
    /* r7 and r8 are not needed any more */
    if (maps->tc) {
        emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R7, R6, SKB_LENGTH, 0));
    } else {
        emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R1, R6, 0, 0));
        emit(m, op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_get_buff_len));
        emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R7, R0, 0, 0));
    }
    emit(m, op(BPF_LD | BPF_DW | BPF_IMM, R1, BPF_PSEUDO_MAP_FD, 0, maps->counters));
    emit(m, op(0, 0, 0, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R2, R10, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, -4));
    emit(m, op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem));
    emit(m, op(BPF_JMP | BPF_JEQ | BPF_K, R0, 0, 3, 0));
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_K, R1, 0, 0, 1));
    emit(m, op(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, 0, BPF_ADD));
    emit(m, op(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R7, 8, BPF_ADD));
}

/* The verdict goes before the frame. A driver that has no place for it lets the frame pass. */
static void store_verdict(struct maker *m)
{
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R1, R6, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, -RAW_META));
    emit(m, op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_adjust_meta));
    jump(m, op(BPF_JMP | BPF_JNE | BPF_K, R0, 0, 0, 0), &m->pass);
    emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R1, R6, CTX_META, 0));
    emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R2, R6, CTX_DATA, 0));
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R3, R1, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_ADD | BPF_K, R3, 0, 0, RAW_META));
    jump(m, op(BPF_JMP | BPF_JGT | BPF_X, R3, R2, 0, 0), &m->pass);
    emit(m, op(BPF_STX | BPF_MEM | BPF_W, R1, R9, 0, 0));
}

/* The socket's index is queue * contexts + context. */
static void redirect(struct maker *m, const struct raw_code_maps *maps)
{
    emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R2, R6, CTX_QUEUE, 0));
    emit(m, op(BPF_ALU64 | BPF_MUL | BPF_K, R2, 0, 0, (int32_t)maps->contexts));
    emit(m, op(BPF_ALU64 | BPF_RSH | BPF_K, R9, 0, 0, 32));
    emit(m, op(BPF_ALU64 | BPF_AND | BPF_K, R9, 0, 0, 0xffff));
    emit(m, op(BPF_ALU64 | BPF_ADD | BPF_X, R2, R9, 0, 0));
    emit(m, op(BPF_LD | BPF_DW | BPF_IMM, R1, BPF_PSEUDO_MAP_FD, 0, maps->sockets));
    emit(m, op(0, 0, 0, 0, 0));
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_K, R3, 0, 0, XDP_PASS));
    emit(m, op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map));
    emit(m, op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

static void set_verdict(struct maker *m, unsigned set, bool ends, const struct raw_code_maps *maps)
{
    uint64_t context = maps->context != NULL ? maps->context[set] : 0;
    uint64_t counter = maps->counter != NULL ? maps->counter[set] : set;
    uint64_t value = counter << 48 | context << 32 | (uint32_t)raw_verdict(set, ends);
    emit(m, op(BPF_LD | BPF_DW | BPF_IMM, R9, 0, 0, (int32_t)(uint32_t)value));
    emit(m, op(0, 0, 0, 0, (int32_t)(uint32_t)(value >> 32)));
}

static void one_set(struct maker *m, const struct raw_rules *rules, unsigned s,
                    const struct raw_code_maps *maps)
{
    const struct raw_set *set = &rules->set[s];
    unsigned seen = 0;
    struct label open = {0}, *hit = &m->hit[set->action];
    clauses(m, set->clause, set->count, &seen, &m->miss);
    if (set->ends > 0) {
        clauses(m, set->end, set->ends, &seen, &open);
    }
    set_verdict(m, s, true, maps);
    jump(m, op(BPF_JMP | BPF_JA, 0, 0, 0, 0), hit);
    if (open.count > 0) {
        here(m, &open);
        set_verdict(m, s, false, maps);
        jump(m, op(BPF_JMP | BPF_JA, 0, 0, 0, 0), hit);
    }
    free(open.from);
    here(m, &m->miss);
}

/* At the ingress the bytes that rules look at may be elsewhere than the first, and are brought
 * there. A frame whose tag is beside it is the kernel's: packet sockets do not see the tag. */
static void begin(struct maker *m, bool tc)
{
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R6, R1, 0, 0));
    if (tc) {
        emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R2, R6, SKB_TAGGED, 0));
        jump(m, op(BPF_JMP | BPF_JNE | BPF_K, R2, 0, 0, 0), &m->pass);
        emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R2, R6, SKB_LENGTH, 0));
        emit(m, op(BPF_JMP | BPF_JLE | BPF_K, R2, 0, 1, RAW_REACH));
        emit(m, op(BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, RAW_REACH));
        emit(m, op(BPF_ALU64 | BPF_MOV | BPF_X, R1, R6, 0, 0));
        emit(m, op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_pull_data));
    }
    emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R7, R6, tc ? SKB_DATA : CTX_DATA, 0));
    emit(m, op(BPF_LDX | BPF_MEM | BPF_W, R8, R6, tc ? SKB_END : CTX_END, 0));
}

static void leave(struct maker *m, int32_t how)
{
    emit(m, op(BPF_ALU64 | BPF_MOV | BPF_K, R0, 0, 0, how));
    emit(m, op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

/* The ends of the program, those that are reached. */
static void ends(struct maker *m, const struct raw_code_maps *maps)
{
    int32_t pass = maps->tc ? INGRESS_NEXT : XDP_PASS, drop = maps->tc ? INGRESS_DROP : XDP_DROP;
    if (m->hit[RAW_TO_KERNEL].count > 0) {
        here(m, &m->hit[RAW_TO_KERNEL]);
        count_set(m, maps);
        leave(m, pass);
    }
    if (m->hit[RAW_DISCARD].count > 0) {
        here(m, &m->hit[RAW_DISCARD]);
        count_set(m, maps);
        leave(m, drop);
    }
    if (m->hit[RAW_HANDLERS].count > 0) {
        here(m, &m->hit[RAW_HANDLERS]);
        count_set(m, maps);
        if (maps->tc) {
            leave(m, drop);
        } else {
            store_verdict(m);
            redirect(m, maps);
        }
    }
    here(m, &m->pass);
    leave(m, pass);
}

int raw_code_make(struct raw_code *code, const struct raw_rules *rules,
                  const struct raw_code_maps *maps)
{
    struct maker m = {.code = code};
    *code = (struct raw_code){0};
    begin(&m, maps->tc);
    for (unsigned s = 0; s < rules->count; s++) {
        one_set(&m, rules, s, maps);
    }
    jump(&m, op(BPF_JMP | BPF_JA, 0, 0, 0, 0), &m.pass);
    ends(&m, maps);
    free(m.miss.from);
    for (int action = 0; action < 3; action++) {
        free(m.hit[action].from);
    }
    free(m.pass.from);
    if (m.error != 0) {
        raw_code_free(code);
    }
    return m.error;
}

void raw_code_free(struct raw_code *code)
{
    free(code->insn);
    *code = (struct raw_code){0};
}
