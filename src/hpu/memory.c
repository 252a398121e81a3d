/* SPDX-License-Identifier: BSD-3-Clause */
/* HPU memory; see memory.h. */
#include "hpu/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define ALIGN ((size_t)64)

struct hpu_mem *hpu_mem_create(size_t length)
{
    if (length > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    struct hpu_mem *mem = malloc(sizeof(*mem));
    if (mem == NULL) {
        return NULL;
    }
    size_t inner = (length + PAGE - 1) & ~(PAGE - 1);
    mem->length = length;
    mem->mapping_length = inner + 2 * PAGE;
    mem->mapping = mmap(NULL, mem->mapping_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mem->mapping == MAP_FAILED) {
        free(mem);
        return NULL;
    }
    char *first = (char *)mem->mapping + PAGE;
    if (inner > 0 && mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
        int error = errno;
        hpu_mem_destroy(mem);
        errno = error;
        return NULL;
    }
    mem->base = first + inner - ((length + ALIGN - 1) & ~(ALIGN - 1));
    return mem;
}

void hpu_mem_destroy(struct hpu_mem *mem)
{
    if (mem != NULL) {
        munmap(mem->mapping, mem->mapping_length);
        free(mem);
    }
}
