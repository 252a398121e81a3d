/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of the interpreter, included by core.c once for each way to run:
 *
 *   RUN_NAME      the function's name
 *   RUN_CHECKED   accesses are checked against regions (else: offsets into an arena)
 *   RUN_WATCHED   each instruction is fetched by fetch.c, or shown to watch(), or both
 *
 * The code of each operation ends with its own jump to that of the next one, so that the
 * processor's branch predictor learns which operations follow each other; with RUN_WATCHED all
 * share one jump. `ip` is the current cell; x[], left and instructions are those of the core.
 */

#define A x[ip->rs1]
#define B x[ip->rs2]
#define SIGNED(value) ((int32_t)(value))

/* A fetch or a call of watch() costs more than a jump, so all cells share one place for it. */
#if RUN_WATCHED
#define DISPATCH() goto dispatch
#else
#define DISPATCH() goto *labels[ip->op]
#endif

#define NEXT()                                                                                     \
    do {                                                                                           \
        ip++;                                                                                      \
        DISPATCH();                                                                                \
    } while (0)

#define SET(label, value)                                                                          \
    label:                                                                                         \
    x[ip->rd] = (uint32_t)(value);                                                                 \
    NEXT()

#define TAKE()                                                                                     \
    do {                                                                                           \
        left -= ip->cycles;                                                                        \
        instructions += ip->instructions;                                                          \
        ip += ip->imm;                                                                             \
        if (__builtin_expect(left < 0, 0)) {                                                       \
            goto late;                                                                             \
        }                                                                                          \
        DISPATCH();                                                                                \
    } while (0)

#define BRANCH(label, condition)                                                                   \
    label:                                                                                         \
    if (condition) {                                                                               \
        TAKE();                                                                                    \
    }                                                                                              \
    NEXT()

#if RUN_CHECKED
#define LOAD_AS(label, type, size_log2, set)                                                       \
    label : {                                                                                      \
        const struct rv32_region *r = core->hint[ip->rs1];                                         \
        uint32_t offset = A + (uint32_t)ip->imm - r->base;                                         \
        type value;                                                                                \
        if (__builtin_expect(rotate_right(offset, size_log2) >= r->read[size_log2], 0)) {          \
            core->left = left;                                                                     \
            const void *from = reach_load(core, ip, sizeof(type));                                 \
            if (from == NULL) {                                                                    \
                goto fault;                                                                        \
            }                                                                                      \
            left -= core->waited;                                                                  \
            memcpy(&value, from, sizeof(value));                                                   \
        } else {                                                                                   \
            memcpy(&value, r->host + offset, sizeof(value));                                       \
        }                                                                                          \
        set(value);                                                                                \
        NEXT();                                                                                    \
    }
#define STORE_OF(label, type, size_log2, from)                                                     \
    label : {                                                                                      \
        const struct rv32_region *r = core->hint[ip->rs1];                                         \
        uint32_t offset = A + (uint32_t)ip->imm - r->base;                                         \
        type value = (type)(from);                                                                 \
        if (__builtin_expect(rotate_right(offset, size_log2) >= r->write[size_log2], 0)) {         \
            core->left = left;                                                                     \
            void *to = reach_store(core, ip, sizeof(type));                                        \
            if (to == NULL) {                                                                      \
                goto fault;                                                                        \
            }                                                                                      \
            left -= core->waited;                                                                  \
            memcpy(to, &value, sizeof(value));                                                     \
        } else {                                                                                   \
            memcpy(r->host + offset, &value, sizeof(value));                                       \
        }                                                                                          \
        NEXT();                                                                                    \
    }
#else
#define LOAD_AS(label, type, size_log2, set)                                                       \
    label : {                                                                                      \
        type value;                                                                                \
        memcpy(&value, arena + (A + (uint32_t)ip->imm), sizeof(value));                            \
        set(value);                                                                                \
        NEXT();                                                                                    \
    }
#define STORE_OF(label, type, size_log2, from)                                                     \
    label : {                                                                                      \
        type value = (type)(from);                                                                 \
        memcpy(arena + (A + (uint32_t)ip->imm), &value, sizeof(value));                            \
        NEXT();                                                                                    \
    }
#endif

#define INTEGER(value) x[ip->rd] = (uint32_t)(int32_t)(value)
#define FLOAT(value) core->f[ip->rd] = RV32_BOXED | (value)
#define DOUBLE(value) core->f[ip->rd] = (value)
#define LOAD(label, type, size_log2) LOAD_AS(label, type, size_log2, INTEGER)
#define STORE(label, type, size_log2) STORE_OF(label, type, size_log2, B)

#define DIVIDE(label, undefined, value)                                                            \
    label:                                                                                         \
    if (__builtin_expect(undefined, 0) && core->exact) {                                           \
        core->result.end = RV32_FAULT_DIVIDE;                                                      \
        goto fault;                                                                                \
    }                                                                                              \
    left -= rv32_cost_divide(p->timing, B);                                                        \
    x[ip->rd] = (uint32_t)(value);                                                                 \
    NEXT()

