/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handler calls that no handler of the library makes: text, and swaps. With each setting, so
 * natively and on the RV32 cores, they leave the same bytes.
 */
#include "kit.h"

#include "calls_handlers.h"

enum { BYTES = 16 * CALLS_SWAPS };

static _Alignas(64) uint8_t memory[BYTES], data[BYTES];

/* What all HPUs have printed, one after another. */
static void read_output(struct kit *k, char *text, ptl_size_t room)
{
    ptl_size_t length = 0, printed;
    text[0] = '\0';
    for (unsigned i = 0; i < k->spin.num_hpus && room - length > 1; i++) {
        OK(PtlSpinOutput(k->p.ni, i, text + length, room - length, &printed));
        length += strlen(text + length);
    }
}

PTEST(printed, 2)
{
    static const char user[] = "header",
                      want[] = "-1 2 3 abc ABC 10|   42|42   |00042|+42|0xff\n"
                               "-7 4000000000 -9223372036854775808 18446744073709551615 "
                               "123456789abcdef\n"
                               "-3 -300 12 -13 -14\n"
                               "1 1.500000 2 1.235e+04 1e-05 x\n"
                               "1 2 3 4 5 6 7 8 9 10.000000\n"
                               "constant|   stack|stack   |sta|st|header|%\n"
                               "(nil) yend\n";
    struct kit k;
    char text[PTL_SPIN_OUTPUT + 1];
    kit_open(&k, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = calls_printing;
        h.user_hdr_length = sizeof(user);
        ptl_handle_me_t entry = kit_entry(&k, memory, BYTES, CALLS_BITS, 0, PTL_CT_NONE, &h);
        BARRIER();
        BARRIER();
        read_output(&k, text, sizeof(text));
        if (strcmp(text, want) != 0) {
            ptest_fail(__FILE__, __LINE__, "printed:\n%s", text);
        }
        port_unlink(&k.p, entry);
    } else {
        BARRIER();
        kit_put_once(&k, user, sizeof(user), 1, CALLS_BITS, 0, 0, PTL_NI_OK);
        BARRIER();
    }
    kit_close(&k);
}

static const uint64_t one = 0x3ff0000000000000, two = 0x4000000000000000; /* as doubles */

/* A row a swap: what was there, what is there afterwards. */
static const struct {
    struct calls_swap swap;
    uint64_t before, after;
    int code;
} rows[CALLS_SWAPS] = {
    {{.data = 7, .op = PTL_SWAP, .type = PTL_UINT64_T, .length = 8}, 3, 7, PTL_OK},
    {{.data = 7, .operand = 3, .op = PTL_CSWAP, .type = PTL_UINT64_T, .length = 8}, 3, 7, PTL_OK},
    {{.data = 7, .operand = 4, .op = PTL_CSWAP, .type = PTL_UINT64_T, .length = 8}, 3, 3, PTL_OK},
    {{.data = 7, .operand = 2, .op = PTL_CSWAP_LT, .type = PTL_UINT32_T, .length = 4},
     3 | UINT64_C(9) << 32,
     7 | UINT64_C(9) << 32,
     PTL_OK},
    {{.data = 0xffff, .operand = 0x0ff0, .op = PTL_MSWAP, .type = PTL_UINT16_T, .length = 2},
     0,
     0x0ff0,
     PTL_OK},
    {{.data = two, .operand = two, .op = PTL_CSWAP_GT, .type = PTL_DOUBLE, .length = 8},
     one,
     two,
     PTL_OK},
    {{.data = 0x5a, .operand = 0x0f, .op = PTL_MSWAP, .type = PTL_UINT8_T, .length = 1},
     0xa5,
     0xaa,
     PTL_OK},
    {{.data = 7, .operand = 3, .op = PTL_SUM, .type = PTL_UINT64_T, .length = 8},
     3,
     3,
     PTL_ARG_INVALID},
};

/* What a fetch of `length` bytes brings. */
static uint64_t found(int i)
{
    uint64_t bits =
        rows[i].swap.length < 8 ? (UINT64_C(1) << 8 * rows[i].swap.length) - 1 : UINT64_MAX;
    return rows[i].code == PTL_OK ? rows[i].before & bits : 0;
}

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

static void swap_at(struct kit *k, const ptl_handlers_t *handlers, bool host)
{
    struct calls_state state = {.pt = k->p.pt}, got;
    ptl_handlers_t h = *handlers;
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(k->p.ni, &ct));
    OK(PtlHPUAllocMem(k->p.ni, sizeof(state), &h.hpu_mem));
    for (int i = 0; i < CALLS_SWAPS; i++) {
        state.swap[i] = rows[i].swap;
        memcpy(memory + 16 * i, &rows[i].swap.data, 8);
    }
    h.hpu_initial_state = &state;
    ptl_handle_me_t entry = kit_entry(k, memory, BYTES, CALLS_BITS, 0, ct, &h);
    BARRIER();
    kit_wait(ct, host ? CALLS_SWAPS : 1); /* the message, and the swaps but for the last */
    OK(PtlHPURead(h.hpu_mem, 0, &got, sizeof(got)));
    for (int i = 0; i < CALLS_SWAPS; i++) {
        CHECK_EQ(got.code[i], rows[i].code);
        CHECK_EQ(host ? word_at(memory, 16 * i + 8) : got.before[i], found(i));
    }
    BARRIER();
    port_unlink(&k->p, entry);
    OK(PtlHPUFreeMem(h.hpu_mem));
    OK(PtlCTFree(ct));
}

static void swapped(const ptl_handlers_t *handlers, bool host, int rank, int size)
{
    struct kit k;
    kit_open(&k, rank, size);
    if (rank == 1) {
        swap_at(&k, handlers, host);
    } else {
        for (int i = 0; i < CALLS_SWAPS; i++) {
            memcpy(data + 16 * i, &rows[i].before, 8);
        }
        ptl_handle_me_t entry = kit_entry(&k, data, BYTES, CALLS_TARGET, 0, PTL_CT_NONE, NULL);
        BARRIER();
        kit_put_once(&k, memory, 8, 1, CALLS_BITS, 0, 0, PTL_NI_OK);
        BARRIER();
        for (int i = 0; i < CALLS_SWAPS; i++) {
            CHECK_EQ(word_at(data, 16 * i), rows[i].after);
        }
        port_unlink(&k.p, entry);
    }
    kit_close(&k);
}

PTEST(swapped_from_device, 2)
{
    swapped(&calls_swapping, false, rank, size);
}

PTEST(swapped_from_host, 2)
{
    swapped(&calls_swapping_host, true, rank, size);
}
