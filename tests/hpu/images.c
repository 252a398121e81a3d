/* SPDX-License-Identifier: BSD-3-Clause */
/* Images that are refused, each by name: a good one, spoilt in one place. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hpu/rv32/image.h"
#include "hpu/rv32/table.h"
#include "strays.h"

enum { ROOM = 65536 };

static uint8_t good[ROOM], bytes[ROOM];
static size_t good_size, size;

static Elf32_Ehdr *header(void)
{
    return (Elf32_Ehdr *)(void *)bytes;
}

/* The program header of the one PT_LOAD segment; [-1] is that of the attributes. */
static Elf32_Phdr *segment(void)
{
    return (Elf32_Phdr *)(void *)(bytes + header()->e_phoff) + 1;
}

static Elf32_Shdr *section(int n)
{
    return (Elf32_Shdr *)(void *)(bytes + header()->e_shoff) + n;
}

enum { TEXT = 1, ATTRIBUTES = 4, SYMTAB = 5 };

static Elf32_Sym *symbol(const char *name)
{
    Elf32_Sym *s = (Elf32_Sym *)(void *)(bytes + section(SYMTAB)->sh_offset);
    const char *names = (const char *)bytes + section(SYMTAB + 1)->sh_offset;
    while (strcmp(names + s->st_name, name) != 0) {
        s++;
    }
    return s;
}

static void begin(void)
{
    memcpy(bytes, good, sizeof(bytes));
    size = good_size;
}

static void refused(const char *why)
{
    struct rv32_error error = {""};
    struct rv32_image image;
    int rc = rv32_image_parse(&image, "bad.elf", bytes, size, &error);
    if (rc == 0 || strstr(error.text, why) == NULL || strncmp(error.text, "bad.elf: ", 9) != 0) {
        print_message("wanted \"%s\", got \"%s\"\n", why, rc == 0 ? "accepted" : error.text);
    }
    assert_int_equal(rc, -1);
    assert_non_null(strstr(error.text, why));
    assert_null(image.code.bytes);
    begin();
}

static void test_good(void **state)
{
    struct rv32_error error;
    struct rv32_image image;
    begin();
    assert_int_equal(rv32_image_parse(&image, "good", bytes, size, &error), 0);
    assert_int_equal(image.code.base, 0x1d000000);
    assert_int_equal(image.function_count, 22);
    const struct rv32_symbol *s = rv32_image_find(&image, "k_fnv");
    assert_int_equal(s->address, 0x1d000442);
    assert_ptr_equal(rv32_image_function(&image, 0x1d000442), s);
    assert_ptr_equal(rv32_image_function(&image, 0x1d000473), s);
    assert_string_equal(rv32_image_function(&image, 0x1d000474)->name, "k_divchain");
    assert_null(rv32_image_function(&image, 0x1d0002ba));
    assert_null(rv32_image_function(&image, 0x1d000714));
    assert_null(rv32_image_find(&image, "k_absent"));
    rv32_image_close(&image);
}

static void test_machine(void **state)
{
    begin();
    size = 0;
    refused("not an ELF file");
    bytes[0] = 'X';
    refused("not an ELF file");
    bytes[EI_CLASS] = ELFCLASS64;
    refused("64-bit");
    bytes[EI_DATA] = ELFDATA2MSB;
    refused("little-endian");
    header()->e_machine = EM_X86_64;
    refused("machine 62");
    header()->e_type = ET_REL;
    refused("relocations");
    header()->e_type = ET_DYN;
    refused("ELF type 3");
    header()->e_flags |= 0x2;
    refused("ilp32f");
    header()->e_flags |= 0x8;
    refused("ilp32e");
    header()->e_flags |= 0x10;
    refused("TSO");
    header()->e_phoff++;
    refused("program headers begins at byte 53,");
    header()->e_shoff += 2;
    refused("section headers begins at byte");
}

