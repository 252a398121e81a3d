/* SPDX-License-Identifier: BSD-3-Clause */
/* HPU memory: aligned, zeroed, and fenced by pages that fault. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/nic_copy.h"
#include "hpu/memory.h"

/* A piece of `length` that nobody has written to. */
static void check_piece(const struct hpu_mem *mem, size_t length)
{
    uint8_t *p = mem->base, byte = 1;
    assert_int_equal(mem->length, length);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (size_t k = 0; k < length; k++) {
        assert_int_equal(p[k], 0);
        p[k] = 0xff;
    }
    /* The first byte that may fault is the next multiple of 64. */
    uint8_t *end = p + (length + 63) / 64 * 64;
    assert_int_equal(nic_copy(end, &byte, 1), -EFAULT);
    assert_int_equal(nic_copy(end - 1, &byte, 1), 0);
    uint8_t *page = (uint8_t *)((uintptr_t)p & ~(uintptr_t)4095);
    assert_int_equal(nic_copy(page - 1, &byte, 1), -EFAULT);
}

static void memory_is_fenced(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 8, 63, 64, 65, 100, 4032, 4095, 4096, 4097, 8192, 100000};
    assert_int_equal(fault_install(), 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct hpu_mem *mem = hpu_mem_create(lengths[i]);
        assert_non_null(mem);
        check_piece(mem, lengths[i]);
        hpu_mem_destroy(mem);
    }
    fault_remove();
}

/* For another length of as many pages, and then it is as good as new. */
static void a_piece_may_be_used_again(void **state)
{
    (void)state;
    assert_int_equal(fault_install(), 0);
    struct hpu_mem *mem = hpu_mem_create(5000);
    assert_non_null(mem);
    check_piece(mem, 5000);
    static const size_t others[] = {0, 1, 4096, 8193, SIZE_MAX}, same[] = {4097, 8192, 8100, 5000};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(hpu_mem_renew(mem, others[i]));
        assert_int_equal(mem->length, 5000);
    }
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        assert_true(hpu_mem_renew(mem, same[i]));
        check_piece(mem, same[i]);
    }
    hpu_mem_destroy(mem);
    fault_remove();
}

static void odd_lengths(void **state)
{
    (void)state;
    uint8_t byte;
    assert_int_equal(fault_install(), 0);
    struct hpu_mem *mem = hpu_mem_create(0);
    assert_non_null(mem);
    assert_int_equal(nic_copy(&byte, mem->base, 1), -EFAULT);
    hpu_mem_destroy(mem);
    hpu_mem_destroy(NULL);
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 2, SIZE_MAX / 4};
    for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        errno = 0;
        assert_null(hpu_mem_create(huge[i]));
        assert_int_equal(errno, ENOMEM);
    }
    fault_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_fenced),
        cmocka_unit_test(a_piece_may_be_used_again),
        cmocka_unit_test(odd_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
