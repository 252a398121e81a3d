/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images that nobody would trust, on memory that they were not given.
 *
 *     hpu_isolation GOLDEN SEED COUNT
 *
 * COUNT images, each a function of its number alone: an ELF file with code, up to three data
 * segments and symbols. Code is random words, encodings that exist with random operands, or
 * the measured kernels with some bits changed. Each is run from its functions and from
 * anywhere, warm and with the instruction cache counted, with random arguments, on a random
 * packet, HPU memory and stack.
 *
 *   | no access | region | no access |     each region ends, or begins, at a page of its own
 *
 * So a byte too far is a fault of this process, whatever compiled it. What has to hold besides:
 * code and constants stay as they were, so does memory of others; every run ends, within its
 * budget; how it ended can be told.
 */
#include "chance.h"
#include "hpu/rv32/core.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    CODE_MAX = 4096,
    DATA_MAX = 512,
    SEGMENTS = 3,
    FUNCTIONS = 4,
    RUNS = 8, /* of each image, each way */
    BUDGET = 4000,
    CODE = 0x1d000000,
    DEVICE = 0x1b205000,
    DEVICE_BYTES = 64,
};

enum { PACKET, STATE, STACK, MEMORIES };

static const struct {
    const char *name;
    uint32_t base, most; /* bytes */
} memories[MEMORIES] = {
    {"packet", 0x10004000, 2048}, {"state", 0x10010000, PAGE}, {"stack", 0x10000000, 1024}};

/* ---- Chance ---- */

static void fill(void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)next_random();
    }
}

static _Noreturn void fail(uint64_t number, const char *what, const char *text)
{
    fprintf(stderr, "image %llu: %s%s\n", (unsigned long long)number, what, text);
    exit(1);
}

/* ---- Images ---- */

struct file {
    Elf32_Ehdr header;
    Elf32_Phdr segments[1 + SEGMENTS];
    Elf32_Shdr sections[3];
    Elf32_Sym symbols[1 + FUNCTIONS];
    char names[4 + 4 * FUNCTIONS];
    _Alignas(4) uint8_t code[CODE_MAX];
    uint8_t data[SEGMENTS][DATA_MAX];
};

static void random_words(uint8_t *code, uint32_t size)
{
    fill(code, size);
}

/* What ends a program is to be rare. */
static const struct rv32_spec *random_spec(void)
{
    const struct rv32_spec *s;
    unsigned class;
    do {
        s = &rv32_specs[below((uint32_t)rv32_spec_count)];
        class = rv32_traits[s->op].class;
    } while ((class == RV32_CLASS_NONE || class == RV32_CLASS_CSR || class == RV32_CLASS_SYSTEM ||
              class == RV32_CLASS_JAL || class == RV32_CLASS_JALR) &&
             below(8) != 0);
    return s;
}

/* Encodings that exist; branches mostly near. */
static void random_instructions(uint8_t *code, uint32_t size)
{
    uint32_t at = 0;
    while (at + 4 <= size) {
        const struct rv32_spec *s = random_spec();
        uint32_t word = (next_random() & ~s->mask) | s->match;
        unsigned class = rv32_traits[s->op].class;
        if (rv32_length((uint16_t)word) == 4 && class == RV32_CLASS_BRANCH) {
            word &= ~0x7e000000u;
        }
        /* Accesses mostly by a register that points somewhere: a0 to a3, sp. */
        if (rv32_length((uint16_t)word) == 4 && rv32_traits[s->op].bytes > 0 && below(4) != 0) {
            uint32_t base = below(5) == 0 ? 2 : 10 + below(4);
            word = (word & ~0xf80f8000u & ~(31u << 15)) | base << 15 | (word & 0x00f00000);
            word = class == RV32_CLASS_AMO ? (word & 0x07ffffff) | (s->match & 0xf8000000) : word;
        }
        memcpy(code + at, &word, 4);
        at += rv32_length((uint16_t)word);
    }
}

static void changed_kernels(uint8_t *code, uint32_t size, const struct rv32_segment *kernels)
{
    memcpy(code, kernels->bytes, size);
    for (uint32_t n = 1 + below(40); n > 0; n--) {
        code[below(size)] ^= (uint8_t)(1u << below(8));
    }
}

static uint32_t make_code(uint8_t *code, const struct rv32_segment *kernels)
{
    uint32_t size = 16 + below(CODE_MAX - 16);
    switch (below(4)) {
    case 0:
        random_words(code, size);
        break;
    case 1:
        size = kernels->size;
        changed_kernels(code, size, kernels);
        break;
    default:
        random_instructions(code, size);
        break;
    }
    return size;
}

static uint32_t offset_in(const struct file *f, const void *part)
{
    return (uint32_t)((const uint8_t *)part - (const uint8_t *)f);
}

static void add_segment(struct file *f, uint32_t base, uint32_t size, uint32_t flags,
                        const void *bytes)
{
    f->segments[f->header.e_phnum++] = (Elf32_Phdr){.p_type = PT_LOAD,
                                                    .p_offset = offset_in(f, bytes),
                                                    .p_vaddr = base,
                                                    .p_paddr = base,
                                                    .p_filesz = size - below(2) * (size / 2),
                                                    .p_memsz = size,
                                                    .p_flags = flags,
                                                    .p_align = 4};
}