static void test_isa(void **state)
{
    struct rv32_error error;
    bool reals = false;
    assert_int_equal(
        rv32_image_isa("x", "rv32i2p1_m2p0_a2p1_c2p0_zicsr2p0_zmmul1p0", &reals, &error), 0);
    assert_int_equal(rv32_image_isa("x", "rv32imac", &reals, &error), 0);
    assert_false(reals);
    assert_int_equal(rv32_image_isa("x", "rv32imafdc", &reals, &error), 0);
    assert_true(reals);
    assert_int_equal(rv32_image_isa("x", "rv32i2p1_q2p2", &reals, &error), -1);
    assert_non_null(strstr(error.text, "extension q"));
    assert_int_equal(rv32_image_isa("x", "rv32i2p1_zba1p0", &reals, &error), -1);
    assert_non_null(strstr(error.text, "extension zba"));
    assert_int_equal(rv32_image_isa("x", "rv32e1p9", &reals, &error), -1);
    assert_non_null(strstr(error.text, "extension e"));
    assert_int_equal(rv32_image_isa("x", "rv32i2p1_xpulpv2", &reals, &error), -1);
    assert_non_null(strstr(error.text, "extension xpulpv"));
    assert_int_equal(rv32_image_isa("x", "rv64i2p1", &reals, &error), -1);
    begin();
    char *arch = memmem(bytes, size, "_a2p", 4);
    assert_non_null(arch);
    arch[1] = 'q';
    refused("extension q");
    bytes[section(ATTRIBUTES)->sh_offset + 1] = 0xff; /* a length */
    refused("attributes are damaged");
    bytes[section(ATTRIBUTES)->sh_offset] = 'B';
    refused("attributes are damaged");
}

static void test_segments(void **state)
{
    begin();
    segment()->p_filesz = 0x10000;
    segment()->p_memsz = 0x8000;
    refused("more bytes in the file");
    size = 0x500;
    refused("truncated");
    segment()->p_offset = 0xfffffff0;
    refused("truncated");
    segment()->p_vaddr = 0xfffffffc;
    refused("beyond 32 bits");
    segment()->p_flags |= PF_W;
    refused("can be written");
    segment()->p_memsz = RV32_CODE_MAX + 1;
    refused("program memory holds 32768");
    segment()->p_vaddr++;
    refused("multiple of 4");
    segment()->p_flags = PF_R;
    refused("no segment of code");
    segment()->p_type = PT_DYNAMIC;
    refused("dynamic linker");
    segment()[-1] = *segment();
    refused("two segments of code");
    segment()[-1] = *segment();
    segment()[-1].p_flags = PF_R | PF_W;
    refused("overlap");
    segment()[-1] = *segment();
    segment()[-1].p_flags = PF_R | PF_W;
    segment()[-1].p_memsz = RV32_DATA_MAX + 1;
    refused("bytes of data");
    header()->e_phoff = 0xfffffff0;
    refused("program headers");
    header()->e_phnum = 0xfff0;
    refused("");
    size -= 4;
    refused("truncated: its section headers");
    header()->e_shoff = 0xfffffff0;
    refused("truncated: its section headers");
}

/* Program headers of our own, at the end of the file: the code's and `count` copies of it as data
 * of 4 bytes, one behind the other. */
static Elf32_Phdr *add_data(int count)
{
    Elf32_Phdr code = *segment();
    size_t at = (good_size + 3) & ~(size_t)3;
    Elf32_Phdr *table = (Elf32_Phdr *)(void *)(bytes + at);
    header()->e_phoff = (Elf32_Off)at;
    header()->e_phnum = (Elf32_Half)(1 + count);
    table[0] = code;
    for (int i = 1; i <= count; i++) {
        table[i] = code;
        table[i].p_vaddr = 0x1c000000 + 4 * (Elf32_Addr)i;
        table[i].p_filesz = table[i].p_memsz = 4;
        table[i].p_flags = PF_R;
    }
    size = at + (size_t)(1 + count) * sizeof(code);
    return table;
}

static void test_data(void **state)
{
    struct rv32_error error;
    struct rv32_image image;
    begin();
    add_data(RV32_DATA_SEGMENTS);
    assert_int_equal(rv32_image_parse(&image, "good", bytes, size, &error), 0);
    assert_int_equal(image.data_count, RV32_DATA_SEGMENTS);
    rv32_image_close(&image);
    begin();
    add_data(RV32_DATA_SEGMENTS + 1);
    refused("more than 4 segments of data");
    add_data(1)[1].p_vaddr++;
    refused("does not begin at a multiple of 4");
    add_data(2)[2].p_vaddr -= 4;
    refused("1c000004 and 1c000004 overlap");
    add_data(2)[2].p_vaddr = 0x1d000000 + 0x700;
    refused("overlap");
    add_data(2)[2].p_memsz = 3;
    refused("more bytes in the file");
    add_data(1)[0].p_memsz = 0;
    refused("no segment of code");
    add_data(1)[0].p_type = PT_INTERP;
    refused("dynamic linker");
}

