/* SPDX-License-Identifier: BSD-3-Clause */
/* Images that nobody would trust; see strays.h. */
#include "strays.h"

#include "chance.h"
#include "hpu/rv32/spec.h"
#include "hpu/rv32/table.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const handler_names[] = {STRAY_HEADER, STRAY_PAYLOAD, STRAY_COMPLETION};
enum { HANDLERS = sizeof(handler_names) / sizeof(handler_names[0]) };

static void seed(uint64_t number)
{
    random_state = number * 0x2545f4914f6cdd1du;
}

/* ---- Code ---- */

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

/* An encoding that exists: branches mostly near, accesses mostly by one of `bases`, registers that
 * point somewhere. */
static uint32_t random_instruction(const uint8_t bases[5])
{
    const struct rv32_spec *s = random_spec();
    uint32_t word = (next_random() & ~s->mask) | s->match;
    unsigned class = rv32_traits[s->op].class;
    if (rv32_length((uint16_t)word) == 4 && class == RV32_CLASS_BRANCH) {
        word &= ~0x7e000000u;
    }
    if (rv32_length((uint16_t)word) == 4 && rv32_traits[s->op].bytes > 0 && below(4) != 0) {
        uint32_t base = bases[below(5)];
        word = (word & ~0xf80f8000u & ~(31u << 15)) | base << 15 | (word & 0x00f00000);
        word = class == RV32_CLASS_AMO ? (word & 0x07ffffff) | (s->match & 0xf8000000) : word;
    }
    return word;
}

static void random_instructions(uint8_t *code, uint32_t size)
{
    static const uint8_t arguments[5] = {2, 10, 11, 12, 13}; /* sp, a0 to a3 */
    uint32_t at = 0;
    while (at + 4 <= size) {
        uint32_t word = random_instruction(arguments);
        memcpy(code + at, &word, 4);
        at += rv32_length((uint16_t)word);
    }
}

static void change_bits(uint8_t *code, uint32_t size, unsigned most)
{
    for (uint32_t n = 1 + below(most); n > 0; n--) {
        uint32_t at = below(size);
        code[at] ^= (uint8_t)(1u << below(8));
    }
}

static uint32_t make_code(uint8_t *code, const struct rv32_segment *known)
{
    uint32_t size = 16 + below(STRAY_CODE_MAX - 16);
    switch (below(4)) {
    case 0:
        fill_random(code, size);
        break;
    case 1:
        size = known->size;
        memcpy(code, known->bytes, size);
        change_bits(code, size, 40);
        break;
    default:
        random_instructions(code, size);
        break;
    }
    return size;
}

/* ---- Files ---- */

static uint32_t offset_in(const struct stray_file *f, const void *part)
{
    return (uint32_t)((const uint8_t *)part - (const uint8_t *)f);
}

static void begin_file(struct stray_file *f)
{
    memset(f, 0, sizeof(*f));
    f->header = (Elf32_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_RISCV,
        .e_version = EV_CURRENT,
        .e_entry = STRAY_CODE,
        .e_phoff = offsetof(struct stray_file, segments),
        .e_shoff = offsetof(struct stray_file, sections),
        .e_flags = 1,
        .e_ehsize = sizeof(Elf32_Ehdr),
        .e_phentsize = sizeof(Elf32_Phdr),
        .e_shentsize = sizeof(Elf32_Shdr),
        .e_shnum = STRAY_SECTIONS,
        .e_shstrndx = 2};
    fill_random(f->data, sizeof(f->data));
}

static Elf32_Phdr *add_segment(struct stray_file *f, uint32_t base, uint32_t size, uint32_t flags,
                               const void *bytes)
{
    Elf32_Phdr *p = &f->segments[f->header.e_phnum++];
    *p = (Elf32_Phdr){.p_type = PT_LOAD,
                      .p_offset = offset_in(f, bytes),
                      .p_vaddr = base,
                      .p_paddr = base,
                      .p_filesz = size,
                      .p_memsz = size,
                      .p_flags = flags,
                      .p_align = 4};
    return p;
}

/* Puts a name into the table of names and gives where it stands. */
static uint32_t add_name(struct stray_file *f, uint32_t *end, const char *name)
{
    uint32_t at = *end;
    *end += 1 + (uint32_t)snprintf(f->names + at, sizeof(f->names) - at, "%s", name);
    return at;
}

static void add_symbol(struct stray_file *f, int i, uint32_t name, uint32_t at, uint32_t size)
{
    f->symbols[1 + i] = (Elf32_Sym){.st_name = name,
                                    .st_value = STRAY_CODE + at,
                                    .st_size = size,
                                    .st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC),
                                    .st_shndx = SHN_ABS};
}