static void add_symbols(struct file *f, uint32_t code_size)
{
    uint32_t names = 1;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t at = below(code_size / 2) * 2;
        f->symbols[1 + i] = (Elf32_Sym){.st_name = names,
                                        .st_value = CODE + at,
                                        .st_size = below(2) * below(code_size - at + 1),
                                        .st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC),
                                        .st_shndx = SHN_ABS};
        names += 1 + (uint32_t)sprintf(f->names + names, "f%u", i);
    }
    f->sections[1] = (Elf32_Shdr){.sh_type = SHT_SYMTAB,
                                  .sh_offset = offset_in(f, f->symbols),
                                  .sh_size = sizeof(f->symbols),
                                  .sh_link = 2,
                                  .sh_info = 1,
                                  .sh_addralign = 4,
                                  .sh_entsize = sizeof(Elf32_Sym)};
    f->sections[2] = (Elf32_Shdr){.sh_type = SHT_STRTAB,
                                  .sh_offset = offset_in(f, f->names),
                                  .sh_size = sizeof(f->names),
                                  .sh_addralign = 1};
}

static void make_file(struct file *f, const struct rv32_segment *kernels)
{
    memset(f, 0, sizeof(*f));
    uint32_t code_size = make_code(f->code, kernels);
    f->header = (Elf32_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_RISCV,
        .e_version = EV_CURRENT,
        .e_entry = CODE,
        .e_phoff = offsetof(struct file, segments),
        .e_shoff = offsetof(struct file, sections),
        .e_flags = 1,
        .e_ehsize = sizeof(Elf32_Ehdr),
        .e_phentsize = sizeof(Elf32_Phdr),
        .e_shentsize = sizeof(Elf32_Shdr),
        .e_shnum = 3,
        .e_shstrndx = 2};
    add_segment(f, CODE, code_size, PF_R | PF_X, f->code);
    f->segments[0].p_filesz = code_size;
    fill(f->data, sizeof(f->data));
    uint32_t first = next_random();
    for (uint32_t i = below(SEGMENTS + 1); i > 0; i--) {
        /* In L2, or close behind the code, or where regions of the core begin. */
        static const uint32_t places[] = {0x1c000000, 0x1c300000, CODE + 0x2000,
                                          0x10011000, 0x10400000, 0xfff00000};
        uint32_t base = places[(first + i) % (sizeof(places) / sizeof(places[0]))];
        add_segment(f, base + 4 * below(2), 1 + below(DATA_MAX), PF_R | (below(2) ? PF_W : 0),
                    f->data[i - 1]);
    }
    add_symbols(f, code_size);
}

/* ---- Memory ---- */

struct memory {
    uint8_t *pages, *bytes;
    uint32_t size;
};

/* Two pages between two that nobody may touch. */
static bool open_memory(struct memory *m)
{
    m->pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return m->pages != MAP_FAILED &&
           mprotect(m->pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) == 0;
}

/* A new size, against the end of the pages or their beginning. */
static void place_memory(struct memory *m, uint32_t most)
{
    m->size = 4 + below(most / 4) * 4;
    m->bytes = m->pages + PAGE + (below(2) ? 2 * PAGE - m->size : 0);
    fill(m->pages + PAGE, (size_t)2 * PAGE);
}

