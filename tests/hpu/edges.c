/* SPDX-License-Identifier: BSD-3-Clause */
/* Each instruction at its edges: a table of inputs and results, and every 16-bit form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "snippet.h"

enum { A0 = 10, A1, A2, RET = 0x00008067 };

/* a in a1, b in a2 or as the immediate; the result in a0. */
struct edge {
    const char *name;
    uint32_t a, b, result;
};

static const struct edge edges[] = {
    {"add", 0xffffffff, 1, 0},
    {"add", 0x7fffffff, 1, 0x80000000},
    {"sub", 0, 1, 0xffffffff},
    {"sub", 0x80000000, 1, 0x7fffffff},
    {"sll", 1, 31, 0x80000000},
    {"sll", 1, 32, 1},
    {"sll", 3, 0xffffffff, 0x80000000},
    {"srl", 0x80000000, 31, 1},
    {"srl", 0x80000000, 32, 0x80000000},
    {"srl", 0x80000000, 33, 0x40000000},
    {"sra", 0x80000000, 31, 0xffffffff},
    {"sra", 0x80000000, 32, 0x80000000},
    {"sra", 0x7fffffff, 63, 0},
    {"slt", 0x80000000, 0x7fffffff, 1},
    {"slt", 0x7fffffff, 0x80000000, 0},
    {"slt", 5, 5, 0},
    {"sltu", 0x80000000, 0x7fffffff, 0},
    {"sltu", 0, 0xffffffff, 1},
    {"xor", 0xffff0000, 0xff00ff00, 0x00ffff00},
    {"or", 0xffff0000, 0xff00ff00, 0xffffff00},
    {"and", 0xffff0000, 0xff00ff00, 0xff000000},
    {"mul", 0x80000000, 0xffffffff, 0x80000000},
    {"mul", 0x10001, 0x10001, 0x20001},
    {"mulh", 0x80000000, 0x80000000, 0x40000000},
    {"mulh", 0xffffffff, 0xffffffff, 0},
    {"mulh", 0x80000000, 1, 0xffffffff},
    {"mulhu", 0xffffffff, 0xffffffff, 0xfffffffe},
    {"mulhu", 0x80000000, 2, 1},
    {"mulhsu", 0xffffffff, 0xffffffff, 0xffffffff},
    {"mulhsu", 0x80000000, 0xffffffff, 0x80000000},
    {"mulhsu", 0x7fffffff, 0x80000000, 0x3fffffff},
    {"div", 7, 0, 0xffffffff},
    {"div", 0x80000000, 0, 0xffffffff},
    {"div", 0x80000000, 0xffffffff, 0x80000000},
    {"div", (uint32_t)-7, 2, (uint32_t)-3},
    {"div", 7, (uint32_t)-2, (uint32_t)-3},
    {"divu", 7, 0, 0xffffffff},
    {"divu", 0x80000000, 0xffffffff, 0},
    {"divu", 0xffffffff, 1, 0xffffffff},
    {"rem", 7, 0, 7},
    {"rem", 0x80000000, 0xffffffff, 0},
    {"rem", (uint32_t)-7, 2, (uint32_t)-1},
    {"rem", 7, (uint32_t)-2, 1},
    {"remu", 7, 0, 7},
    {"remu", 0x80000000, 0xffffffff, 0x80000000},
    {"addi", 0, 0x800, 0xfffff800},
    {"addi", 0xffffffff, 1, 0},
    {"slti", 0xffffffff, 0, 1},
    {"slti", 0, 0xfff, 0},
    {"sltiu", 0, 0xfff, 1}, /* the immediate is extended by its sign first */
    {"sltiu", 0xffffffff, 0xfff, 0},
    {"sltiu", 0, 1, 1},
    {"xori", 0x12345678, 0xfff, 0xedcba987},
    {"ori", 1, 0x800, 0xfffff801},
    {"andi", 0xffffffff, 0x800, 0xfffff800},
    {"slli", 1, 31, 0x80000000},
    {"slli", 0x12345678, 0, 0x12345678},
    {"srli", 0x80000000, 31, 1},
    {"srai", 0x80000000, 31, 0xffffffff},
    {"srai", 0x80000000, 0, 0x80000000},
    /* Upper immediates: b is the whole word's upper part. */
    {"lui", 0, 0xfffff000, 0xfffff000},
    {"lui", 0, 0, 0},
    {"auipc", 0, 0xfffff000, SNIPPET_CODE - 0x1000},
    {"auipc", 0, 0, SNIPPET_CODE},
    /* Branches: 1 if taken. */
    {"beq", 5, 5, 1},
    {"beq", 5, 6, 0},
    {"bne", 5, 5, 0},
    {"bne", 5, 6, 1},
    {"blt", 0x80000000, 0x7fffffff, 1},
    {"blt", 0x7fffffff, 0x80000000, 0},
    {"blt", 5, 5, 0},
    {"bge", 0x80000000, 0x7fffffff, 0},
    {"bge", 0x7fffffff, 0x80000000, 1},
    {"bge", 5, 5, 1},
    {"bltu", 0x80000000, 0x7fffffff, 0},
    {"bltu", 0x7fffffff, 0x80000000, 1},
    {"bltu", 5, 5, 0},
    {"bgeu", 0x80000000, 0x7fffffff, 1},
    {"bgeu", 0x7fffffff, 0x80000000, 0},
    {"bgeu", 5, 5, 1},
    /* Loads: of the bytes 80 81 82 ... 8f at offset a. */
    {"lb", 0, 0, 0xffffff80},
    {"lbu", 1, 0, 0x81},
    {"lh", 0, 0, 0xffff8180},
    {"lh", 3, 0, 0xffff8483},
    {"lhu", 1, 0, 0x8281},
    {"lw", 0, 0, 0x83828180},
    {"lw", 1, 0, 0x84838281},
    {"lw", 6, 0xffe, 0x87868584}, /* -2 */
};

