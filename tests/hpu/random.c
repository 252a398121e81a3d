/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random programs on our core and on qemu-riscv32, which must agree on every register and
 * every byte of memory.
 *
 *     hpu_random QEMU SEED COUNT
 *
 * Programs are made from the table of encodings (src/hpu/rv32/spec.c): a row, and random
 * bits where it leaves them open. BATCH of them stand behind each other in one executable:
 *
 *   x31 = its data; load x1..x30 from there; 60 random steps; store x1..x30; the next one
 *   ...; write(1, all data); exit(0)
 *
 * x31 is not written to, x30 counts loops. Loads and stores get a base that leads into the
 * program's data, branches a target in front of them or, in a loop of few rounds, behind;
 * some jump into the middle of an instruction. A counter that is read is overwritten.
 * Program n depends on n alone: `hpu_random QEMU n 1` makes it again.
 */
#include "chance.h"
#include "hpu/rv32/core.h"
#include "hpu/rv32/real.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CODE = 0x10000,
    DATA = 0x40000,
    STEPS = 50,
    PROGRAM_MAX = 1500, /* bytes of code of a program, with what is around it */
    BATCH = 20,
    /* A program's data: registers before, memory, registers after; reals lie behind integers. */
    REALS_AT = 128,
    REGISTERS = REALS_AT + 256,
    MEMORY_AT = REGISTERS,
    MEMORY = 256,
    AFTER_AT = MEMORY_AT + MEMORY,
    EACH = AFTER_AT + REGISTERS,
    COUNTER = 30,
    POINTER = 31,
};

struct batch {
    uint8_t code[RV32_CODE_MAX];
    uint32_t size;
    uint8_t data[BATCH * EACH];
    uint32_t starts[BATCH + 1]; /* where each program's steps begin */
    int count;
};

/* Numbers at the edges are met more often than chance would. */
static uint32_t random_value(void)
{
    static const uint32_t edges[] = {0,          1,          2,      31,         32,   0xffffffff,
                                     0x80000000, 0x7fffffff, 0xffff, 0xffff8000, 0x80, 3};
    switch (below(3)) {
    case 0:
        return edges[below(sizeof(edges) / sizeof(edges[0]))];
    case 1:
        return below(1024);
    default:
        return next_random();
    }
}

/* A register of reals: a double, or a float, boxed or not; often one at the edges of its format. */
static uint64_t random_real(void)
{
    static const uint32_t floats[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
                                      0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                      0x7fc00000, 0x7f800001, 0x3f800000, 0xbf800000, 0x3f000000,
                                      0x4f000000, 0x4effffff, 0xcf000000, 0x4f800000, 0x40200000};
    static const uint64_t doubles[] = {0,
                                       1,
                                       UINT64_C(1) << 63,
                                       0x000fffffffffffff,
                                       0x0010000000000000,
                                       0x7fefffffffffffff,
                                       0x7ff0000000000000,
                                       0xfff0000000000000,
                                       0x7ff8000000000000,
                                       0x7ff0000000000001,
                                       0x3ff0000000000000,
                                       0xbfe0000000000000,
                                       0x41e0000000000000,
                                       0x41dfffffffc00000,
                                       0xc1e0000000200000,
                                       0x41efffffffe00000,
                                       0x3690000000000000,
                                       0x380fffffe0000000,
                                       0x47efffffefffffff,
                                       0x4004000000000000};
    uint64_t any = (uint64_t)next_random() << 32 | next_random();
    switch (below(6)) {
    case 0:
        return RV32_BOXED | floats[below(sizeof(floats) / sizeof(floats[0]))];
    case 1: /* near 1, so that sums and products meet */
        return RV32_BOXED | (0x3f800000 + (next_random() & 0x83ffffff));
    case 2:
        return RV32_BOXED | next_random();
    case 3:
        return doubles[below(sizeof(doubles) / sizeof(doubles[0]))];
    case 4:
        return 0x3ff0000000000000 + (any & 0x807fffffffffffff);
    default:
        return any;
    }
}

