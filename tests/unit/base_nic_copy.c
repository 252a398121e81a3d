/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_copy() and its atomics: the right bytes, and -EFAULT instead of a signal. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/nic_copy.h"

#define PAGE ((size_t)4096)

static uint8_t src[80000], dst[80000], expect[80000];

static void fill(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245 + 12345;
        p[i] = (uint8_t)(seed >> 16);
    }
}

/* By the string copy from rep_min on, else 32 bytes wide from wide_min on. */
static void copy_and_compare(size_t n, size_t from, size_t to, size_t rep_min, size_t wide_min)
{
    size_t all = n + 128;
    memset(dst, 0xa5, all);
    memset(expect, 0xa5, all);
    memcpy(expect + 32 + to, src + from, n);
    assert_int_equal(nic_copy_raw(dst + 32 + to, src + from, n, rep_min, wide_min), 0);
    if (memcmp(dst, expect, all) != 0) {
        fail_msg("wrong bytes: n=%zu from=%zu to=%zu rep_min=%zu wide_min=%zu", n, from, to,
                 rep_min, wide_min);
    }
}

static void copies_what_memcpy_copies(void **state)
{
    (void)state;
    fill(src, sizeof(src), 1);
    for (size_t n = 0; n <= 300; n++) {
        for (size_t from = 0; from < 16; from++) {
            for (size_t to = 0; to < 16; to++) {
                copy_and_compare(n, from, to, SIZE_MAX, SIZE_MAX);
                if (__builtin_cpu_supports("avx")) {
                    copy_and_compare(n, from, to, SIZE_MAX, 160);
                }
            }
        }
    }
    static const size_t sizes[] = {129, 511, 512, 513, 1000, 1023, 1024, 1025, 4096, 8191, 70001};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t shift = 0; shift < 256; shift += 7) {
            copy_and_compare(sizes[i], shift % 16, shift / 16, SIZE_MAX, SIZE_MAX);
            copy_and_compare(sizes[i], shift % 16, shift / 16, SIZE_MAX, nic_copy_wide_min);
            copy_and_compare(sizes[i], shift % 16, shift / 16, 0, SIZE_MAX);
        }
    }
    assert_int_equal(nic_copy(dst, src, sizeof(src)), 0);
    assert_memory_equal(dst, src, sizeof(src));
}

/* Up to NIC_COPY_OVERLAP bytes both ends may be the same memory. */
static void short_copies_may_overlap(void **state)
{
    (void)state;
    fill(src, sizeof(src), 2);
    for (size_t n = 0; n <= NIC_COPY_OVERLAP; n++) {
        for (size_t to = 0; to <= 2 * n; to++) {
            memcpy(dst, src, 4 * NIC_COPY_OVERLAP);
            memcpy(expect, src, 4 * NIC_COPY_OVERLAP);
            memmove(expect + to, expect + n, n);
            assert_int_equal(nic_copy(dst + to, dst + n, n), 0);
            assert_memory_equal(dst, expect, 4 * NIC_COPY_OVERLAP);
        }
    }
}

/* Two pages, of which the second does not permit what is tried. */
static uint8_t *half_mapped(int protection)
{
    uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 0x11, 3 * PAGE);
    assert_int_equal(mprotect(p + PAGE, PAGE, protection), 0);
    return p;
}

static const size_t sizes[] = {1,  2,  3,  4,   7,   8,   9,   15,  16,   17,   31,   32,  33,
                               63, 64, 65, 127, 128, 129, 200, 511, 1023, 1024, 2000, 4000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void bad_source_is_efault(void **state)
{
    (void)state;
    assert_int_equal(fault_install(), 0);
    uint8_t *p = half_mapped(PROT_NONE);
    for (size_t i = 0; i < SIZES; i++) {
        size_t n = sizes[i];
        /* All of it, its first byte, its last byte, its middle. */
        size_t starts[] = {PAGE, 2 * PAGE - 1, PAGE + 1 - n, PAGE - n / 2};
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(nic_copy(dst, p + starts[k], n), -EFAULT);
            assert_int_equal(nic_copy_raw(dst, p + starts[k], n, 0, SIZE_MAX), -EFAULT);
            assert_int_equal(nic_copy_raw(dst, p + starts[k], n, SIZE_MAX, SIZE_MAX), -EFAULT);
        }
        assert_int_equal(nic_copy(dst, p + PAGE - n, n), 0);
        assert_int_equal(nic_copy(dst, p + 2 * PAGE, n), 0);
    }
    munmap(p, 3 * PAGE);
    fault_remove();
}

