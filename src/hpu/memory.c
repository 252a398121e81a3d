/* SPDX-License-Identifier: BSD-3-Clause */
/* HPU memory; see memory.h. */
#include "hpu/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define ALIGN ((size_t)64)

/* Returns the length of the pages between the guards. */
static size_t inner_length(size_t length)
{
    return (length + PAGE - 1) & ~(PAGE - 1);
}

static char *first_page(const struct hpu_mem *mem)
{
    return (char *)mem->mapping + PAGE;
}

static void set_length(struct hpu_mem *mem, size_t length)
{
    mem->length = length;
    mem->base = first_page(mem) + inner_length(length) - ((length + ALIGN - 1) & ~(ALIGN - 1));
}

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
    size_t inner = inner_length(length);
    mem->mapping_length = inner + 2 * PAGE;
    mem->mapping = mmap(NULL, mem->mapping_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mem->mapping == MAP_FAILED) {
        free(mem);
        return NULL;
    }
    if (inner > 0 && mprotect(first_page(mem), inner, PROT_READ | PROT_WRITE) != 0) {
        int error = errno;
        hpu_mem_destroy(mem);
        errno = error;
        return NULL;
    }
    set_length(mem, length);
    return mem;
}

bool hpu_mem_renew(struct hpu_mem *mem, size_t length)
{
    size_t inner = mem->mapping_length - 2 * PAGE;
    if (length > inner || inner_length(length) != inner) {
        return false;
    }
    memset(first_page(mem), 0, inner);
    set_length(mem, length);
    return true;
}

void hpu_mem_destroy(struct hpu_mem *mem)
{
    if (mem != NULL) {
        munmap(mem->mapping, mem->mapping_length);
        free(mem);
    }
}