/* ---- Writing code ---- */

static void put(struct batch *b, uint32_t word, unsigned length)
{
    memcpy(b->code + b->size, &word, length);
    b->size += length;
}

static void put_i(struct batch *b, uint32_t opcode, uint32_t rd, uint32_t rs1, int32_t imm)
{
    put(b, opcode | rd << 7 | rs1 << 15 | (uint32_t)imm << 20, 4);
}

static void put_addi(struct batch *b, uint32_t rd, uint32_t rs1, int32_t imm)
{
    put_i(b, 0x13, rd, rs1, imm);
}

static void put_load(struct batch *b, uint32_t rd, uint32_t rs1, int32_t imm)
{
    put_i(b, 0x2003, rd, rs1, imm);
}

static void put_store(struct batch *b, uint32_t rs2, uint32_t rs1, uint32_t imm)
{
    put(b, 0x2023 | rs1 << 15 | rs2 << 20 | (imm & 31) << 7 | imm >> 5 << 25, 4);
}

static void put_store_double(struct batch *b, uint32_t rs2, uint32_t rs1, uint32_t imm)
{
    put(b, 0x3027 | rs1 << 15 | rs2 << 20 | (imm & 31) << 7 | imm >> 5 << 25, 4);
}

static void put_constant(struct batch *b, uint32_t rd, uint32_t value)
{
    put(b, 0x37 | rd << 7 | ((value + 0x800) & 0xfffff000), 4);
    put_addi(b, rd, rd, (int32_t)(value << 20) >> 20);
}

