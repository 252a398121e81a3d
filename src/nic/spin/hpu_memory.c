/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPU memory of a NIC: pieces with handles, together no more than PINWHEEL_HPU_MEMORY. The NIC
 * keeps a few small pieces that were given back: to map a new one takes longer than everything else
 * that it does for an entry with handlers.
 */
#include "nic/spin/hpu_memory.h"

#include "nic/spin/blocks.h"
#include "nic/spin_calls.h"

#define SPARE_BYTES 65536 /* the largest piece that is kept, with its guard pages */

static struct hpu_mem *find_piece(struct nic *nic, uint64_t length)
{
    for (unsigned i = 0; i < nic->spare_pieces; i++) {
        struct hpu_mem *mem = nic->spare_piece[i];
        if (hpu_mem_renew(mem, length)) {
            nic->spare_piece[i] = nic->spare_piece[--nic->spare_pieces];
            return mem;
        }
    }
    return hpu_mem_create(length);
}

static void drop_piece(struct nic *nic, struct hpu_mem *mem)
{
    if (mem != NULL && mem->mapping_length <= SPARE_BYTES && nic->spare_pieces < SPARE_PIECES) {
        nic->spare_piece[nic->spare_pieces++] = mem;
    } else {
        hpu_mem_destroy(mem);
    }
}

void hpu_memory_forget(struct nic *nic)
{
    while (nic->spare_pieces != 0) {
        hpu_mem_destroy(nic->spare_piece[--nic->spare_pieces]);
    }
}

static bool has_room(const struct nic *nic, uint64_t length)
{
    uint64_t most = (uint64_t)nic->process->options.number[OPT_HPU_MEMORY];
    return length <= most - nic->hpu_memory_used;
}

bool hpu_memory_has(struct nic *nic, uint64_t length)
{
    if (!has_room(nic, length)) {
        blocks_trim(nic);
    }
    return has_room(nic, length);
}

struct hpu_memory *hpu_memory_new(struct ni *ni, uint64_t length)
{
    struct nic *nic = ni->nic;
    struct hpu_mem *mem = hpu_memory_has(nic, length) ? find_piece(nic, length) : NULL;
    struct hpu_memory *m = mem != NULL ? table_add(&ni->hpu_memories) : NULL;
    if (m == NULL) {
        drop_piece(nic, mem);
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
    drop_piece(m->ni->nic, m->mem);
    table_drop(&m->ni->hpu_memories, m);
}
