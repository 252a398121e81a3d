/* SPDX-License-Identifier: BSD-3-Clause */
/* Source lines of an image, with libdw: every row of every unit's line program. */
#include "base/array.h"
#include "elfutils.h"

#include <stdlib.h>
#include <string.h>

/* Returns a copy of a file name, the same for equal names. A linear search, since units have few
 * files. */
static const char *keep_name(struct rv32_lines *lines, const char *name)
{
    for (size_t i = 0; i < lines->file_count; i++) {
        if (strcmp(lines->files[i], name) == 0) {
            return lines->files[i];
        }
    }
    char **files = realloc(lines->files, (lines->file_count + 1) * sizeof(*files));
    char *copy = strdup(name);
    if (files != NULL) {
        lines->files = files;
    }
    if (files == NULL || copy == NULL) {
        free(copy);
        return NULL;
    }
    return files[lines->file_count++] = copy;
}

static int add_row(struct rv32_lines *lines, const struct rv32_segment *code, Dwarf_Line *row)
{
    Dwarf_Addr address;
    int line = 0;
    bool end = false;
    const char *name = elfutils.dwarf_linesrc(row, NULL, NULL);
    if (elfutils.dwarf_lineaddr(row, &address) != 0 || elfutils.dwarf_lineno(row, &line) != 0 ||
        elfutils.dwarf_lineendsequence(row, &end) != 0) {
        return 0; /* a row without an address */
    }
    /* The row that ends the last function has the address right behind the code. */
    if (address - code->base > code->size) {
        return 0;
    }
    const char *kept = keep_name(lines, name != NULL ? name : "?");
    if (kept == NULL) {
        return -1;
    }
    lines->rows[lines->count++] = (struct rv32_line){(uint32_t)address, end ? 0 : line, kept};
    return 0;
}

static int add_unit(struct rv32_lines *lines, const struct rv32_segment *code, Dwarf_Die *unit)
{
    Dwarf_Lines *table;
    size_t count;
    if (elfutils.dwarf_getsrclines(unit, &table, &count) != 0) {
        return 0; /* the unit has no lines */
    }
    struct rv32_line *rows = realloc(lines->rows, (lines->count + count + 1) * sizeof(*rows));
    if (rows == NULL) {
        return -1;
    }
    lines->rows = rows;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *row = elfutils.dwarf_onesrcline(table, i);
        if (row != NULL && add_row(lines, code, row) != 0) {
            return -1;
        }
    }
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct rv32_line *x = a, *y = b;
    if (x->address != y->address) {
        return x->address < y->address ? -1 : 1;
    }
    /* At one address an end of sequence comes before a row that begins one. */
    return (x->line != 0) - (y->line != 0);
}

static int read_lines(struct rv32_lines *lines, const struct rv32_segment *code, Dwarf *dwarf)
{
    Dwarf_Off offset = 0, next;
    size_t header;
    while (elfutils.dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
        Dwarf_Die unit;
        if (elfutils.dwarf_offdie(dwarf, offset + header, &unit) != NULL &&
            add_unit(lines, code, &unit) != 0) {
            return -1;
        }
        offset = next;
    }
    if (lines->count > 1) {
        qsort(lines->rows, lines->count, sizeof(*lines->rows), by_address);
    }
    return 0;
}

int rv32_lines_open(struct rv32_lines *lines, const struct rv32_image *image,
                    struct rv32_error *error)
{
    *lines = (struct rv32_lines){0};
    int rc = 0;
    Elf *elf = elfutils.elf_memory((char *)image->file, image->file_size);
    Dwarf *dwarf = elf != NULL ? elfutils.dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    if (dwarf != NULL) {
        rc = read_lines(lines, &image->code, dwarf);
        elfutils.dwarf_end(dwarf);
    }
    if (elf != NULL) {
        elfutils.elf_end(elf);
    }
    if (rc != 0) {
        rv32_lines_close(lines);
        return rv32_fail(error, "%s: no memory for its lines", image->name);
    }
    return 0;
}

void rv32_lines_close(struct rv32_lines *lines)
{
    for (size_t i = 0; i < lines->file_count; i++) {
        free(lines->files[i]);
    }
    free(lines->files);
    free(lines->rows);
    *lines = (struct rv32_lines){0};
}

const struct rv32_line *rv32_lines_at(const struct rv32_lines *lines, uint32_t pc)
{
    size_t behind = ARRAY_FIRST(i, lines->count, lines->rows[i].address > pc);
    return behind > 0 && lines->rows[behind - 1].line != 0 ? &lines->rows[behind - 1] : NULL;
}
