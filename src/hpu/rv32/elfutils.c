/* SPDX-License-Identifier: BSD-3-Clause */
/* libelf and libdw, loaded when they are needed; see elfutils.h. */
#include "elfutils.h"

#include "base/forks.h"
#include "base/library.h"

#include <dlfcn.h>
#include <stdbool.h>

struct elfutils elfutils;

#define SYMBOL(name) {#name, &elfutils.name},
static const struct library_symbol elf_symbols[] = {ELF_FUNCTIONS(SYMBOL)};
static const struct library_symbol dw_symbols[] = {DW_FUNCTIONS(SYMBOL)};

/* The linker's message says why a library cannot be loaded: it may exist, and the process have no
 * file descriptor left, for example. */
static int load_one(const char *library, const struct library_symbol *symbols, size_t count,
                    struct rv32_error *error)
{
    const char *missing = library_load(library, symbols, count);
    if (missing == NULL) {
        return 0;
    }
    if (missing != library) {
        return rv32_fail(error, "images cannot be read: %s has no %s; libelf1 and libdw1 have it",
                         library, missing);
    }
    return rv32_fail(error, "images cannot be read: %s (it is of the packages libelf1 and libdw1)",
                     dlerror());
}

int elfutils_load(struct rv32_error *error)
{
    static struct mutex mutex;
    static bool loaded; /* false: the next call tries again */
    /* so that no child is forked with a library half loaded, which it could not load again */
    forks_take(&mutex);
    if (!loaded && load_one("libelf.so.1", elf_symbols, sizeof(elf_symbols) / sizeof(*elf_symbols),
                            error) == 0) {
        elfutils.elf_version(EV_CURRENT);
        loaded = load_one("libdw.so.1", dw_symbols, sizeof(dw_symbols) / sizeof(*dw_symbols),
                          error) == 0;
    }
    int rc = loaded ? 0 : -1;
    forks_give(&mutex);
    return rc;
}