static void test_symbols(void **state)
{
    begin();
    symbol("k_fnv")->st_value = 0x1d000730;
    refused("function k_fnv at 1d000730");
    symbol("k_fnv")->st_value++;
    refused("k_fnv");
    symbol("k_fnv")->st_size = 0xffffff00;
    refused("k_fnv");
    symbol("_edata")->st_shndx = SHN_UNDEF;
    refused("misses the symbol _edata");
    section(SYMTAB)->sh_type = SHT_PROGBITS;
    refused("no symbols of functions");
    section(TEXT)->sh_type = SHT_RELA;
    refused("relocations");
    section(SYMTAB)->sh_offset++;
    refused("symbol table begins at byte");
    symbol("k_fnv")->st_name = 0xffffff;
    refused("has no name");
    header()->e_entry = 0x1d000730;
    refused("entry point 1d000730");
    header()->e_entry = 0x1d000443;
    refused("entry point");
    header()->e_entry = 4;
    refused("entry point 00000004");
}

/* ---- The table of handlers ---- */

static struct stray_file handlers;

static uint32_t *entry(int i)
{
    return (uint32_t *)(void *)(handlers.data[0] + 12 * i);
}

static int open_table(struct rv32_error *error, size_t *count)
{
    struct rv32_image image;
    struct rv32_table table;
    int rc = rv32_image_parse(&image, "bad.elf", &handlers, sizeof(handlers), error);
    if (rc != 0) {
        return rc;
    }
    rc = rv32_table_open(&table, &image, error);
    *count = table.count;
    rv32_table_close(&table);
    rv32_image_close(&image);
    return rc;
}

static void table_refused(const char *why)
{
    size_t count = 0;
    struct rv32_error error = {""};
    assert_int_equal(open_table(&error, &count), -1);
    if (strstr(error.text, why) == NULL) {
        print_message("wanted \"%s\", got \"%s\"\n", why, error.text);
    }
    assert_non_null(strstr(error.text, why));
    stray_make_handlers(&handlers, 2);
}

static void test_table(void **state)
{
    enum { TABLE = 3 };
    size_t count = 0;
    struct rv32_error error = {""};
    stray_make_handlers(&handlers, 2);
    assert_int_equal(open_table(&error, &count), 0);
    assert_int_equal(count, 3);
    entry(0)[0] = 0x1e000000;
    table_refused("handler head at 1e000000 is not in the code");
    entry(1)[0]++;
    table_refused("handler load at 1d0");
    entry(1)[1] = 0;
    table_refused("handler 1 has no name at 00000000");
    handlers.segments[1].p_filesz = handlers.segments[1].p_memsz = 38; /* ends in a name */
    table_refused("handler 0 has no name at 1c000024");
    entry(2)[1] = entry(0)[1];
    table_refused("handler head is registered twice");
    handlers.sections[TABLE].sh_size = 13;
    table_refused("has 13 bytes, not a multiple of 12");
    handlers.sections[TABLE].sh_size = 1200;
    table_refused("at 1c000000 with 1200 bytes is not in its data");
    handlers.sections[TABLE].sh_addr = 0x1d000000;
    table_refused("registers no handler");
    handlers.sections[TABLE].sh_name = 0;
    table_refused("registers no handler");
    handlers.header.e_shstrndx = 0;
    table_refused("registers no handler");
    handlers.sections[TABLE] = handlers.sections[1];
    table_refused("has two symbol tables");
}

static void test_file(void **state)
{
    struct rv32_error error;
    struct rv32_image image;
    assert_int_equal(rv32_image_open(&image, "/nonexistent/image", &error), -1);
    assert_string_equal(error.text, "/nonexistent/image: No such file or directory");
    assert_int_equal(rv32_image_open(&image, "/dev/zero", &error), -1);
    assert_non_null(strstr(error.text, "is larger than"));
    assert_int_equal(rv32_image_open(&image, "/", &error), -1);
}

/* Cut anywhere, it is refused or whole; never more. */
static void test_every_length(void **state)
{
    struct rv32_error error;
    struct rv32_image image;
    begin();
    for (size_t n = 0; n < good_size; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, good, n);
        if (rv32_image_parse(&image, "cut", cut, n, &error) == 0) {
            assert_int_equal(image.code.size, 0x730);
            rv32_image_close(&image);
        }
        free(cut);
    }
}

int main(void)
{
    FILE *f = fopen(GOLDEN "/kernels.elf", "rb");
    good_size = f != NULL ? fread(good, 1, sizeof(good), f) : 0;
    if (good_size == 0 || good_size == sizeof(good)) {
        fprintf(stderr, GOLDEN "/kernels.elf cannot be read\n");
        return 1;
    }
    fclose(f);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_isa),         cmocka_unit_test(test_segments),
        cmocka_unit_test(test_data),        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_table),       cmocka_unit_test(test_file),
        cmocka_unit_test(test_every_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
