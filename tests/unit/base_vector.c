/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in parts, against a reference that knows of each byte of a vector where it is.
 */
#include "base/fault.h"
#include "base/vector.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PAGE ((size_t)4096)

enum { PARTS_MAX = 64, PART_MAX = 40, BYTES_MAX = PARTS_MAX * PART_MAX, AREA = 2 * BYTES_MAX };

/* A vector over `area`, and of each of its bytes the address, NULL for one that is not
 * accessible. */
static struct {
    struct iovec parts[PARTS_MAX];
    struct vector vector;
    uint8_t *at[BYTES_MAX];
    size_t length;
} made;
static uint8_t area[AREA], before[AREA], buffer[BYTES_MAX + 64], bytes[BYTES_MAX + 64];
static uint8_t *forbidden; /* a page that nobody may touch */

static uint64_t number = 88172645463325252u;

static size_t below(size_t n)
{
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number % n;
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)below(256);
    }
}

static size_t part_length(void)
{
    return below(4) == 0 ? 0 : below(2) == 0 ? 1 + below(3) : 1 + below(PART_MAX);
}

/* Parts lie in the area in any order, with gaps between; `bad` of a hundred are not
 * accessible. */
static void make_vector(unsigned bad)
{
    size_t count = 1 + below(PARTS_MAX), taken = 0, turn = below(count);
    made.length = 0;
    made.vector = (struct vector){made.parts, count};
    for (size_t i = 0; i < count; i++) {
        struct iovec *part = &made.parts[(i + turn) % count];
        part->iov_base = area + taken + below(PART_MAX);
        part->iov_len = part_length();
        taken += 2 * PART_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        struct iovec *part = &made.parts[i];
        bool good = below(100) >= bad;
        if (!good) {
            part->iov_base = below(2) == 0 ? (void *)(UINTPTR_MAX - below(PART_MAX)) : forbidden;
        }
        for (size_t k = 0; k < part->iov_len; k++) {
            made.at[made.length++] = good ? (uint8_t *)part->iov_base + k : NULL;
        }
    }
}

static bool accessible(uint64_t offset, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (offset + i >= made.length || made.at[offset + i] == NULL) {
            return false;
        }
    }
    return true;
}

static void check_gather(struct vector_cursor *c, uint64_t offset, size_t n)
{
    bool good = accessible(offset, n);
    memset(buffer, 0xaa, sizeof(buffer));
    assert_int_equal(vector_gather(buffer, &made.vector, c, offset, n), good ? 0 : -EFAULT);
    for (size_t i = 0; i < n && good; i++) {
        assert_int_equal(buffer[i], *made.at[offset + i]);
    }
    for (size_t i = n; i < sizeof(buffer); i++) {
        assert_int_equal(buffer[i], 0xaa);
    }
}

static void check_scatter(struct vector_cursor *c, uint64_t offset, size_t n)
{
    bool good = accessible(offset, n);
    fill(bytes, n);
    memcpy(before, area, AREA);
    assert_int_equal(vector_scatter(&made.vector, c, offset, bytes, n), good ? 0 : -EFAULT);
    for (size_t i = 0; i < n && offset + i < made.length; i++) {
        uint8_t *at = made.at[offset + i];
        if (at != NULL) {
            assert_true(*at == bytes[i] || (!good && *at == before[at - area]));
            *at = before[at - area];
        }
    }
    assert_memory_equal(area, before, AREA); /* nothing else was written */
}

/* What a part that is not accessible may name and yet not wrap. */
static bool forbids(const uint8_t *p)
{
    return (uintptr_t)p - (uintptr_t)forbidden < PAGE || (uintptr_t)p > UINTPTR_MAX - PART_MAX;
}

static void check_pieces(struct vector_cursor *c, uint64_t offset, size_t n, int most)
{
    struct iovec pieces[PARTS_MAX];
    uint64_t covered = 4711, sum = 0;
    int count = vector_pieces(&made.vector, c, offset, n, pieces, most, &covered);
    if (count < 0) {
        assert_int_equal(count, -EFAULT);
        assert_true(offset >= made.length || !accessible(offset, 1));
        return;
    }
    assert_true(count <= most);
    for (int i = 0; i < count; i++) {
        assert_true(pieces[i].iov_len != 0);
        for (size_t k = 0; k < pieces[i].iov_len; k++, sum++) {
            assert_true(offset + sum < made.length);
            uint8_t *at = made.at[offset + sum], *is = (uint8_t *)pieces[i].iov_base + k;
            assert_true(at == is || (at == NULL && forbids(is)));
        }
    }
    assert_int_equal(covered, sum);
    assert_true(sum <= n);
    if (sum < n) {
        assert_true(count == most || !accessible(offset + sum, 1));
    }
}

/* With one cursor for all, wherever it stands; and now and then with one that is new. */
static void try_vector(unsigned bad)
{
    struct vector_cursor c = {0};
    uint64_t length, offset = 0;
    make_vector(bad);
    assert_int_equal(vector_length(&made.vector, &length), 0);
    assert_int_equal(length, made.length);
    for (int i = 0; i < 60; i++) {
        if (below(3) == 0) {
            offset = below(made.length + 2);
        }
        size_t n = below(below(2) == 0 ? 8 : made.length + 3);
        struct vector_cursor fresh = {0}, *which = below(8) == 0 ? &fresh : &c;
        switch (below(3)) {
        case 0:
            check_gather(which, offset, n);
            break;
        case 1:
            check_scatter(which, offset, n);
            break;
        default:
            check_pieces(which, offset, n, (int)below(PARTS_MAX) + 1);
        }
        offset += n;
    }
}

