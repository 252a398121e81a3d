/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of nic_copy.h: argument checks, and what ThreadSanitizer is told. */
#include "nic_copy.h"

#include <errno.h>
#include <string.h>

#include "base/tsan.h"

/* nic_copy_x86_64.S */
int nic_cas64_raw(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped);
int nic_fetch_add_1(void *p, uint64_t inc, uint64_t *before);
int nic_fetch_add_2(void *p, uint64_t inc, uint64_t *before);
int nic_fetch_add_4(void *p, uint64_t inc, uint64_t *before);
int nic_fetch_add_8(void *p, uint64_t inc, uint64_t *before);

size_t nic_copy_wide_min = SIZE_MAX;

__attribute__((constructor)) static void choose_copy(void)
{
    if (__builtin_cpu_supports("avx")) {
        nic_copy_wide_min = 512;
    }
}

int nic_copy_told(void *dst, const void *src, size_t n)
{
    int rc = nic_copy_raw(dst, src, n, NIC_COPY_REP_MIN, nic_copy_wide_min);
    if (rc == 0) {
        /* Told afterwards: now the memory is known to exist. */
        tsan_read(src, n);
        tsan_wrote(dst, n);
    }
    return rc;
}

int nic_cas64(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped)
{
    if ((uintptr_t)p % sizeof(*p) != 0) {
        return -EINVAL;
    }
    if (TSAN) {
        uint64_t probe;
        if (nic_fetch_add_8(p, 0, &probe) != 0) {
            return -EFAULT;
        }
        tsan_release(p);
    }
    int rc = nic_cas64_raw(p, expected, desired, swapped);
    if (TSAN && rc == 0) {
        __atomic_fetch_add(p, 0, __ATOMIC_ACQ_REL);
    }
    return rc;
}

static int fetch_add(void *p, uint64_t inc, uint64_t *before, size_t size)
{
    switch (size) {
    case 1:
        return nic_fetch_add_1(p, inc, before);
    case 2:
        return nic_fetch_add_2(p, inc, before);
    case 4:
        return nic_fetch_add_4(p, inc, before);
    default:
        return nic_fetch_add_8(p, inc, before);
    }
}

/* An access that ThreadSanitizer sees as atomic. */
static void tsan_touch_atomic(void *p, size_t size)
{
    switch (size) {
    case 1:
        __atomic_fetch_add((uint8_t *)p, 0, __ATOMIC_ACQ_REL);
        break;
    case 2:
        __atomic_fetch_add((uint16_t *)p, 0, __ATOMIC_ACQ_REL);
        break;
    case 4:
        __atomic_fetch_add((uint32_t *)p, 0, __ATOMIC_ACQ_REL);
        break;
    default:
        __atomic_fetch_add((uint64_t *)p, 0, __ATOMIC_ACQ_REL);
        break;
    }
}

int nic_fetch_add(void *p, const void *inc, void *before, size_t size)
{
    if ((size != 1 && size != 2 && size != 4 && size != 8) || (uintptr_t)p % size != 0) {
        return -EINVAL;
    }
    uint64_t addend = 0, found;
    memcpy(&addend, inc, size);
    if (TSAN) {
        if (fetch_add(p, 0, &found, size) != 0) {
            return -EFAULT;
        }
        tsan_release(p);
    }
    int rc = fetch_add(p, addend, &found, size);
    if (rc != 0) {
        return rc;
    }
    if (TSAN) {
        tsan_touch_atomic(p, size);
    }
    memcpy(before, &found, size);
    return 0;
}