static const struct rv32_spec *find_spec(const char *name)
{
    for (size_t i = 0; i < rv32_spec_count; i++) {
        if (rv32_specs[i].name != NULL && strcmp(rv32_specs[i].name, name) == 0) {
            return &rv32_specs[i];
        }
    }
    fail_msg("no instruction %s", name);
    return NULL;
}

static void run_edge(struct snippet *s, const struct edge *e)
{
    const struct rv32_spec *spec = find_spec(e->name);
    uint32_t registers = A0 << 7 | A1 << 15, a = e->a;
    uint32_t words[3] = {spec->match, RET, RET};
    switch (spec->format) {
    case RV32_FORMAT_R:
        words[0] |= registers | A2 << 20;
        break;
    case RV32_FORMAT_U:
        words[0] |= A0 << 7 | e->b;
        break;
    case RV32_FORMAT_BRANCH: /* to 8; c.li a0,0; c.jr ra; c.li a0,1; c.jr ra */
        words[0] |= 8 << 7 | A1 << 15 | A2 << 20;
        words[1] = 0x80824501;
        words[2] = 0x80824505;
        break;
    case RV32_FORMAT_LOAD:
        a += SNIPPET_MEMORY;
        words[0] |= registers | e->b << 20;
        break;
    default:
        words[0] |= registers | e->b << 20;
        break;
    }
    snippet_make(s, words, 3);
    const struct rv32_result *r = snippet_run(s, 0, a, e->b);
    if (r->end != RV32_RETURNED || r->value != e->result) {
        print_message("%s of %08x and %08x: %08x, not %08x\n", e->name, e->a, e->b, r->value,
                      e->result);
    }
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, e->result);
    snippet_free(s);
}

