/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An image: code for the HPU cores as a compiler made it, read from an ELF file.
 *
 *   file ──► header, attributes: is it for this core?
 *        ──► PT_LOAD segments: one of code, up to RV32_DATA_SEGMENTS of data
 *        ──► symbols: the functions, by address and by name
 *
 * The file may hold anything, so all parts of an image are checked: segments lie inside the file,
 * inside 32 bits, and do not overlap; no segment is writable and executable; function symbols lie
 * in the code; names are terminated. An error names what is wrong.
 */
#ifndef HPU_RV32_IMAGE_H
#define HPU_RV32_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RV32_CODE_MAX = 32 << 10, /* bytes of code: the program memory of PsPIN */
    RV32_DATA_MAX = 1 << 20,  /* bytes of all data segments */
    RV32_DATA_SEGMENTS = 4,
    RV32_FILE_MAX = 16 << 20, /* bytes of the file, debug information included */
};

struct rv32_error {
    char text[512];
};

/* rv32_fail() writes the text of an error and returns -1. */
int rv32_fail(struct rv32_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct rv32_segment {
    uint32_t base, size;
    bool writable;
    uint8_t *bytes; /* `size` bytes: those of the file, then zeros */
};

struct rv32_symbol {
    uint32_t address, size; /* size may be 0: unknown */
    const char *name;
};

struct rv32_image {
    char *name; /* of the file, for errors */
    struct rv32_segment code;
    struct rv32_segment data[RV32_DATA_SEGMENTS];
    int data_count;
    struct rv32_symbol *functions; /* sorted by address */
    size_t function_count;
    uint32_t entry; /* 0: none */
    bool reals;     /* it uses the extensions F and D */
    uint8_t *file;  /* the whole file, for its line table */
    size_t file_size;
};

/* rv32_image_parse() makes an image of `size` bytes, which it copies. If it fails, the image is
 * empty and the error begins with `name`. */
int rv32_image_parse(struct rv32_image *image, const char *name, const void *bytes, size_t size,
                     struct rv32_error *error);

/* rv32_image_open() makes an image of a file. */
int rv32_image_open(struct rv32_image *image, const char *path, struct rv32_error *error);

/* rv32_image_close() frees what an image holds; an empty one holds nothing. */
void rv32_image_close(struct rv32_image *image);

/* rv32_image_find() returns the function of that name, NULL if there is none. */
const struct rv32_symbol *rv32_image_find(const struct rv32_image *image, const char *name);

/* rv32_image_function() returns the function in which an address of the code is: that of the last
 * symbol at or before the address, unless it ends earlier; else NULL. */
const struct rv32_symbol *rv32_image_function(const struct rv32_image *image, uint32_t pc);

/* rv32_image_isa() checks an ISA string ("rv32i2p1_m2p0_zicsr2p0"): it fails for extensions that
 * the core does not have. *reals becomes true if F or D are among them. `name` begins the error. */
int rv32_image_isa(const char *name, const char *isa, bool *reals, struct rv32_error *error);

/* rv32_image_attributes() does so with the ISA string in a section of RISC-V attributes. */
int rv32_image_attributes(const char *name, const uint8_t *bytes, size_t size, bool *reals,
                          struct rv32_error *error);

/* Source lines of the code: a table of (address, file, line), sorted by address. */
struct rv32_line {
    uint32_t address;
    int line; /* 0: the end of a sequence of lines */
    const char *file;
};

struct rv32_lines {
    struct rv32_line *rows;
    size_t count;
    char **files; /* file names, to which the rows point */
    size_t file_count;
};

/* rv32_lines_open() reads the table from the debug information of the image (DWARF); without that
 * the table is empty. Rows of addresses outside the code are left out: functions that the linker
 * has discarded keep their lines, at address 0. */
int rv32_lines_open(struct rv32_lines *lines, const struct rv32_image *image,
                    struct rv32_error *error);
void rv32_lines_close(struct rv32_lines *lines);

/* rv32_lines_at() returns the row that covers an address, NULL if none does. */
const struct rv32_line *rv32_lines_at(const struct rv32_lines *lines, uint32_t pc);

#endif