static void bytes_go_where_the_reference_says(void **state)
{
    fill(area, AREA);
    for (int i = 0; i < 2000; i++) {
        try_vector(0);
    }
}

static void bad_parts_are_efault(void **state)
{
    assert_int_equal(fault_install(), 0);
    fill(area, AREA);
    for (int i = 0; i < 2000; i++) {
        try_vector(10);
    }
    fault_remove();
}

/* A part may be good but for its end. */
static void half_a_part_is_efault(void **state)
{
    assert_int_equal(fault_install(), 0);
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
    struct iovec parts[] = {{p, 10}, {p + PAGE - 10, 20}};
    struct vector v = {parts, 2};
    struct vector_cursor c = {0};
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 30), 0);
    assert_int_equal(vector_scatter(&v, &c, 0, buffer, 20), 0);
    assert_int_equal(vector_scatter(&v, &c, 0, buffer, 21), -EFAULT);
    assert_int_equal(vector_scatter(&v, &c, 20, buffer, 1), -EFAULT);
    munmap(p, 2 * PAGE);
    fault_remove();
}

static void lengths_do_not_wrap(void **state)
{
    assert_int_equal(fault_install(), 0);
    struct iovec parts[] = {{area, 5}, {NULL, SIZE_MAX - 5}, {area + 5, 4}, {area + 9, SIZE_MAX}};
    struct vector_cursor c = {0};
    uint64_t length;
    for (size_t count = 0; count <= 4; count++) {
        static const uint64_t sums[] = {0, 5, UINT64_MAX, UINT64_MAX, UINT64_MAX};
        struct vector v = {parts, count};
        assert_int_equal(vector_length(&v, &length), 0);
        assert_int_equal(length, sums[count]);
        assert_int_equal(vector_gather(buffer, &v, &c, UINT64_MAX, 0), 0);
        assert_int_equal(vector_gather(buffer, &v, &c, UINT64_MAX, 1), -EFAULT);
        assert_int_equal(vector_gather(buffer, &v, &c, UINT64_MAX - 1, 2), -EFAULT);
    }
    /* The last one wraps: none of its bytes can be reached, not the first ones either. */
    struct iovec wraps[] = {{area, 5}, {area + 5, SIZE_MAX - 5}};
    struct vector v = {wraps, 2};
    c = (struct vector_cursor){0};
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 5), 0);
    assert_int_equal(vector_gather(buffer, &v, &c, 5, 1), -EFAULT);
    assert_int_equal(vector_scatter(&v, &c, 5, bytes, 1), -EFAULT);
    fault_remove();
}

static void unreadable_list_is_efault(void **state)
{
    assert_int_equal(fault_install(), 0);
    struct vector v = {(struct iovec *)forbidden, 3};
    struct vector_cursor c = {0};
    struct iovec piece;
    uint64_t n;
    assert_int_equal(vector_length(&v, &n), -EFAULT);
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 1), -EFAULT);
    assert_int_equal(vector_scatter(&v, &c, 0, bytes, 1), -EFAULT);
    assert_int_equal(vector_pieces(&v, &c, 0, 1, &piece, 1, &n), -EFAULT);
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 0), 0);
    v = (struct vector){NULL, 0};
    assert_int_equal(vector_length(&v, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 1), -EFAULT);
    fault_remove();
}

/* The list's pages become unreadable one by one as the walk leaves them behind: so it
 * never looks back, and an access to what lies there does. */
static void walk_looks_ahead_only(void **state)
{
    assert_int_equal(fault_install(), 0);
    enum { PAGES = 64, PART = 3 };
    size_t count = PAGES * PAGE / sizeof(struct iovec), per_page = PAGE / sizeof(struct iovec);
    struct iovec *parts =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *memory = malloc(count * PART);
    assert_ptr_not_equal(parts, MAP_FAILED);
    assert_non_null(memory);
    fill(memory, count * PART);
    for (size_t i = 0; i < count; i++) { /* from the last to the first */
        parts[i] = (struct iovec){memory + (count - 1 - i) * PART, PART};
    }
    struct vector v = {parts, count};
    struct vector_cursor c = {0};
    size_t gone = 0, n;
    for (size_t offset = 0; offset < count * PART; offset += n) {
        n = 1 + below(500);
        n = n < count * PART - offset ? n : count * PART - offset;
        assert_int_equal(vector_gather(buffer, &v, &c, offset, n), 0);
        for (size_t i = 0; i < n; i++) {
            size_t part = (offset + i) / PART, inside = (offset + i) % PART;
            assert_int_equal(buffer[i], memory[(count - 1 - part) * PART + inside]);
        }
        for (; (gone + 1) * per_page <= (offset + n - 1) / PART; gone++) {
            assert_int_equal(mprotect(parts + gone * per_page, PAGE, PROT_NONE), 0);
        }
    }
    assert_int_equal(gone, PAGES - 1);
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 1), -EFAULT);
    assert_int_equal(mprotect(parts, PAGES * PAGE, PROT_READ), 0);
    assert_int_equal(vector_gather(buffer, &v, &c, 0, 1), 0);
    assert_int_equal(buffer[0], memory[(count - 1) * PART]);
    munmap(parts, PAGES * PAGE);
    free(memory);
    fault_remove();
}

static int set_up(void **state)
{
    forbidden = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return forbidden == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    return munmap(forbidden, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_where_the_reference_says),
        cmocka_unit_test(bad_parts_are_efault),
        cmocka_unit_test(half_a_part_is_efault),
        cmocka_unit_test(lengths_do_not_wrap),
        cmocka_unit_test(unreadable_list_is_efault),
        cmocka_unit_test(walk_looks_ahead_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