static void test_values(void **state)
{
    static struct snippet s;
    bool seen[RV32_OPS] = {false};
    for (unsigned i = 0; i < 16; i++) {
        ((uint8_t *)s.memory)[i] = (uint8_t)(0x80 + i);
    }
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        run_edge(&s, &edges[i]);
        seen[find_spec(edges[i].name)->op] = true;
    }
    for (int op = 0; op < RV32_OPS; op++) {
        unsigned class = rv32_traits[op].class;
        bool here = class == RV32_CLASS_ALU || class == RV32_CLASS_MUL ||
                    class == RV32_CLASS_MULH || class == RV32_CLASS_DIV ||
                    class == RV32_CLASS_BRANCH || class == RV32_CLASS_LOAD;
        assert_true(seen[op] || !here || rv32_traits[op].reals != 0);
    }
}

/* Writes to zero are lost, whatever writes. */
static void test_zero(void **state)
{
    static struct snippet s;
    for (size_t i = 0; i < rv32_spec_count; i++) {
        const struct rv32_spec *spec = &rv32_specs[i];
        if ((spec->match & 3) != 3 || !rv32_traits[spec->op].writes ||
            rv32_traits[spec->op].reals != 0) { /* random.c has these */
            continue;
        }
        unsigned class = rv32_traits[spec->op].class;
        if (class == RV32_CLASS_JAL || class == RV32_CLASS_JALR || class == RV32_CLASS_CSR) {
            continue;
        }
        /* op zero, a1, a2; add a0, zero, zero; ret */
        uint32_t low =
            spec->format == RV32_FORMAT_R || spec->format == RV32_FORMAT_AMO ? A2 << 20 : 0;
        uint32_t word = spec->match | (spec->format == RV32_FORMAT_U ? 0x7000 : A1 << 15 | low);
        uint32_t words[] = {word, 0x00000533, RET};
        s.memory[0] = 0x12345678;
        snippet_make(&s, words, 3);
        const struct rv32_result *r = snippet_run(&s, 9, SNIPPET_MEMORY, 3);
        assert_int_equal(r->end, RV32_RETURNED);
        assert_int_equal(r->value, 0);
        snippet_free(&s);
    }
}

static void test_stores(void **state)
{
    static const struct {
        uint32_t word, offset, value, expected[2];
    } rows[] = {
        {0x00c58023, 0, 0x12345678, {0xffffff78, 0xffffffff}}, /* sb a2,0(a1) */
        {0x00c58023, 3, 0x12345678, {0x78ffffff, 0xffffffff}},
        {0x00c59023, 0, 0x12345678, {0xffff5678, 0xffffffff}}, /* sh */
        {0x00c59023, 3, 0x12345678, {0x78ffffff, 0xffffff56}},
        {0x00c5a023, 0, 0x12345678, {0x12345678, 0xffffffff}}, /* sw */
        {0x00c5a023, 1, 0x12345678, {0x345678ff, 0xffffff12}},
        {0xfec5afa3, 2, 0x12345678, {0x345678ff, 0xffffff12}}, /* sw a2,-1(a1) */
    };
    static struct snippet s;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t words[] = {rows[i].word, RET};
        memset(s.memory, 0xff, sizeof(s.memory));
        snippet_make(&s, words, 2);
        assert_int_equal(snippet_run(&s, 0, SNIPPET_MEMORY + rows[i].offset, rows[i].value)->end,
                         RV32_RETURNED);
        assert_memory_equal(s.memory, rows[i].expected, 8);
        snippet_free(&s);
    }
}

static void test_atomics(void **state)
{
    static const struct {
        const char *name;
        uint32_t memory, operand, after;
    } rows[] = {
        {"amoswap.w", 5, 9, 9},
        {"amoadd.w", 0xffffffff, 2, 1},
        {"amoxor.w", 0xff00, 0x0ff0, 0xf0f0},
        {"amoand.w", 0xff00, 0x0ff0, 0x0f00},
        {"amoor.w", 0xff00, 0x0ff0, 0xfff0},
        {"amomin.w", 0x80000000, 1, 0x80000000},
        {"amomin.w", 1, 0x80000000, 0x80000000},
        {"amomax.w", 0x80000000, 1, 1},
        {"amomax.w", 1, 0x80000000, 1},
        {"amominu.w", 0x80000000, 1, 1},
        {"amominu.w", 1, 0x80000000, 1},
        {"amomaxu.w", 0x80000000, 1, 0x80000000},
        {"amomaxu.w", 1, 0x80000000, 0x80000000},
    };
    static struct snippet s;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t words[] = {find_spec(rows[i].name)->match | A0 << 7 | A1 << 15 | A2 << 20, RET};
        s.memory[1] = rows[i].memory;
        snippet_make(&s, words, 2);
        assert_int_equal(snippet_run(&s, 0, SNIPPET_MEMORY + 4, rows[i].operand)->value,
                         rows[i].memory);
        assert_int_equal(s.memory[1], rows[i].after);
        snippet_free(&s);
    }
}

