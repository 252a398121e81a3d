/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading images. libelf reads headers and sections. Segments are copied from the bytes of the file
 * itself, after the bounds that it declares were checked against its size. */
#include "elfutils.h"

#include "base/array.h"
#include "base/forks.h"
#include "base/sys.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flags of the ELF header, from the RISC-V ELF psABI. */
enum { FLAG_FLOAT = 0x6, FLAG_RVE = 0x8, FLAG_TSO = 0x10 };
enum { SECTION_ATTRIBUTES = 0x70000003 };

int rv32_fail(struct rv32_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return -1;
}

static int no_memory(const struct rv32_image *image, struct rv32_error *error)
{
    return rv32_fail(error, "%s: no memory", image->name);
}

/* ---- Is the file for this core? ---- */

/* Checks that a table is aligned in the file: libelf returns pointers into that, and the structs
 * are read from there. */
static int check_place(const struct rv32_image *image, const char *what, uint32_t offset,
                       struct rv32_error *error)
{
    return offset % 4 == 0
               ? 0
               : rv32_fail(error, "%s: its %s begins at byte %u, not at a multiple of 4",
                           image->name, what, offset);
}

static int check_header(const struct rv32_image *image, Elf *elf, struct rv32_error *error)
{
    const char *name = image->name;
    size_t size;
    const char *ident = elfutils.elf_getident(elf, &size);
    if (elfutils.elf_kind(elf) != ELF_K_ELF || ident == NULL || size < EI_NIDENT) {
        return rv32_fail(error, "%s: is not an ELF file", name);
    }
    if (ident[EI_DATA] != ELFDATA2LSB) {
        return rv32_fail(error, "%s: is not little-endian", name);
    }
    if (ident[EI_CLASS] != ELFCLASS32) {
        return rv32_fail(
            error, "%s: is a 64-bit image; handlers are compiled with -march=rv32imac_zicsr", name);
    }
    const Elf32_Ehdr *h = elfutils.elf32_getehdr(elf);
    if (h == NULL) {
        return rv32_fail(error, "%s: its ELF header cannot be read: %s", name,
                         elfutils.elf_errmsg(-1));
    }
    if (h->e_machine != EM_RISCV) {
        return rv32_fail(error, "%s: is for machine %u; the HPU cores are RISC-V (%u)", name,
                         h->e_machine, EM_RISCV);
    }
    if (h->e_type == ET_REL) {
        return rv32_fail(error, "%s: is an object file with relocations; link it first", name);
    }
    if (h->e_type != ET_EXEC) {
        return rv32_fail(error, "%s: is of ELF type %u; link it statically, to fixed addresses",
                         name, h->e_type);
    }
    if ((h->e_flags & FLAG_FLOAT) != 0) {
        return rv32_fail(error,
                         "%s: passes floating-point values in registers (ABI ilp32f, ilp32d "
                         "or ilp32q); compile with -mabi=ilp32",
                         name);
    }
    if ((h->e_flags & FLAG_RVE) != 0) {
        return rv32_fail(error, "%s: is for the ABI ilp32e; compile with -mabi=ilp32", name);
    }
    if ((h->e_flags & FLAG_TSO) != 0) {
        return rv32_fail(error, "%s: needs the memory order TSO, which the HPU cores do not keep",
                         name);
    }
    return check_place(image, "table of program headers", h->e_phoff, error) != 0
               ? -1
               : check_place(image, "table of section headers", h->e_shoff, error);
}

/* ---- Segments ---- */

static bool overlap(const struct rv32_segment *a, const struct rv32_segment *b)
{
    return a->base < (uint64_t)b->base + b->size && b->base < (uint64_t)a->base + a->size;
}

