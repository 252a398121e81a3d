/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images that nobody would trust, each a function of its number alone.
 *
 *   stray_make()            code, up to three data segments, symbols; for a core
 *   stray_make_handlers()   code of three handlers that make handler calls, constants, the
 *                           table that registers them; for a NIC
 *   stray_change()          a file with handlers that somebody wrote: three of them, whichever,
 *                           get the names below, and some bits of their code change
 *
 * Code is random words, encodings that exist with random operands, or known code with some bits
 * changed.
 */
#ifndef TESTS_HPU_STRAYS_H
#define TESTS_HPU_STRAYS_H

#include "hpu/rv32/image.h"

#include <elf.h>

enum { STRAY_CODE = 0x1d000000, STRAY_CODE_MAX = 4096, STRAY_DATA_MAX = 512, STRAY_SEGMENTS = 3 };
enum { STRAY_FUNCTIONS = 4, STRAY_SECTIONS = 4 };

/* The names that handlers are registered by; shorter than what people take. */
#define STRAY_HEADER "head"
#define STRAY_PAYLOAD "load"
#define STRAY_COMPLETION "done"

struct stray_file {
    Elf32_Ehdr header;
    Elf32_Phdr segments[1 + STRAY_SEGMENTS];
    Elf32_Shdr sections[STRAY_SECTIONS];
    Elf32_Sym symbols[1 + STRAY_FUNCTIONS];
    char names[64];
    _Alignas(4) uint8_t code[STRAY_CODE_MAX];
    _Alignas(4) uint8_t data[STRAY_SEGMENTS][STRAY_DATA_MAX];
};

/* stray_make() makes image `number`. `known` is code that some of them are changed from, at most
 * STRAY_CODE_MAX bytes. */
void stray_make(struct stray_file *f, uint64_t number, const struct rv32_segment *known);

/* stray_make_handlers() makes image `number` of those with handlers. */
void stray_make_handlers(struct stray_file *f, uint64_t number);

/* stray_change() makes image `number` out of a good one of `size` bytes, which has a table of
 * handlers; with `bits` 0 its code stays as it is. It gives how many handlers have got a name. */
int stray_change(uint8_t *file, size_t size, uint64_t number, unsigned bits);

#endif
