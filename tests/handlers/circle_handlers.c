/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that ask the next rank of a circle (circle.c). */
#include "circle_handlers.h"

/* Notes how a call has ended; true: it was withdrawn, and may be made again. */
static bool note(struct circle_state *s, int code)
{
    s->done += code == PTL_OK;
    s->withdrawn += code == PTL_ABORTED;
    s->unknown += code == PTL_FAIL;
    s->other += code != PTL_OK && code != PTL_ABORTED && code != PTL_FAIL;
    return code == PTL_ABORTED;
}

static int ask_once(struct circle_state *s, uint64_t kind, ptl_process_t to, uint64_t operand,
                    uint64_t *word, uint64_t *found)
{
    switch (kind) {
    case CIRCLE_GET:
        return PtlHandlerGetToDevice(found, 8, to, CIRCLE_TABLE, 8 * CIRCLE_CONSTANT);
    case CIRCLE_ADD:
        return PtlHandlerFetchAtomicFromDevice(found, word, 8, to, CIRCLE_TABLE, 8 * CIRCLE_COUNT,
                                               0, PTL_SUM, PTL_UINT64_T);
    case CIRCLE_SWAP:
        return PtlHandlerSwapFromDevice(found, word, 8, to, CIRCLE_TABLE, 8 * CIRCLE_LAST, 0,
                                        &operand, PTL_SWAP, PTL_UINT64_T);
    default:
        return PtlHandlerSwapFromDevice(found, word, 8, to, CIRCLE_TABLE, 8 * CIRCLE_OWNER, 0,
                                        &operand, PTL_CSWAP, PTL_UINT64_T);
    }
}

static int ask(struct circle_state *s, uint64_t kind, uint64_t operand, uint64_t word,
               uint64_t *found)
{
    ptl_process_t to = {.rank = s->to};
    int code;
    do {
        code = ask_once(s, kind, to, operand, &word, found);
    } while (note(s, code));
    return code;
}

__handler static int asking_header(const ptl_header_t h, void *state)
{
    struct circle_state *s = state;
    uint64_t found = 0, kind = h.hdr_data % CIRCLE_KINDS, me = h.target_id.rank + 1u;
    int code = PTL_OK;
    switch (kind) {
    case CIRCLE_GET:
        code = ask(s, kind, 0, 0, &found);
        s->wrong += code == PTL_OK && found != 1000u + s->to;
        break;
    case CIRCLE_ADD:
        code = ask(s, kind, 0, 1, &found);
        s->wrong += code == PTL_OK && found != s->added;
        s->added += code == PTL_OK;
        break;
    case CIRCLE_SWAP:
        code = ask(s, kind, 0, h.hdr_data, &found);
        s->found_sum += code == PTL_OK ? h.hdr_data - found : 0;
        break;
    default: /* takes the lock, and gives it back */
        code = ask(s, kind, 0, me, &found);
        s->wrong += code == PTL_OK && found != 0;
        code = ask(s, kind, me, 0, &found);
        s->wrong += code == PTL_OK && found != me;
        break;
    }
    return code == PTL_OK ? DROP : FAIL;
}
PTL_HANDLER(asking_header);

const ptl_handlers_t circle_asking = {.header_handler = asking_header,
                                      .hpu_mem = PTL_HPU_MEM_NONE,
                                      .hpu_initial_length = sizeof(struct circle_state)};