static void bad_destination_is_efault(void **state)
{
    (void)state;
    static const int protections[] = {PROT_NONE, PROT_READ};
    assert_int_equal(fault_install(), 0);
    for (int protection = 0; protection < 2; protection++) {
        uint8_t *p = half_mapped(protections[protection]);
        for (size_t i = 0; i < SIZES; i++) {
            size_t n = sizes[i];
            size_t starts[] = {PAGE, 2 * PAGE - 1, PAGE + 1 - n, PAGE - n / 2};
            for (size_t k = 0; k < 4; k++) {
                assert_int_equal(nic_copy(p + starts[k], src, n), -EFAULT);
                assert_int_equal(nic_copy_raw(p + starts[k], src, n, 0, SIZE_MAX), -EFAULT);
                assert_int_equal(nic_copy_raw(p + starts[k], src, n, SIZE_MAX, SIZE_MAX), -EFAULT);
            }
            assert_int_equal(nic_copy(p + PAGE - n, src, n), 0);
            assert_int_equal(nic_copy(p + 2 * PAGE, src, n), 0);
        }
        assert_int_equal(nic_copy(dst, p + PAGE, 100), protection == 0 ? -EFAULT : 0);
        munmap(p, 3 * PAGE);
    }
    fault_remove();
}

static void wild_addresses_are_efault(void **state)
{
    (void)state;
    static const uintptr_t wild[] = {
        0, 8, 0x0000800000000000, 0xdeadbeefdeadbeef, 0xffff800000000000, UINTPTR_MAX - 3};
    assert_int_equal(fault_install(), 0);
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        for (size_t k = 0; k < SIZES; k++) {
            assert_int_equal(nic_copy(dst, (void *)wild[i], sizes[k]), -EFAULT);
            assert_int_equal(nic_copy((void *)wild[i], src, sizes[k]), -EFAULT);
        }
        assert_int_equal(nic_copy((void *)wild[i], (void *)wild[i], 0), 0);
    }
    fault_remove();
}