static void RUN_NAME(struct rv32_core *core, const struct rv32_cell *ip, rv32_watch *watch,
                     void *context, uint8_t *arena)
{
    static const void *const labels[RV32_CELL_OPS] = {
        /* These are addresses of labels, not truth values. */
        /* cppcheck-suppress assignBoolToPointer */
        [RV32_ILLEGAL] = &&illegal,
        /* cppcheck-suppress assignBoolToPointer */
        [RV32_LUI] = &&li,
        [RV32_AUIPC] = &&li,
        [RV32_JAL] = &&jal,
        [RV32_JALR] = &&jalr,
        [RV32_BEQ] = &&beq,
        [RV32_BNE] = &&bne,
        [RV32_BLT] = &&blt,
        [RV32_BGE] = &&bge,
        [RV32_BLTU] = &&bltu,
        [RV32_BGEU] = &&bgeu,
        [RV32_LB] = &&lb,
        [RV32_LH] = &&lh,
        [RV32_LW] = &&lw,
        [RV32_LBU] = &&lbu,
        [RV32_LHU] = &&lhu,
        [RV32_SB] = &&sb,
        [RV32_SH] = &&sh,
        [RV32_SW] = &&sw,
        [RV32_ADDI] = &&addi,
        [RV32_SLTI] = &&slti,
        [RV32_SLTIU] = &&sltiu,
        [RV32_XORI] = &&xori,
        [RV32_ORI] = &&ori,
        [RV32_ANDI] = &&andi,
        [RV32_SLLI] = &&slli,
        [RV32_SRLI] = &&srli,
        [RV32_SRAI] = &&srai,
        [RV32_ADD] = &&add,
        [RV32_SUB] = &&sub,
        [RV32_SLL] = &&sll,
        [RV32_SLT] = &&slt,
        [RV32_SLTU] = &&sltu,
        [RV32_XOR] = &&xor,
        [RV32_SRL] = &&srl,
        [RV32_SRA] = &&sra,
        [RV32_OR] = && or
        ,
        [RV32_AND] = &&and,
        [RV32_FENCE] = &&fence,
        [RV32_ECALL] = &&ecall,
        [RV32_EBREAK] = &&ebreak,
        [RV32_MUL] = &&mul,
        [RV32_MULH] = &&mulh,
        [RV32_MULHSU] = &&mulhsu,
        [RV32_MULHU] = &&mulhu,
        [RV32_DIV] = &&div,
        [RV32_DIVU] = &&divu,
        [RV32_REM] = &&rem,
        [RV32_REMU] = &&remu,
        [RV32_LR] = &&atomic,
        [RV32_SC] = &&atomic,
        [RV32_AMOSWAP] = &&atomic,
        [RV32_AMOADD] = &&atomic,
        [RV32_AMOXOR] = &&atomic,
        [RV32_AMOAND] = &&atomic,
        [RV32_AMOOR] = &&atomic,
        [RV32_AMOMIN] = &&atomic,
        [RV32_AMOMAX] = &&atomic,
        [RV32_AMOMINU] = &&atomic,
        [RV32_AMOMAXU] = &&atomic,
        /* Reads of counters are RV32_CELL_CSR. */
        [RV32_CSRRW... RV32_CSRRCI] = &&rule,
        [RV32_FLW] = &&flw,
        [RV32_FLD] = &&fld,
        [RV32_FSW] = &&fsw,
        [RV32_FSD] = &&fsd,
        [RV32_REAL_FIRST... RV32_REAL_LAST] = &&real,
        [RV32_CELL_LI] = &&li,
        [RV32_CELL_MV] = &&mv,
        [RV32_CELL_CSR] = &&csr,
        [RV32_CELL_GOTO] = &&go,
        [RV32_CELL_OUTSIDE] = &&outside,
    };
    const struct rv32_program *const p = core->program;
    uint32_t *const x = core->x;
    int64_t left = core->left, instructions = core->instructions;
    uint32_t target;
    DISPATCH();

#if RUN_WATCHED
dispatch:
    if (ip->op < RV32_CELL_GOTO) {
        core->left = left;
        core->instructions = instructions;
        ip = show(core, ip, watch, context);
        if (ip == NULL) {
            return;
        }
        left = core->left;
        instructions = core->instructions;
    }
    goto *labels[ip->op];
#endif

    SET(li, ip->imm);
    SET(mv, A);
    SET(addi, A + (uint32_t)ip->imm);
    SET(slti, SIGNED(A) < ip->imm);
    SET(sltiu, A < (uint32_t)ip->imm);
    SET(xori, A ^ (uint32_t)ip->imm);
    SET(ori, A | (uint32_t)ip->imm);
    SET(andi, A & (uint32_t)ip->imm);
    SET(slli, A << ip->imm);
    SET(srli, A >> ip->imm);
    SET(srai, SIGNED(A) >> ip->imm);
    SET(add, A + B);
    SET(sub, A - B);
    SET(sll, A << (B & 31));
    SET(slt, SIGNED(A) < SIGNED(B));
    SET(sltu, A < B);
    SET(xor, A ^ B);
    SET(srl, A >> (B & 31));
    SET(sra, SIGNED(A) >> (B & 31));
    SET(or, A | B);
    SET(and, A & B);
    SET(mul, A * B);
    SET(mulh, (int64_t)SIGNED(A) * SIGNED(B) >> 32);
    SET(mulhsu, (int64_t)SIGNED(A) * B >> 32);
    SET(mulhu, (uint64_t)A * B >> 32);
    DIVIDE(div, is_undefined(A, B), divide(A, B));
    DIVIDE(divu, B == 0, B != 0 ? A / B : UINT32_MAX);
    DIVIDE(rem, is_undefined(A, B), remainder_of(A, B));
    DIVIDE(remu, B == 0, B != 0 ? A % B : A);

    LOAD(lb, int8_t, 0)
    LOAD(lh, int16_t, 1)
    LOAD(lw, int32_t, 2)
    LOAD(lbu, uint8_t, 0)
    LOAD(lhu, uint16_t, 1)
    STORE(sb, uint8_t, 0)
    STORE(sh, uint16_t, 1)
    STORE(sw, uint32_t, 2)
    LOAD_AS(flw, uint32_t, 2, FLOAT)
    LOAD_AS(fld, uint64_t, 3, DOUBLE)
    STORE_OF(fsw, uint32_t, 2, core->f[ip->rs2])
    STORE_OF(fsd, uint64_t, 3, core->f[ip->rs2])

    BRANCH(beq, A == B);
    BRANCH(bne, A != B);
    BRANCH(blt, SIGNED(A) < SIGNED(B));
    BRANCH(bge, SIGNED(A) >= SIGNED(B));
    BRANCH(bltu, A < B);
    BRANCH(bgeu, A >= B);

jal:
    x[ip->rd] = p->pcs[ip - p->cells] + ip->rs2;
    TAKE();

jalr:
    target = (A + (uint32_t)ip->imm) & ~1u;
    x[ip->rd] = p->pcs[ip - p->cells] + ip->rs2;
    if (__builtin_expect(target - p->base >= p->size - 1, 0)) {
        goto leave;
    }
    ip = &p->cells[p->at[(target - p->base) / 2]];
    left -= p->enter[ip - p->cells].cycles;
    instructions += p->enter[ip - p->cells].instructions;
    if (__builtin_expect(left < 0, 0)) {
        goto late;
    }
    DISPATCH();

go:
    ip += ip->imm;
    DISPATCH();

fence:
    NEXT();

real:
    if (!rv32_real_run(core, ip)) {
        goto illegal;
    }
    NEXT();

rule:
    rv32_real_rule(core, ip);
    NEXT();

csr:
    x[ip->rd] = counter(core, ip, left, instructions);
    NEXT();

atomic:
    if (__builtin_expect(core->point != NULL, 0)) {
        core->left = left + p->rest[ip - p->cells].cycles;
        core->point(core, core->ecall_context);
    }
    if (!run_atomic(core, ip)) {
        goto fault;
    }
    left -= core->waited;
    NEXT();

ecall:
    if (core->ecall == NULL) {
        core->result.end = RV32_FAULT_ECALL;
        goto fault;
    }
    core->left = left;
    core->instructions = instructions;
    if (call_host(core, ip)) {
        return;
    }
    left = core->left;
    NEXT();

late:
    /* More is charged than the budget: has the program also used more? */
    core->left = left;
    if (!has_time(core, p->rest[ip - p->cells].cycles)) {
        core->result.end = RV32_TIMEOUT;
        goto fault;
    }
    left = core->left;
    DISPATCH();

leave:
#if RUN_WATCHED
    left -= p->lengths != NULL ? fetch_outside(core, target, left) : 0;
#endif
    /* A jump out of the code is a JALR, the last instruction that was charged: there is nothing to
     * give back. */
    core->left = left;
    core->instructions = instructions;
    core->result.end = target != RV32_RETURN ? RV32_FAULT_JUMP
                       : !has_time(core, 0)  ? RV32_TIMEOUT
                                             : RV32_RETURNED;
    core->result.pc = target != RV32_RETURN ? target : p->pcs[ip - p->cells];
    core->result.from = p->pcs[ip - p->cells];
    return;

outside:
    core->result.end = RV32_FAULT_JUMP;
    core->result.from = (uint32_t)ip->imm;
    goto fault;

illegal:
    core->result.end = RV32_FAULT_ILLEGAL;
    goto fault;

ebreak:
    core->result.end = RV32_FAULT_EBREAK;
    goto fault;

fault:
    core->result.pc = p->pcs[ip - p->cells];
    core->left = left + p->rest[ip - p->cells].cycles;
    core->instructions = instructions - p->rest[ip - p->cells].instructions;
}

#undef A
#undef B
#undef SIGNED
#undef DISPATCH
#undef NEXT
#undef SET
#undef TAKE
#undef BRANCH
#undef LOAD
#undef LOAD_AS
#undef STORE
#undef STORE_OF
#undef INTEGER
#undef FLOAT
#undef DOUBLE
#undef DIVIDE
#undef RUN_NAME
#undef RUN_CHECKED
#undef RUN_WATCHED
