/* SPDX-License-Identifier: BSD-3-Clause */
/* HPU memory of a NIC: pieces with handles, together no more than PINWHEEL_HPU_MEMORY. */
#include "nic/nic.h"

struct hpu_memory *hpu_memory_new(struct ni *ni, uint64_t length)
{
    struct nic *nic = ni->nic;
    uint64_t most = (uint64_t)nic->process->options.number[OPT_HPU_MEMORY];
    if (length > most - nic->hpu_memory_used) {
        return NULL;
    }
    struct hpu_mem *mem = hpu_mem_create(length);
    struct hpu_memory *m = mem != NULL ? table_add(&ni->hpu_memories) : NULL;
    if (m == NULL) {
        hpu_mem_destroy(mem);
        return NULL;
    }
    m->ni = ni;
    m->mem = mem;
    nic->hpu_memory_used += length;
    return m;
}

void hpu_memory_free(struct hpu_memory *m)
{
    m->ni->nic->hpu_memory_used -= m->mem->length;
    hpu_mem_destroy(m->mem);
    table_drop(&m->ni->hpu_memories, m);
}