static void test_reservation(void **state)
{
    static const struct {
        uint32_t words[4];
        uint32_t result, after;
    } rows[] = {
        /* lr.w a0,(a1); sc.w a0,a2,(a1) */
        {{0x1005a52f, 0x18c5a52f, RET, RET}, 0, 7},
        /* sc.w alone */
        {{0x18c5a52f, RET, RET, RET}, 1, 5},
        /* a second one */
        {{0x1005a52f, 0x18c5a02f, 0x18c5a52f, RET}, 1, 7},
        /* a store in between that changes the word: sw a1,0(a1) */
        {{0x1005a52f, 0x00b5a023, 0x18c5a52f, RET}, 1, SNIPPET_MEMORY},
    };
    static struct snippet s;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        s.memory[0] = 5;
        snippet_make(&s, rows[i].words, 4);
        assert_int_equal(snippet_run(&s, 0, SNIPPET_MEMORY, 7)->value, rows[i].result);
        assert_int_equal(s.memory[0], rows[i].after);
        snippet_free(&s);
    }
}

/* Every 16-bit form is short for a 32-bit one: pairs as the GNU assembler makes them. */
static void test_compressed(void **state)
{
    static const uint32_t pairs[][2] = {
        {0x1574, 0x2ac10693}, /* c.addi4spn a3,sp,684 */
        {0x4038, 0x04042703}, /* c.lw a4,64(s0) */
        {0xdcfc, 0x06f4ae23}, /* c.sw a5,124(s1) */
        {0x1d81, 0xfe0d8d93}, /* c.addi s11,-32 */
        {0x0001, 0x00000013}, /* c.nop */
        {0x2ffd, 0x7fe000ef}, /* c.jal .+2046 */
        {0x5ffd, 0xfff00f93}, /* c.li t6,-1 */
        {0x7101, 0xe0010113}, /* c.addi16sp sp,-512 */
        {0x7901, 0xfffe0937}, /* c.lui s2,0xfffe0 */
        {0x83fd, 0x01f7d793}, /* c.srli a5,31 */
        {0x8405, 0x40145413}, /* c.srai s0,1 */
        {0x9a31, 0xfec67613}, /* c.andi a2,-20 */
        {0x8d0d, 0x40b50533}, /* c.sub a0,a1 */
        {0x8e35, 0x00d64633}, /* c.xor a2,a3 */
        {0x8f5d, 0x00f76733}, /* c.or a4,a5 */
        {0x8c65, 0x00947433}, /* c.and s0,s1 */
        {0xb001, 0x801ff06f}, /* c.j .-2048 */
        {0xd101, 0xf00500e3}, /* c.beqz a0,.-256 */
        {0xedfd, 0x0e059f63}, /* c.bnez a1,.+254 */
        {0x00fe, 0x01f09093}, /* c.slli ra,31 */
        {0x0082, 0x00009093}, /* c.slli64 ra */
        {0x8081, 0x0004d493}, /* c.srli64 s1 */
        {0x8481, 0x4004d493}, /* c.srai64 s1 */
        {0x52fe, 0x0fc12283}, /* c.lwsp t0,252(sp) */
        {0x8782, 0x00078067}, /* c.jr a5 */
        {0x899e, 0x007009b3}, /* c.mv s3,t2 */
        {0x9002, 0x00100073}, /* c.ebreak */
        {0x9282, 0x000280e7}, /* c.jalr t0 */
        {0x9506, 0x00150533}, /* c.add a0,ra */
        {0xddd2, 0x0f412c23}, /* c.swsp s4,248(sp) */
        {0x27fc, 0x0c87b787}, /* c.fld fa5,200(a5) */
        {0x6078, 0x04442707}, /* c.flw fa4,68(s0) */
        {0xa5c4, 0x0895b427}, /* c.fsd fs1,136(a1) */
        {0xfee8, 0x06a6ae27}, /* c.fsw fa0,124(a3) */
        {0x2eba, 0x18813e87}, /* c.fldsp ft9,392(sp) */
        {0x79fa, 0x0bc12987}, /* c.flwsp fs3,188(sp) */
        {0xaec6, 0x15113c27}, /* c.fsdsp fa7,344(sp) */
        {0xeb8a, 0x0c212a27}, /* c.fswsp ft2,212(sp) */
    };
    size_t forms = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct rv32_insn a = rv32_decode(pairs[i][0]), b = rv32_decode(pairs[i][1]);
        assert_int_equal(a.length, 2);
        assert_int_equal(a.op, b.op);
        assert_int_equal(a.rd, b.rd * rv32_traits[b.op].writes);
        assert_int_equal(a.rs1, b.rs1 * rv32_traits[b.op].reads1);
        assert_int_equal(a.rs2, b.rs2 * rv32_traits[b.op].reads2);
        assert_int_equal(a.imm, b.imm);
    }
    for (size_t i = 0; i < rv32_spec_count; i++) {
        forms += (rv32_specs[i].match & 3) != 3 && rv32_specs[i].op != RV32_ILLEGAL;
    }
    /* c.nop is a case of c.addi. */
    assert_int_equal(forms + 1, sizeof(pairs) / sizeof(pairs[0]));
}