static uint32_t branch_bits(int32_t offset)
{
    uint32_t o = (uint32_t)offset;
    return (o >> 12 & 1) << 31 | (o >> 5 & 63) << 25 | (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7;
}

static uint32_t jump_bits(int32_t offset)
{
    uint32_t o = (uint32_t)offset;
    return (o >> 20 & 1) << 31 | (o >> 1 & 1023) << 21 | (o >> 11 & 1) << 20 |
           (o >> 12 & 255) << 12;
}

static uint32_t compressed_branch_bits(int32_t offset)
{
    uint32_t o = (uint32_t)offset;
    return (o >> 8 & 1) << 12 | (o >> 3 & 3) << 10 | (o >> 6 & 3) << 5 | (o >> 1 & 3) << 3 |
           (o >> 5 & 1) << 2;
}

static uint32_t compressed_jump_bits(int32_t offset)
{
    uint32_t o = (uint32_t)offset;
    return (o >> 11 & 1) << 12 | (o >> 4 & 1) << 11 | (o >> 8 & 3) << 9 | (o >> 10 & 1) << 8 |
           (o >> 6 & 1) << 7 | (o >> 7 & 1) << 6 | (o >> 1 & 7) << 3 | (o >> 5 & 1) << 2;
}

/* csrrwi zero, frm, a rounding mode that there is */
static void put_mode(struct batch *b)
{
    put(b, 0x5073 | below(RV32_ROUND_AWAY + 1) << 15 | RV32_CSR_FRM << 20, 4);
}

static bool may_write(uint32_t rd)
{
    return rd < COUNTER || rd >= RV32_REALS_AT;
}

/* A random instruction of a class; its length in bits may be asked for. */
static struct rv32_insn random_insn(unsigned class, unsigned length)
{
    for (;;) {
        const struct rv32_spec *s = &rv32_specs[below((uint32_t)rv32_spec_count)];
        if (rv32_traits[s->op].class != class) {
            continue;
        }
        struct rv32_insn i = rv32_decode((next_random() & ~s->mask) | s->match);
        /* Shifts of 16 bits by nothing: qemu takes these hints for shifts by 64. */
        bool custom = i.length == 2 && i.imm == 0 &&
                      (i.op == RV32_SLLI || i.op == RV32_SRLI || i.op == RV32_SRAI);
        if (i.spec == s && !custom && may_write(rv32_writes(&i)) &&
            (length == 0 || length == i.length)) {
            return i;
        }
    }
}

static void put_insn(struct batch *b, const struct rv32_insn *i)
{
    put(b, i->bits, i->length);
}

/* ---- Steps ---- */

static void put_real(struct batch *b)
{
    unsigned classes = RV32_CLASSES - RV32_CLASS_REAL_MOVE;
    struct rv32_insn i = random_insn(RV32_CLASS_REAL_MOVE + below(classes), 0);
    put_insn(b, &i);
}

/* Reads and writes flags, or sets the rounding mode. */
static void put_rule(struct batch *b)
{
    static const uint32_t kinds[] = {0x1073, 0x2073, 0x3073, 0x5073, 0x6073, 0x7073};
    if (below(2) == 0) {
        put_mode(b);
    } else {
        put(b, kinds[below(6)] | below(COUNTER) << 7 | below(32) << 15 | RV32_CSR_FFLAGS << 20, 4);
    }
}

static void put_computation(struct batch *b)
{
    static const uint8_t classes[] = {RV32_CLASS_ALU, RV32_CLASS_ALU,  RV32_CLASS_ALU,
                                      RV32_CLASS_MUL, RV32_CLASS_MULH, RV32_CLASS_DIV};
    struct rv32_insn i = random_insn(classes[below(sizeof(classes))], 0);
    put_insn(b, &i);
}

/* A load or store, with its base register set so that it meets the program's memory. */
static void put_access(struct batch *b, unsigned class)
{
    for (;;) {
        struct rv32_insn i = random_insn(class, 0);
        int32_t room = MEMORY - rv32_traits[i.op].bytes + 1;
        int32_t delta = MEMORY_AT + (int32_t)below((uint32_t)room) - i.imm;
        if (class == RV32_CLASS_AMO) {
            i.imm = 0;
            delta = MEMORY_AT + 4 * (int32_t)below(MEMORY / 4);
        }
        if (i.rs1 != 0 && i.rs1 < COUNTER && delta >= -2048 && delta < 2048) {
            put_addi(b, i.rs1, POINTER, delta);
            put_insn(b, &i);
            if (i.op == RV32_LR && i.rd != i.rs1 && below(2) == 0) {
                /* sc.w of a random register to a random one */
                uint32_t rd = below(COUNTER), rs2 = below(32);
                put(b, 0x1800202f | rd << 7 | rs2 << 20 | (uint32_t)i.rs1 << 15, 4);
            }
            return;
        }
    }
}

static void put_counter(struct batch *b)
{
    static const uint32_t csrs[] = {RV32_CSR_CYCLE,  RV32_CSR_TIME,  RV32_CSR_INSTRET,
                                    RV32_CSR_CYCLEH, RV32_CSR_TIMEH, RV32_CSR_INSTRETH};
    uint32_t rd = below(COUNTER);
    put(b, 0x2073 | rd << 7 | csrs[below(6)] << 20, 4);
    put_addi(b, rd, 0, (int32_t)below(2048));
}

/* Jumps over a few computations; some land inside the last of them, where its upper half
 * is an instruction of its own. */
static void put_forward(struct batch *b)
{
    struct batch skipped = {.size = 0};
    for (uint32_t n = below(4); n > 0; n--) {
        put_computation(&skipped);
    }
    uint32_t over = skipped.size;
    if (below(3) == 0) {
        struct rv32_insn inner = random_insn(RV32_CLASS_ALU, 2);
        put(&skipped, 0x37 | below(COUNTER) << 7 | (inner.bits & 0xffff) << 16, 4);
        over = skipped.size - 2;
    }
    uint32_t rd = below(2), t = 1 + below(COUNTER - 1);
    int32_t o = (int32_t)over;
    struct rv32_insn i;
    switch (below(6)) {
    case 0:
        i = random_insn(RV32_CLASS_BRANCH, 4);
        put(b, (i.bits & 0x01fff07f) | branch_bits(o + 4), 4);
        break;
    case 1:
        i = random_insn(RV32_CLASS_BRANCH, 2);
        put(b, (i.bits & 0xe383) | compressed_branch_bits(o + 2), 2);
        break;
    case 2:
        put(b, 0x6f | rd << 7 | jump_bits(o + 4), 4);
        break;
    case 3:
        put(b, (below(2) ? 0xa001u : 0x2001u) | compressed_jump_bits(o + 2), 2);
        break;
    case 4: /* auipc t, 0; jalr rd, over(t), its lowest bit without meaning */
        put(b, 0x17 | t << 7, 4);
        put_i(b, 0x67, rd, t, (o + 8) | (int32_t)below(2));
        break;
    default: /* auipc t, 0; addi; c.jr or c.jalr */
        put(b, 0x17 | t << 7, 4);
        put_addi(b, t, t, o + 10);
        put(b, (below(2) ? 0x8002u : 0x9002u) | t << 7, 2);
        break;
    }
    memcpy(b->code + b->size, skipped.code, skipped.size);
    b->size += skipped.size;
}

static void put_step(struct batch *b)
{
    switch (below(18)) {
    case 0:
    case 1:
        put_access(b, RV32_CLASS_LOAD);
        break;
    case 2:
    case 3:
        put_access(b, RV32_CLASS_STORE);
        break;
    case 4:
        put_access(b, RV32_CLASS_AMO);
        break;
    case 5:
    case 6:
        put_forward(b);
        break;
    case 7:
        if (below(8) == 0) {
            put_counter(b);
        } else {
            put(b, 0x0ff0000f, 4); /* fence */
        }
        break;
    case 8:
        if (below(4) == 0) {
            put_rule(b);
        } else {
            put_real(b);
        }
        break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
        put_real(b);
        break;
    default:
        put_computation(b);
        break;
    }
}

/* addi x30, zero, rounds; steps; addi x30, x30, -1; bne x30, zero, steps */
static void put_loop(struct batch *b)
{
    put_addi(b, COUNTER, 0, 1 + (int32_t)below(5));
    uint32_t head = b->size;
    for (uint32_t n = 1 + below(4); n > 0; n--) {
        put_step(b);
    }
    put_addi(b, COUNTER, COUNTER, -1);
    put(b, 0x1063 | COUNTER << 15 | branch_bits((int32_t)(head - b->size)), 4);
}

static void make_program(struct batch *b, uint64_t number)
{
    uint8_t *data = b->data + b->count * EACH;
    random_state = number * 0x2545f4914f6cdd1du;
    for (int i = 0; i < AFTER_AT; i += 4) {
        uint32_t value = random_value();
        memcpy(data + i, &value, 4);
    }
    for (int i = REALS_AT; i < AFTER_AT; i += 8) {
        uint64_t value = random_real();
        memcpy(data + i, &value, i < REGISTERS || below(2) == 0 ? 8 : 0);
    }
    uint32_t begin = b->size;
    put_constant(b, POINTER, DATA + (uint32_t)b->count * EACH);
    put(b, 0x5073 | RV32_CSR_FCSR << 20, 4); /* csrrwi */
    put_mode(b);
    for (uint32_t r = 0; r < RV32_REALS_AT; r++) { /* fld */
        put_i(b, 0x3007, r, POINTER, REALS_AT + 8 * (int32_t)r);
    }
    for (uint32_t r = 1; r < POINTER; r++) {
        put_load(b, r, POINTER, 4 * (int32_t)r);
    }
    b->starts[b->count] = b->size;
    for (int n = 0; n < STEPS && b->size - begin < PROGRAM_MAX - 500; n++) {
        if (below(12) == 0) {
            put_loop(b);
        } else {
            put_step(b);
        }
    }
    for (uint32_t r = 1; r < POINTER; r++) {
        put_store(b, r, POINTER, AFTER_AT + 4 * r);
    }
    for (uint32_t r = 0; r < RV32_REALS_AT; r++) {
        put_store_double(b, r, POINTER, AFTER_AT + REALS_AT + 8 * r);
    }
    put(b, 0x2073 | 1 << 7 | RV32_CSR_FCSR << 20, 4); /* csrrs ra, fcsr, zero */
    put_store(b, 1, POINTER, AFTER_AT);
    b->count++;
}

static void make_batch(struct batch *b, uint64_t first, int count)
{
    enum { A0 = 10, A1, A2, A7 = 17, WRITE = 64, EXIT = 93, ECALL = 0x73 };
    memset(b, 0, sizeof(*b));
    for (int i = 0; i < count; i++) {
        make_program(b, first + (uint64_t)i);
    }
    b->starts[count] = b->size;
    put_addi(b, A0, 0, 1);
    put_constant(b, A1, DATA);
    put_constant(b, A2, (uint32_t)count * EACH);
    put_addi(b, A7, 0, WRITE);
    put(b, ECALL, 4);
    put_addi(b, A0, 0, 0);
    put_addi(b, A7, 0, EXIT);
    put(b, ECALL, 4);
}

/* ---- Running ---- */

static int write_all(int fd, const void *bytes, size_t size)
{
    return write(fd, bytes, size) == (ssize_t)size ? 0 : -1;
}

static int write_executable(const struct batch *b, const char *path)
{
    struct {
        Elf32_Ehdr header;
        Elf32_Phdr segments[2];
    } head = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
                               EV_CURRENT},
                   .e_type = ET_EXEC,
                   .e_machine = EM_RISCV,
                   .e_version = EV_CURRENT,
                   .e_entry = CODE,
                   .e_phoff = sizeof(Elf32_Ehdr),
                   .e_flags = 1,
                   .e_ehsize = sizeof(Elf32_Ehdr),
                   .e_phentsize = sizeof(Elf32_Phdr),
                   .e_phnum = 2},
        .segments = {{.p_type = PT_LOAD,
                      .p_offset = 4096,
                      .p_vaddr = CODE,
                      .p_paddr = CODE,
                      .p_filesz = sizeof(b->code),
                      .p_memsz = sizeof(b->code),
                      .p_flags = PF_R | PF_X,
                      .p_align = 4096},
                     {.p_type = PT_LOAD,
                      .p_offset = 4096 + sizeof(b->code),
                      .p_vaddr = DATA,
                      .p_paddr = DATA,
                      .p_filesz = sizeof(b->data),
                      .p_memsz = sizeof(b->data),
                      .p_flags = PF_R | PF_W,
                      .p_align = 4096}},
    };
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (fd < 0) {
        return -1;
    }
    int rc = write_all(fd, &head, sizeof(head));
    rc =
        rc == 0 && lseek(fd, 4096, SEEK_SET) == 4096 ? write_all(fd, b->code, sizeof(b->code)) : -1;
    rc = rc == 0 ? write_all(fd, b->data, sizeof(b->data)) : -1;
    return close(fd) == 0 ? rc : -1;
}

