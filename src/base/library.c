/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries loaded when they are needed; see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

const char *library_load(const char *library, const struct library_symbol *symbols, size_t count)
{
    /* The library stays loaded: it may have thread-local data and exit handlers. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return library;
    }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (found == NULL) {
            return symbols[i].name;
        }
        memcpy(symbols[i].to, &found, sizeof(found));
    }
    return NULL;
}

void *library_global(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