static void add_sections(struct stray_file *f, int functions)
{
    f->sections[1] = (Elf32_Shdr){.sh_type = SHT_SYMTAB,
                                  .sh_offset = offset_in(f, f->symbols),
                                  .sh_size = (1 + (Elf32_Word)functions) * sizeof(Elf32_Sym),
                                  .sh_link = 2,
                                  .sh_info = 1,
                                  .sh_addralign = 4,
                                  .sh_entsize = sizeof(Elf32_Sym)};
    f->sections[2] = (Elf32_Shdr){.sh_type = SHT_STRTAB,
                                  .sh_offset = offset_in(f, f->names),
                                  .sh_size = sizeof(f->names),
                                  .sh_addralign = 1};
}

void stray_make(struct stray_file *f, uint64_t number, const struct rv32_segment *known)
{
    seed(number);
    begin_file(f);
    uint32_t code_size = make_code(f->code, known), first = next_random(), names = 1;
    add_segment(f, STRAY_CODE, code_size, PF_R | PF_X, f->code);
    for (uint32_t i = below(STRAY_SEGMENTS + 1); i > 0; i--) {
        /* In L2, or close behind the code, or where regions of the core begin. */
        static const uint32_t places[] = {0x1c000000, 0x1c300000, STRAY_CODE + 0x2000,
                                          0x10011000, 0x10400000, 0xfff00000};
        uint32_t base = places[(first + i) % (sizeof(places) / sizeof(places[0]))];
        uint32_t size = 1 + below(STRAY_DATA_MAX), flags = PF_R | (below(2) ? PF_W : 0);
        Elf32_Phdr *p = add_segment(f, base + 4 * below(2), size, flags, f->data[i - 1]);
        p->p_filesz -= below(2) * (size / 2);
    }
    for (int i = 0; i < STRAY_FUNCTIONS; i++) {
        const char name[] = {'f', (char)('0' + i), '\0'};
        uint32_t at = below(code_size / 2) * 2, length = below(code_size - at + 1);
        add_symbol(f, i, add_name(f, &names, name), at, below(2) * length);
    }
    add_sections(f, STRAY_FUNCTIONS);
}

/* ---- Handlers ---- */

struct writer {
    uint8_t *code;
    uint32_t size;
};

enum { SP = 2, T0 = 5, S0 = 8, S1 = 9, A0 = 10, S2 = 18 };
enum { RET = 0x8082, ECALL = 0x73 };

static void put(struct writer *w, uint32_t word, unsigned length)
{
    memcpy(w->code + w->size, &word, length);
    w->size += length;
}

static void put_addi(struct writer *w, uint32_t rd, uint32_t rs1, int32_t value)
{
    put(w, 0x13 | rd << 7 | rs1 << 15 | (uint32_t)value << 20, 4);
}

/* What a handler was called with is kept: s0 the arguments' frame, s1 the state, s2 the packet or
 * the user header. */
static void put_beginning(struct writer *w, int handler)
{
    static const int32_t packet_at[HANDLERS] = {56, 16, 0};
    bool completion = handler == HANDLERS - 1;
    put_addi(w, S0, completion ? SP : A0, completion ? -64 : 0);
    put_addi(w, S1, completion ? A0 + 3 : A0 + 1, 0);
    if (completion) {
        put_addi(w, S2, S1, 16);
    } else {
        put(w, 0x2003 | S2 << 7 | A0 << 15 | (uint32_t)packet_at[handler] << 20, 4);
    }
}

/* A handler call; arguments are small numbers, or lead into memory. */
static void put_call(struct writer *w)
{
    static const uint8_t pointers[] = {SP, S0, S1, S2};
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t kind = below(8);
        if (kind < 3) {
            uint32_t pointer = pointers[below(4)];
            put_addi(w, A0 + i, pointer, (int32_t)below(64) - 8);
        } else if (kind < 7) {
            int32_t value = (int32_t)(below(2) ? below(4) : below(80));
            put_addi(w, A0 + i, 0, below(16) != 0 ? value : -1);
        }
    }
    put_addi(w, T0, 0, (int32_t)below(44));
    put(w, ECALL, 4);
}