static int run_qemu(const char *qemu, const char *path, uint8_t *data, size_t size)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execlp(qemu, qemu, path, (char *)NULL);
        fprintf(stderr, "%s: %s; tools/packages.sh test installs qemu-user\n", qemu,
                strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    size_t came = 0;
    ssize_t n = 1;
    while (pid > 0 && came < size && n > 0) {
        n = read(ends[0], data + came, size - came);
        came += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0 || came != size) {
        fprintf(stderr, "%s %s: failed after %zu of %zu bytes\n", qemu, path, came, size);
        return -1;
    }
    return 0;
}

/* The two system calls of the batch: data is there anyway, and the end stops us. */
static int serve(struct rv32_core *core, void *context)
{
    enum { A7 = 17, EXIT = 93 };
    return core->x[A7] == EXIT;
}

static int run_ours(const struct batch *b, uint8_t *data, enum rv32_program_kind kind)
{
    static struct rv32_core core;
    struct rv32_error error;
    struct rv32_program program;
    struct rv32_image image = {.name = (char *)"batch"};
    image.code = (struct rv32_segment){CODE, b->size, false, (uint8_t *)b->code};
    image.reals = true;
    memcpy(data, b->data, sizeof(b->data));
    if (rv32_program_make(&program, &image, rv32_timing_find("arm"), kind, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    rv32_core_init(&core, &program);
    core.ecall = serve;
    struct rv32_call call = {.pc = CODE, .budget = 10000000};
    int rc = rv32_core_map(&core, "data", DATA, sizeof(b->data), data, RV32_READ | RV32_WRITE,
                           RV32_AREA_L1, &error);
    if (rc == 0 && rv32_core_call(&core, &call)->end != RV32_STOPPED) {
        rv32_result_text(&core.result, &image, NULL, &error);
        rc = -1;
    }
    if (rc != 0) {
        fprintf(stderr, "our core: %s\n", error.text);
    }
    rv32_program_free(&program);
    return rc;
}

static void tell_code(const struct batch *b, int n)
{
    struct rv32_segment code = {CODE, b->size, false, (uint8_t *)b->code};
    for (uint32_t at = b->starts[n]; at < b->starts[n + 1];) {
        char text[RV32_TEXT];
        struct rv32_insn i = rv32_program_insn(&code, CODE + at);
        rv32_disassemble(&i, CODE + at, text);
        printf("  %x: %s\n", CODE + at, text);
        at += i.length;
    }
}

static void tell_difference(const struct batch *b, uint64_t first, const uint8_t *ours,
                            const uint8_t *theirs)
{
    int n = 0;
    while (memcmp(ours + n * EACH, theirs + n * EACH, EACH) == 0) {
        n++;
    }
    printf("program %llu differs:\n", (unsigned long long)(first + (uint64_t)n));
    for (int i = 0; i < EACH; i += 4) {
        uint32_t a, q;
        memcpy(&a, ours + n * EACH + i, 4);
        memcpy(&q, theirs + n * EACH + i, 4);
        if (a != q && i >= AFTER_AT) {
            printf("  x%d: ours %08x, qemu %08x\n", (i - AFTER_AT) / 4, a, q);
        } else if (a != q) {
            printf("  memory %d: ours %08x, qemu %08x\n", i - MEMORY_AT, a, q);
        }
    }
    tell_code(b, n);
}

static int compare(const char *qemu, const char *path, uint64_t first, int count)
{
    static struct batch b;
    static uint8_t ours[sizeof(b.data)], cached[sizeof(b.data)], theirs[sizeof(b.data)];
    make_batch(&b, first, count);
    size_t size = (size_t)count * EACH;
    if (write_executable(&b, path) != 0) {
        perror(path);
        return 1;
    }
    if (run_ours(&b, ours, RV32_WARM) != 0 || run_ours(&b, cached, RV32_CACHE) != 0 ||
        run_qemu(qemu, path, theirs, size) != 0) {
        for (int n = 0; n < count; n++) {
            printf("program %llu:\n", (unsigned long long)first + (unsigned long long)n);
            tell_code(&b, n);
        }
        return 1;
    }
    if (memcmp(ours, theirs, size) != 0 || memcmp(cached, theirs, size) != 0) {
        tell_difference(&b, first, memcmp(ours, theirs, size) != 0 ? ours : cached, theirs);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: hpu_random QEMU SEED COUNT\n");
        return 2;
    }
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    char folder[] = "/tmp/hpu_random.XXXXXX", path[64];
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof(path), "%s/batch", folder);
    int rc = 0;
    for (uint64_t done = 0; done < count && rc == 0; done += BATCH) {
        uint64_t left = count - done;
        rc = compare(argv[1], path, first + done, left < BATCH ? (int)left : BATCH);
    }
    unlink(path);
    rmdir(folder);
    if (rc == 0) {
        printf("%llu programs agree\n", (unsigned long long)count);
    }
    return rc;
}