static int check_segment(const struct rv32_image *image, const Elf32_Phdr *p, size_t index,
                         struct rv32_error *error)
{
    const char *name = image->name;
    if (p->p_filesz > p->p_memsz) {
        return rv32_fail(error,
                         "%s: segment %zu has more bytes in the file (%u) than in memory (%u)",
                         name, index, p->p_filesz, p->p_memsz);
    }
    if (p->p_offset > image->file_size || p->p_filesz > image->file_size - p->p_offset) {
        return rv32_fail(error, "%s: is truncated: segment %zu ends at byte %llu of %zu", name,
                         index, (unsigned long long)p->p_offset + p->p_filesz, image->file_size);
    }
    if ((uint64_t)p->p_vaddr + p->p_memsz > UINT32_MAX) {
        return rv32_fail(error, "%s: segment %zu at %08x with %u bytes ends beyond 32 bits", name,
                         index, p->p_vaddr, p->p_memsz);
    }
    if ((p->p_flags & PF_X) != 0 && (p->p_flags & PF_W) != 0) {
        return rv32_fail(error,
                         "%s: segment %zu at %08x is code that can be written; link with "
                         "code and data apart",
                         name, index, p->p_vaddr);
    }
    return 0;
}

static int copy_segment(struct rv32_image *image, struct rv32_segment *s, const Elf32_Phdr *p,
                        struct rv32_error *error)
{
    s->bytes = calloc(1, p->p_memsz);
    if (s->bytes == NULL) {
        return no_memory(image, error);
    }
    memcpy(s->bytes, image->file + p->p_offset, p->p_filesz);
    s->base = p->p_vaddr;
    s->size = p->p_memsz;
    s->writable = (p->p_flags & PF_W) != 0;
    return 0;
}

static int add_code(struct rv32_image *image, const Elf32_Phdr *p, struct rv32_error *error)
{
    if (image->code.bytes != NULL) {
        return rv32_fail(error, "%s: has two segments of code, at %08x and %08x; link to one",
                         image->name, image->code.base, p->p_vaddr);
    }
    if (p->p_memsz > RV32_CODE_MAX) {
        return rv32_fail(error, "%s: has %u bytes of code; the program memory holds %d",
                         image->name, p->p_memsz, RV32_CODE_MAX);
    }
    if (p->p_vaddr % 4 != 0 || p->p_vaddr == 0) {
        return rv32_fail(error,
                         "%s: its code begins at %08x; that must be a multiple of 4, and not 0",
                         image->name, p->p_vaddr);
    }
    return copy_segment(image, &image->code, p, error);
}

static int add_data(struct rv32_image *image, const Elf32_Phdr *p, struct rv32_error *error)
{
    uint64_t sum = p->p_memsz;
    for (int i = 0; i < image->data_count; i++) {
        sum += image->data[i].size;
    }
    if (sum > RV32_DATA_MAX) {
        return rv32_fail(error, "%s: has %llu bytes of data; at most %d are allowed", image->name,
                         (unsigned long long)sum, RV32_DATA_MAX);
    }
    if (image->data_count == RV32_DATA_SEGMENTS) {
        return rv32_fail(error, "%s: has more than %d segments of data", image->name,
                         RV32_DATA_SEGMENTS);
    }
    if (p->p_vaddr % 4 != 0) {
        return rv32_fail(error, "%s: its data at %08x does not begin at a multiple of 4",
                         image->name, p->p_vaddr);
    }
    return copy_segment(image, &image->data[image->data_count++], p, error);
}

static int load_segments(struct rv32_image *image, Elf *elf, struct rv32_error *error)
{
    size_t count;
    const Elf32_Phdr *p = elfutils.elf32_getphdr(elf);
    if (elfutils.elf_getphdrnum(elf, &count) != 0 || (p == NULL && count > 0)) {
        return rv32_fail(error, "%s: is truncated: its program headers cannot be read",
                         image->name);
    }
    for (size_t i = 0; i < count; i++, p++) {
        if (p->p_type == PT_DYNAMIC || p->p_type == PT_INTERP) {
            return rv32_fail(error, "%s: wants a dynamic linker; link it statically", image->name);
        }
        if (p->p_type != PT_LOAD || p->p_memsz == 0) {
            continue;
        }
        if (check_segment(image, p, i, error) != 0 ||
            ((p->p_flags & PF_X) != 0 ? add_code(image, p, error) : add_data(image, p, error)) !=
                0) {
            return -1;
        }
    }
    if (image->code.bytes == NULL) {
        return rv32_fail(error, "%s: has no segment of code", image->name);
    }
    for (int i = 0; i < image->data_count; i++) {
        const struct rv32_segment *hit =
            overlap(&image->data[i], &image->code) ? &image->code : NULL;
        for (int k = 0; k < i; k++) {
            hit = overlap(&image->data[i], &image->data[k]) ? &image->data[k] : hit;
        }
        if (hit != NULL) {
            return rv32_fail(error, "%s: the segments at %08x and %08x overlap", image->name,
                             hit->base, image->data[i].base);
        }
    }
    return 0;
}