static void test_illegal(void **state)
{
    static const uint32_t words[] = {
        0x00000000, 0x0004,     /* c.addi4spn of 0 */
        0x6081,                 /* c.lui of 0 */
        0x6101,                 /* c.addi16sp of 0 */
        0x4002,                 /* c.lwsp to zero */
        0x8002,                 /* c.jr of zero */
        0x1082,                 /* c.slli by 32 */
        0x9001,     0x9401,     /* c.srli, c.srai by 32 */
        0x9c01,     0x9c21,     /* c.subw, c.addw */
        0x9c41,     0x9c61,     /* reserved */
        0x2000,     0xa000,     /* c.fld, c.fsd */
        0x6000,     0xe000,     /* c.flw, c.fsw */
        0x2002,     0x6002,     /* c.fldsp, c.flwsp */
        0xffffffff, 0x0000707f, /* longer, nothing */
        0x02051513,             /* slli by 32 */
        0x42055513,             /* srai by 32 */
        0x00003003,             /* ld */
        0x00002053,             /* floating point */
        0x0000100f,             /* fence.i */
        0x1015a52f,             /* lr.w with rs2 */
        0x0005b52f,             /* amoadd.d */
        0x30002573,             /* csrr a0,mstatus */
        0xc0051073,             /* csrw cycle,a0 */
        0xc0052573,             /* csrrs a0,cycle,a0: might write */
        0xc000d573,             /* csrrwi a0,cycle,1 */
        0x30200073,             /* mret */
        0x10500073,             /* wfi */
    };
    static struct snippet s;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        uint32_t code[] = {words[i], RET};
        snippet_make(&s, code, 2);
        const struct rv32_result *r = snippet_run(&s, 0, 0, 0);
        if (r->end != RV32_FAULT_ILLEGAL) {
            print_message("%08x is taken for legal\n", words[i]);
        }
        assert_int_equal(r->end, RV32_FAULT_ILLEGAL);
        assert_int_equal(r->pc, SNIPPET_CODE);
        assert_int_equal(r->instructions, 0);
        snippet_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_zero),
        cmocka_unit_test(test_stores),      cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_reservation), cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_illegal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
