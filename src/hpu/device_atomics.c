/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics of 1, 2 and 8 bytes for device code, whose core has instructions for 4 bytes only
 * (rv32/runtime/atomics.c calls these for the functions that compilers emit). The device code's
 * memory is memory of this process, so they are atomic towards all other HPUs, native or not, and
 * towards the host.
 *
 * The caller has checked that the device code may access the memory so.
 */
#include "hpu/device.h"

#include <stdio.h>
#include <string.h>

/* Returns the address as a pointer, or ends device code whose address is misaligned. Regions that
 * can be written begin at multiples of 8 in both address spaces, so an address is aligned in both
 * or in none. The log gets the device code's own address, the first argument of its call. */
static void *aligned(uint64_t address, size_t size)
{
    enum { A0 = 10 };
    if (address % size != 0) {
        struct hpu_exec *exec = hpu_exec_current();
        char why[128];
        snprintf(why, sizeof(why),
                 "0x%08x: misaligned by %u, an atomic of %zu bytes: its address must be a multiple "
                 "of %zu",
                 exec->core->rv32.x[A0], (unsigned)(address % size), size, size);
        hpu_device_end(exec, SEGV, why);
    }
    return (void *)(uintptr_t)address;
}

/* Memory that is not aligned is in a region that cannot be written, so a plain copy sees no torn
 * value. */
uint64_t hpu_device_load_8(uint64_t address)
{
    uint64_t value;
    if (address % sizeof(value) == 0) {
        return __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_SEQ_CST);
    }
    memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
    return value;
}

uint64_t hpu_device_exchange_8(uint64_t address, uint64_t value)
{
    return __atomic_exchange_n((uint64_t *)aligned(address, sizeof(uint64_t)), value,
                               __ATOMIC_SEQ_CST);
}

#define CAS(size, type)                                                                            \
    uint64_t hpu_device_cas_##size(uint64_t address, uint64_t expected, uint64_t desired)          \
    {                                                                                              \
        type found = (type)expected;                                                               \
        __atomic_compare_exchange_n((type *)aligned(address, size), &found, (type)desired, false,  \
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
        return found;                                                                              \
    }

CAS(1, uint8_t)
CAS(2, uint16_t)
CAS(8, uint64_t)
