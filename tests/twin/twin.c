/* SPDX-License-Identifier: BSD-3-Clause */
/* The program `twin`, with the library in it; see twin.h. */
#include "twin.h"

#include "nic/process.h"

#include <dlfcn.h>
#include <stdio.h>

struct process *twin_process_new(void)
{
    return process_new();
}

struct process *twin_process_enter(struct process *p)
{
    return process_enter(p);
}

void twin_process_free(struct process *p)
{
    process_free(p);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODULE [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*module_main)(int, char **) = NULL;
    if (module != NULL) {
        *(void **)&module_main = dlsym(module, "twin_main");
    }
    if (module_main == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return module_main(argc - 1, argv + 1);
}
