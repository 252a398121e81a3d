/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libelf and libdw that read images, loaded with the first image: programs
 * whose handlers run natively never need them.
 */
#ifndef HPU_RV32_ELFUTILS_H
#define HPU_RV32_ELFUTILS_H

#include "image.h"

#include <elfutils/libdw.h>
#include <libelf.h>

/* clang-format off */
#define ELF_FUNCTIONS(F) \
    F(elf_end) F(elf_errmsg) F(elf_getdata) F(elf_getident) F(elf_getphdrnum) \
    F(elf_getshdrstrndx) F(elf_kind) F(elf_memory) F(elf_nextscn) F(elf_rawdata) \
    F(elf_strptr) F(elf_version) F(elf32_getehdr) F(elf32_getphdr) F(elf32_getshdr)
#define DW_FUNCTIONS(F) \
    F(dwarf_begin_elf) F(dwarf_end) F(dwarf_getsrclines) F(dwarf_lineaddr) \
    F(dwarf_lineendsequence) F(dwarf_lineno) F(dwarf_linesrc) F(dwarf_nextcu) \
    F(dwarf_offdie) F(dwarf_onesrcline)
/* clang-format on */

#define ELFUTILS_POINTER(name) __typeof__(name) *name;
struct elfutils {
    ELF_FUNCTIONS(ELFUTILS_POINTER)
    DW_FUNCTIONS(ELFUTILS_POINTER)
};
#undef ELFUTILS_POINTER

extern struct elfutils elfutils;

/* elfutils_load() loads the libraries; -1: the error says what is missing. It must have returned 0
 * before any of their functions is called. */
int elfutils_load(struct rv32_error *error);

#endif