/* Back to where it has been, always or as long as two registers are the same. */
static void put_loop(struct writer *w, uint32_t begin)
{
    uint32_t back = below((w->size - begin) / 2) * 2, offset = 0x2000 - back;
    uint32_t a = below(32), b = below(2) ? below(32) : a;
    put(w,
        0x63 | (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25 | (offset >> 1 & 15) << 8 |
            (offset >> 11 & 1) << 7 | a << 15 | b << 20,
        4);
}

/* For ever. */
static void put_yields(struct writer *w)
{
    enum { YIELD = 14, BACK_4 = 0xbff5 /* c.j -4 */ };
    put_addi(w, T0, 0, YIELD);
    put(w, ECALL, 4);
    put(w, BACK_4, 2);
}

static void put_handler(struct writer *w, int handler)
{
    static const uint8_t kept[5] = {SP, S0, S1, S2, S1};
    uint32_t shape = below(16), most = shape < 4 ? 4 : 1 + below(60), begin = w->size;
    put_beginning(w, handler);
    if (below(64) == 0) {
        put_yields(w);
    }
    uint32_t end = (uint32_t)(handler + 1) * (STRAY_CODE_MAX / HANDLERS) - 64;
    for (uint32_t n = 0; n < most && w->size < end; n++) {
        if (shape == 15) {
            put(w, next_random(), 4);
        } else if (below(12) == 0) {
            put_call(w);
        } else if (below(16) == 0) {
            put_loop(w, begin);
        } else {
            uint32_t word = random_instruction(kept);
            put(w, word, rv32_length((uint16_t)word));
        }
    }
    put_addi(w, A0, 0, (int32_t)below(8));
    put(w, RET, 2);
}

/* The table of handlers and their names, in the constants. */
static void add_table(struct stray_file *f, const uint32_t *starts, uint32_t section_name)
{
    enum { ENTRY = 12, BASE = 0x1c000000 };
    uint32_t text = HANDLERS * ENTRY;
    for (uint32_t i = 0; i < HANDLERS; i++) {
        uint32_t entry[3] = {STRAY_CODE + starts[i], BASE + text, 0};
        memcpy(f->data[0] + i * ENTRY, entry, ENTRY);
        size_t length = strlen(handler_names[i]) + 1;
        memcpy(f->data[0] + text, handler_names[i], length);
        text += (uint32_t)length;
    }
    add_segment(f, BASE, text + below(STRAY_DATA_MAX - text), PF_R, f->data[0]);
    f->sections[3] = (Elf32_Shdr){.sh_name = section_name,
                                  .sh_type = SHT_PROGBITS,
                                  .sh_flags = SHF_ALLOC,
                                  .sh_addr = BASE,
                                  .sh_offset = offset_in(f, f->data[0]),
                                  .sh_size = HANDLERS * ENTRY,
                                  .sh_addralign = 4};
}

void stray_make_handlers(struct stray_file *f, uint64_t number)
{
    seed(number);
    begin_file(f);
    struct writer w = {.code = f->code};
    uint32_t names = 1, starts[HANDLERS];
    for (int i = 0; i < HANDLERS; i++) {
        starts[i] = w.size;
        put_handler(&w, i);
        add_symbol(f, i, add_name(f, &names, handler_names[i]), starts[i], w.size - starts[i]);
    }
    add_segment(f, STRAY_CODE, w.size, PF_R | PF_X, f->code);
    add_table(f, starts, add_name(f, &names, "pinwheel_handlers"));
    add_sections(f, HANDLERS);
}

/* ---- What somebody wrote ---- */

/* The bytes of the file that are loaded at an address. */
static uint8_t *bytes_at(uint8_t *file, uint32_t address)
{
    const Elf32_Ehdr *h = (const Elf32_Ehdr *)(const void *)file;
    const Elf32_Phdr *p = (const Elf32_Phdr *)(const void *)(file + h->e_phoff);
    for (int i = 0; i < h->e_phnum; i++) {
        if (p[i].p_type == PT_LOAD && address - p[i].p_vaddr < p[i].p_filesz) {
            return file + p[i].p_offset + (address - p[i].p_vaddr);
        }
    }
    return NULL;
}

/* Where the image has what `inside` points to, in one of its data segments. */
static uint32_t address_of(const struct rv32_image *image, const char *inside)
{
    for (int i = 0; i < image->data_count; i++) {
        const struct rv32_segment *s = &image->data[i];
        uintptr_t offset = (uintptr_t)inside - (uintptr_t)s->bytes;
        if (offset < s->size) {
            return s->base + (uint32_t)offset;
        }
    }
    return 0;
}

int stray_change(uint8_t *file, size_t size, uint64_t number, unsigned bits)
{
    struct rv32_error error = {""};
    struct rv32_image image;
    struct rv32_table table;
    int named = 0;
    seed(number);
    if (rv32_image_parse(&image, "known", file, size, &error) != 0) {
        return 0;
    }
    if (rv32_table_open(&table, &image, &error) == 0) {
        uint32_t first = next_random();
        for (; named < HANDLERS && (size_t)named < table.count; named++) {
            const char *name = table.handlers[(first + (uint32_t)named) % table.count].name;
            uint8_t *at = bytes_at(file, address_of(&image, name));
            if (at == NULL || strlen(name) < strlen(handler_names[named])) {
                break;
            }
            memcpy(at, handler_names[named], strlen(handler_names[named]) + 1);
        }
        rv32_table_close(&table);
    }
    uint8_t *code = bytes_at(file, image.code.base);
    if (bits > 0 && code != NULL) {
        change_bits(code, image.code.size, bits);
    }
    rv32_image_close(&image);
    return named;
}
