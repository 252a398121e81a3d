/* SPDX-License-Identifier: BSD-3-Clause */
/* libelf and libdw, loaded when they are needed; see elfutils.h. */
#include "elfutils.h"

#include "base/library.h"
#include "base/mutex.h"

#include <pthread.h>

struct elfutils elfutils;

#define SYMBOL(name) {#name, &elfutils.name},
static const struct library_symbol elf_symbols[] = {ELF_FUNCTIONS(SYMBOL)};
static const struct library_symbol dw_symbols[] = {DW_FUNCTIONS(SYMBOL)};
static const char *missing;

static void load(void)
{
    missing = library_load("libelf.so.1", elf_symbols, sizeof(elf_symbols) / sizeof(*elf_symbols));
    if (missing == NULL) {
        missing = library_load("libdw.so.1", dw_symbols, sizeof(dw_symbols) / sizeof(*dw_symbols));
        elfutils.elf_version(EV_CURRENT);
    }
}

int elfutils_load(struct rv32_error *error)
{
    static struct once loaded;
    once(&loaded, load);
    return missing == NULL ? 0
                           : rv32_fail(error,
                                       "images cannot be read: there is no %s; install libelf1 "
                                       "and libdw1",
                                       missing);
}