/* ---- Symbols ---- */

static bool in_code(const struct rv32_image *image, uint32_t address)
{
    return address - image->code.base < image->code.size;
}

static int add_function(struct rv32_image *image, const Elf32_Sym *s, const char *symbol,
                        struct rv32_error *error)
{
    if (!in_code(image, s->st_value) || s->st_value % 2 != 0 ||
        s->st_size > image->code.size - (s->st_value - image->code.base)) {
        return rv32_fail(error, "%s: function %.80s at %08x with %u bytes is not in the code",
                         image->name, symbol, s->st_value, s->st_size);
    }
    image->functions[image->function_count].name = strdup(symbol);
    if (image->functions[image->function_count].name == NULL) {
        return no_memory(image, error);
    }
    image->functions[image->function_count].address = s->st_value;
    image->functions[image->function_count++].size = s->st_size;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct rv32_symbol *x = a, *y = b;
    return x->address != y->address ? (x->address < y->address ? -1 : 1) : strcmp(x->name, y->name);
}

static int load_symbols(struct rv32_image *image, Elf *elf, Elf_Scn *section,
                        const Elf32_Shdr *header, struct rv32_error *error)
{
    const Elf_Data *data = elfutils.elf_getdata(section, NULL);
    size_t count = data != NULL ? data->d_size / sizeof(Elf32_Sym) : 0;
    const Elf32_Sym *s = count > 0 ? data->d_buf : NULL;
    if (check_place(image, "symbol table", header->sh_offset, error) != 0) {
        return -1;
    }
    if (image->functions != NULL) {
        return rv32_fail(error, "%s: has two symbol tables", image->name);
    }
    image->functions = calloc(count + 1, sizeof(*image->functions));
    if (image->functions == NULL) {
        return no_memory(image, error);
    }
    for (size_t i = 1; s != NULL && i < count; i++) {
        const char *symbol = elfutils.elf_strptr(elf, header->sh_link, s[i].st_name);
        if (symbol == NULL) {
            return rv32_fail(error, "%s: symbol %zu has no name in the string table", image->name,
                             i);
        }
        if (s[i].st_shndx == SHN_UNDEF && symbol[0] != '\0' &&
            ELF32_ST_BIND(s[i].st_info) != STB_WEAK) {
            return rv32_fail(error, "%s: misses the symbol %.80s, which nothing defines",
                             image->name, symbol);
        }
        if (ELF32_ST_TYPE(s[i].st_info) == STT_FUNC && s[i].st_shndx != SHN_UNDEF &&
            add_function(image, &s[i], symbol, error) != 0) {
            return -1;
        }
    }
    qsort(image->functions, image->function_count, sizeof(*image->functions), by_address);
    return 0;
}

static int load_sections(struct rv32_image *image, Elf *elf, struct rv32_error *error)
{
    Elf_Scn *section = NULL;
    const Elf32_Ehdr *e = elfutils.elf32_getehdr(elf);
    uint64_t end = e->e_shoff + (uint64_t)e->e_shnum * e->e_shentsize;
    if (end > image->file_size) {
        return rv32_fail(error, "%s: is truncated: its section headers end at byte %llu of %zu",
                         image->name, (unsigned long long)end, image->file_size);
    }
    while ((section = elfutils.elf_nextscn(elf, section)) != NULL) {
        const Elf32_Shdr *h = elfutils.elf32_getshdr(section);
        if (h == NULL) {
            return rv32_fail(error, "%s: its section headers cannot be read", image->name);
        }
        if ((h->sh_type == SHT_REL || h->sh_type == SHT_RELA) && h->sh_size > 0) {
            return rv32_fail(
                error, "%s: has relocations that nobody would apply; link without -q, -r and -pie",
                image->name);
        }
        if (h->sh_type == SHT_SYMTAB && load_symbols(image, elf, section, h, error) != 0) {
            return -1;
        }
        if (h->sh_type == SECTION_ATTRIBUTES) {
            const Elf_Data *data = elfutils.elf_rawdata(section, NULL);
            if (data == NULL || data->d_buf == NULL) {
                return rv32_fail(error, "%s: its RISC-V attributes cannot be read", image->name);
            }
            if (rv32_image_attributes(image->name, data->d_buf, data->d_size, &image->reals,
                                      error) != 0) {
                return -1;
            }
        }
    }
    if (image->function_count == 0) {
        return rv32_fail(error, "%s: has no symbols of functions; do not strip it", image->name);
    }
    return 0;
}

