/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of nic_copy.h: argument checks, and the reports of accesses to ThreadSanitizer. */
#include "nic_copy.h"

#include <errno.h>
#include <string.h>

#include "base/cpu.h"
#include "base/tsan.h"

size_t nic_copy_wide_min = SIZE_MAX;

__attribute__((constructor)) static void choose_copy(void)
{
    if (cpu_has_avx()) {
        nic_copy_wide_min = 160;
    }
}

int nic_copy_told(void *dst, const void *src, size_t n)
{
    int rc = nic_copy_raw(dst, src, n, NIC_COPY_REP_MIN, nic_copy_wide_min);
    if (rc == 0) {
        /* Reported after the copy: its success shows that the memory exists. */
        tsan_read(src, n);
        tsan_wrote(dst, n);
    }
    return rc;
}

/* Makes an access of `size` bytes that ThreadSanitizer sees as atomic, and that changes nothing. */
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

int nic_word_told(nic_word_raw *raw, void *p, uint64_t value, uint64_t *word, size_t size)
{
    uint64_t probe;
    if (nic_add_raw(p, 0, &probe, size) != 0) {
        return -EFAULT;
    }
    tsan_release(p);
    int rc = raw(p, value, word, size);
    if (rc == 0) {
        tsan_touch_atomic(p, size);
    }
    return rc;
}

int nic_cas64(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped)
{
    if ((uintptr_t)p % sizeof(*p) != 0) {
        return -EINVAL;
    }
    uint64_t found = *expected;
    int rc = nic_word(nic_cas_raw, p, desired, &found, sizeof(*p));
    if (rc == 0) {
        *swapped = found == *expected;
        *expected = found;
    }
    return rc;
}

int nic_fetch_add(void *p, const void *inc, void *before, size_t size)
{
    if ((size != 1 && size != 2 && size != 4 && size != 8) || (uintptr_t)p % size != 0) {
        return -EINVAL;
    }
    uint64_t addend = 0, found;
    memcpy(&addend, inc, size);
    int rc = nic_word(nic_add_raw, p, addend, &found, size);
    if (rc == 0) {
        memcpy(before, &found, size);
    }
    return rc;
}