static uint64_t sum_of(const void *bytes, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Of what the program must not change: the rest of the pages, code, constants. */
static uint64_t sum_of_others(const struct memory *m, const struct rv32_image *image)
{
    uint64_t sum = sum_of(image->code.bytes, image->code.size);
    for (int i = 0; i < MEMORIES; i++) {
        const uint8_t *begin = m[i].pages + PAGE, *behind = m[i].bytes + m[i].size;
        sum = sum * 31 + sum_of(begin, (size_t)(m[i].bytes - begin));
        sum = sum * 31 + sum_of(behind, (size_t)(begin + (size_t)2 * PAGE - behind));
    }
    for (int i = 0; i < image->data_count; i++) {
        if (!image->data[i].writable) {
            sum = sum * 31 + sum_of(image->data[i].bytes, image->data[i].size);
        }
    }
    return sum;
}

/* ---- Running ---- */

/* A handler call: it fills memory that a0 and a1 name, if the program may write there. */
static int serve(struct rv32_core *core, void *context)
{
    uint8_t *at = rv32_core_reach(core, core->x[10], core->x[11], RV32_WRITE);
    if (at == NULL) {
        return 1 + (int)below(10);
    }
    fill(at, core->x[11]);
    core->x[10] = next_random();
    rv32_core_charge(core, below(100));
    return 0;
}

static int64_t access_device(void *context, enum rv32_access access, uint32_t offset,
                             uint64_t cycle, uint32_t *word)
{
    if (offset >= DEVICE_BYTES || offset % 4 != 0 || cycle > 2 * BUDGET) {
        exit(1);
    }
    *word = access == RV32_READ ? next_random() : *word;
    return below(8) != 0 ? (int64_t)below(20) : -1;
}

static uint32_t random_argument(const struct memory *m)
{
    int i = (int)below(MEMORIES);
    switch (below(6)) {
    case 0:
        return next_random();
    case 1:
        return below(4096);
    case 2:
        return DEVICE + 4 * below(DEVICE_BYTES / 4);
    case 3:
        return memories[i].base + m[i].size - below(12);
    default:
        return memories[i].base + below(m[i].size);
    }
}

/* Maps what does not collide with the image's own segments. */
static void map_all(struct rv32_core *core, const struct rv32_image *image, struct memory *m,
                    const struct rv32_device *device)
{
    struct rv32_error error;
    if (rv32_core_map_image(core, image, &error) != 0) {
        rv32_core_init(core, core->program); /* without any: code runs all the same */
    }
    for (int i = 0; i < MEMORIES; i++) {
        (void)rv32_core_map(core, memories[i].name, memories[i].base, m[i].size, m[i].bytes,
                            below(8) ? RV32_READ | RV32_WRITE : RV32_READ,
                            below(8) ? RV32_AREA_L1 : RV32_AREA_HANDLER, &error);
    }
    (void)rv32_core_map_device(core, "device", DEVICE, DEVICE_BYTES, device, &error);
    core->ecall = below(3) ? serve : NULL;
}

static void run(uint64_t number, struct rv32_core *core, const struct rv32_image *image,
                const struct memory *m, unsigned ends[])
{
    struct rv32_error text;
    struct rv32_call call = {.stack = memories[STACK].base + m[STACK].size - 4 * below(4),
                             .budget = BUDGET};
    bool function = below(2) == 0;
    call.pc = function ? image->functions[below((uint32_t)image->function_count)].address
                       : image->code.base + below(image->code.size + 8);
    for (int i = 0; i < RV32_ARGUMENTS; i++) {
        call.arguments[i] = random_argument(m);
    }
    uint64_t before = sum_of_others(m, image);
    const struct rv32_result *r = rv32_core_call(core, &call);
    rv32_result_text(r, image, NULL, &text);
    if (sum_of_others(m, image) != before) {
        fail(number, "memory of others has changed: ", text.text);
    }
    /* A budget is looked at when control jumps: what is behind may come on top. */
    if (r->end > RV32_FAULT_EBREAK || r->cycles > BUDGET + 4 * CODE_MAX * 40 || text.text[0] == 0) {
        fail(number, "ended as nothing should: ", text.text);
    }
    ends[r->end]++;
}

static void try_image(uint64_t number, const struct rv32_segment *kernels, struct memory *m,
                      unsigned ends[])
{
    static struct file file;
    static struct rv32_core core;
    struct rv32_device device = {.access = access_device};
    struct rv32_error error;
    struct rv32_image image;
    struct rv32_program program;
    random_state = number * 0x2545f4914f6cdd1du;
    make_file(&file, kernels);
    if (rv32_image_parse(&image, "image", &file, sizeof(file), &error) != 0) {
        fail(number, "", error.text);
    }
    for (int kind = RV32_WARM; kind <= RV32_CACHE; kind++) {
        if (rv32_program_make(&program, &image, &rv32_timings[below((uint32_t)rv32_timing_count)],
                              kind, &error) != 0) {
            fail(number, "", error.text);
        }
        for (int i = 0; i < MEMORIES; i++) {
            place_memory(&m[i], memories[i].most);
        }
        rv32_core_init(&core, &program);
        map_all(&core, &image, m, &device);
        for (int n = 0; n < RUNS; n++) {
            run(number, &core, &image, m, ends);
        }
        rv32_program_free(&program);
    }
    rv32_image_close(&image);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"returned", "stopped",        "timeout", "load",
                                        "store",    "atomic",         "stack",   "illegal",
                                        "jump",     "ecall unserved", "ebreak"};
    enum { ENDS = sizeof(names) / sizeof(names[0]) };
    struct rv32_error error = {""};
    struct rv32_image kernels;
    struct memory m[MEMORIES];
    unsigned ends[ENDS] = {0};
    char path[512];
    if (argc != 4) {
        fprintf(stderr, "usage: hpu_isolation GOLDEN SEED COUNT\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/kernels.elf", argv[1]);
    if (rv32_image_open(&kernels, path, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (int i = 0; i < MEMORIES; i++) {
        if (!open_memory(&m[i])) {
            perror("hpu_isolation");
            return 1;
        }
    }
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    for (uint64_t n = first; n < first + count; n++) {
        try_image(n, &kernels.code, m, ends);
    }
    rv32_image_close(&kernels);
    for (int i = 0; i < ENDS; i++) {
        printf("%8u %s\n", ends[i], names[i]);
        /* A corpus that does not reach each of them tries nothing. */
        if (ends[i] == 0 && count >= 1000) {
            fail(count, "no run ended like this: ", names[i]);
        }
    }
    return 0;
}