static int load(struct rv32_image *image, Elf *elf, struct rv32_error *error)
{
    if (check_header(image, elf, error) != 0 || load_segments(image, elf, error) != 0 ||
        load_sections(image, elf, error) != 0) {
        return -1;
    }
    image->entry = elfutils.elf32_getehdr(elf)->e_entry;
    if (image->entry != 0 && (!in_code(image, image->entry) || image->entry % 2 != 0)) {
        return rv32_fail(error, "%s: its entry point %08x is not in the code (%08x, %u bytes)",
                         image->name, image->entry, image->code.base, image->code.size);
    }
    return 0;
}

int rv32_image_parse(struct rv32_image *image, const char *name, const void *bytes, size_t size,
                     struct rv32_error *error)
{
    *image = (struct rv32_image){.file_size = size};
    if (elfutils_load(error) != 0) {
        return -1;
    }
    image->name = strdup(name);
    image->file = malloc(size > 0 ? size : 1);
    if (image->name == NULL || image->file == NULL) {
        rv32_fail(error, "%s: no memory", name);
        rv32_image_close(image);
        return -1;
    }
    memcpy(image->file, bytes, size);
    Elf *elf = elfutils.elf_memory((char *)image->file, size);
    int rc =
        elf == NULL ? rv32_fail(error, "%s: is not an ELF file", name) : load(image, elf, error);
    if (elf != NULL) {
        elfutils.elf_end(elf);
    }
    if (rc != 0) {
        rv32_image_close(image);
    }
    return rc;
}

int rv32_image_open(struct rv32_image *image, const char *path, struct rv32_error *error)
{
    *image = (struct rv32_image){0};
    int fd = forks_open(sys_open(path, O_RDONLY | O_CLOEXEC, 0));
    if (fd < 0) {
        return rv32_fail(error, "%s: %s", path, strerror(-fd));
    }
    uint8_t *bytes = malloc(RV32_FILE_MAX + 1);
    size_t size = 0;
    ssize_t got = bytes != NULL ? 1 : 0;
    while (size <= RV32_FILE_MAX && (got > 0 || got == -EINTR)) {
        got = sys_read(fd, bytes + size, RV32_FILE_MAX + 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    int rc;
    if (bytes == NULL) {
        rc = rv32_fail(error, "%s: no memory", path);
    } else if (got < 0) {
        rc = rv32_fail(error, "%s: %s", path, strerror((int)-got));
    } else if (size > RV32_FILE_MAX) {
        rc = rv32_fail(error, "%s: is larger than %d bytes", path, RV32_FILE_MAX);
    } else {
        rc = rv32_image_parse(image, path, bytes, size, error);
    }
    free(bytes);
    forks_close(fd);
    return rc;
}

void rv32_image_close(struct rv32_image *image)
{
    for (size_t i = 0; i < image->function_count; i++) {
        free((char *)(uintptr_t)image->functions[i].name);
    }
    for (int i = 0; i < image->data_count; i++) {
        free(image->data[i].bytes);
    }
    free(image->functions);
    free(image->code.bytes);
    free(image->file);
    free(image->name);
    *image = (struct rv32_image){0};
}

const struct rv32_symbol *rv32_image_find(const struct rv32_image *image, const char *name)
{
    for (size_t i = 0; i < image->function_count; i++) {
        if (strcmp(image->functions[i].name, name) == 0) {
            return &image->functions[i];
        }
    }
    return NULL;
}

const struct rv32_symbol *rv32_image_function(const struct rv32_image *image, uint32_t pc)
{
    size_t behind = ARRAY_FIRST(i, image->function_count, image->functions[i].address > pc);
    const struct rv32_symbol *s = behind > 0 ? &image->functions[behind - 1] : NULL;
    bool inside = s != NULL && in_code(image, pc) && (s->size == 0 || pc - s->address < s->size);
    return inside ? s : NULL;
}