/* A page of a file behind the file's end gives SIGBUS, not SIGSEGV. */
static void truncated_file_is_efault(void **state)
{
    (void)state;
    int fd = memfd_create("truncated", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(fault_install(), 0);
    assert_int_equal(nic_copy(dst, p, PAGE), 0);
    assert_int_equal(nic_copy(dst, p + PAGE - 10, 20), -EFAULT);
    assert_int_equal(nic_copy(p + PAGE - 10, src, 2000), -EFAULT);
    fault_remove();
    munmap(p, 2 * PAGE);
    close(fd);
}

static void cas_and_fetch_add(void **state)
{
    (void)state;
    uint64_t word = 5, expected = 4;
    bool swapped = true;
    assert_int_equal(nic_cas64(&word, &expected, 9, &swapped), 0);
    assert_false(swapped);
    assert_int_equal(expected, 5);
    assert_int_equal(word, 5);
    assert_int_equal(nic_cas64(&word, &expected, 9, &swapped), 0);
    assert_true(swapped);
    assert_int_equal(expected, 5);
    assert_int_equal(word, 9);

    for (size_t size = 1; size <= 8; size *= 2) {
        uint64_t value = UINT64_MAX, inc = 2, before = 0;
        assert_int_equal(nic_fetch_add(&value, &inc, &before, size), 0);
        uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
        assert_int_equal(before, mask);
        assert_int_equal(value, (UINT64_MAX & ~mask) | 1);
    }
}

static void atomics_check_their_addresses(void **state)
{
    (void)state;
    uint64_t words[2] = {1, 2}, expected = 1, inc = 1, before;
    bool swapped;
    assert_int_equal(nic_cas64((uint64_t *)((uintptr_t)words + 4), &expected, 9, &swapped),
                     -EINVAL);
    assert_int_equal(nic_fetch_add((char *)words + 1, &inc, &before, 2), -EINVAL);
    assert_int_equal(nic_fetch_add((char *)words + 2, &inc, &before, 4), -EINVAL);
    assert_int_equal(nic_fetch_add((char *)words + 4, &inc, &before, 8), -EINVAL);
    assert_int_equal(nic_fetch_add(words, &inc, &before, 3), -EINVAL);
    assert_int_equal(nic_fetch_add(words, &inc, &before, 0), -EINVAL);
    assert_int_equal(nic_fetch_add(words, &inc, &before, 16), -EINVAL);
    assert_int_equal(words[0], 1);

    assert_int_equal(fault_install(), 0);
    uint8_t *p = half_mapped(PROT_READ);
    assert_int_equal(nic_cas64(NULL, &expected, 9, &swapped), -EFAULT);
    assert_int_equal(nic_cas64((uint64_t *)(p + PAGE), &expected, 9, &swapped), -EFAULT);
    for (size_t size = 1; size <= 8; size *= 2) {
        assert_int_equal(nic_fetch_add(NULL, &inc, &before, size), -EFAULT);
        assert_int_equal(nic_fetch_add(p + PAGE, &inc, &before, size), -EFAULT);
        assert_int_equal(nic_fetch_add(p + PAGE - size, &inc, &before, size), 0);
    }
    munmap(p, 3 * PAGE);
    fault_remove();
}

/* Each raw operation on each size: its result, what it found, and the bytes beside it. */
static void words_of_each_size(void **state)
{
    (void)state;
    static const struct {
        nic_word_raw *raw;
        uint64_t result, word;
        bool finds;
    } cases[] = {
        {nic_add_raw, UINT64_C(0xf0f0f0f0f0f0f0f0) + UINT64_C(0x1111111111111133), 7, true},
        {nic_swap_raw, UINT64_C(0x1111111111111133), 7, true},
        {nic_cas_raw, UINT64_C(0x1111111111111133), UINT64_C(0xf0f0f0f0f0f0f0f0), true},
        {nic_cas_raw, UINT64_C(0xf0f0f0f0f0f0f0f0), 7, true},
        {nic_or_raw, UINT64_C(0xf1f1f1f1f1f1f1f3), 7, false},
        {nic_and_raw, UINT64_C(0x1010101010101030), 7, false},
        {nic_xor_raw, UINT64_C(0xe1e1e1e1e1e1e1c3), 7, false},
    };
    assert_int_equal(fault_install(), 0);
    uint8_t *p = half_mapped(PROT_READ);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t size = 1; size <= 8; size *= 2) {
            uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
            uint64_t value[3] = {5, UINT64_C(0xf0f0f0f0f0f0f0f0), 5}, word = cases[i].word & mask;
            assert_int_equal(
                nic_word(cases[i].raw, &value[1], UINT64_C(0x1111111111111133), &word, size), 0);
            assert_int_equal(value[1],
                             (cases[i].result & mask) | (UINT64_C(0xf0f0f0f0f0f0f0f0) & ~mask));
            assert_int_equal(word, cases[i].finds ? UINT64_C(0xf0f0f0f0f0f0f0f0) & mask : 7);
            assert_int_equal(value[0], 5);
            assert_int_equal(value[2], 5);

            word = 9;
            assert_int_equal(nic_word(cases[i].raw, p + PAGE, 0, &word, size), -EFAULT);
            assert_int_equal(nic_word(cases[i].raw, NULL, 0, &word, size), -EFAULT);
            assert_int_equal(word, 9);
        }
    }
    munmap(p, 3 * PAGE);
    fault_remove();
}

#define ROUNDS 20000
static uint64_t sum, product;

static void *adder(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t inc = 3, before, seen = 0;
        bool swapped = false;
        nic_fetch_add(&sum, &inc, &before, sizeof(sum));
        while (!swapped) {
            nic_cas64(&product, &seen, seen + 1, &swapped);
        }
    }
    return NULL;
}

static void atomics_are_atomic(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, adder, NULL), 0);
    }
    /* The program's own atomics mix with them. */
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&sum, 3, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(sum, 4 * 3 * ROUNDS);
    assert_int_equal(product, 3 * ROUNDS);
}

/* An atomic publishes what was copied before it, also in the eyes of TSan. */
static uint64_t ready;

static void *publisher(void *arg)
{
    uint64_t one = 1, before;
    nic_copy(arg, src, 1000);
    nic_fetch_add(&ready, &one, &before, sizeof(ready));
    return NULL;
}

static void an_atomic_publishes_a_copy(void **state)
{
    (void)state;
    pthread_t thread;
    memset(dst, 0, 1000);
    assert_int_equal(pthread_create(&thread, NULL, publisher, dst), 0);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0) {
        usleep(10);
    }
    assert_memory_equal(dst, src, 1000);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_what_memcpy_copies),
        cmocka_unit_test(short_copies_may_overlap),
        cmocka_unit_test(bad_source_is_efault),
        cmocka_unit_test(bad_destination_is_efault),
        cmocka_unit_test(wild_addresses_are_efault),
        cmocka_unit_test(truncated_file_is_efault),
        cmocka_unit_test(cas_and_fetch_add),
        cmocka_unit_test(atomics_check_their_addresses),
        cmocka_unit_test(words_of_each_size),
        cmocka_unit_test(atomics_are_atomic),
        cmocka_unit_test(an_atomic_publishes_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
