/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where atomics are done: targets that are not there, threads that do them at once,
 * and what the calling thread's floating-point settings have to do with it: nothing.
 */
#include "nic/atomic.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"

#define PAGE ((size_t)4096)

/* Of any type: the call that takes it. */
static bool is_defined(ptl_op_t op, ptl_datatype_t type)
{
    return atomic_is_legal(ATOMIC_PLAIN, op, type) || atomic_is_legal(ATOMIC_SWAP, op, type);
}

static const uint8_t zeros[1024];
static uint8_t before[1024];

/* On zeros most operations change nothing: that must not make read-only memory good. */
static int run(uintptr_t target, size_t length, ptl_op_t op, ptl_datatype_t type)
{
    int rc = nic_atomic((void *)target, zeros, zeros, NULL, length, op, type);
    assert_int_equal(nic_atomic((void *)target, zeros, zeros, before, length, op, type), rc);
    return rc;
}

static void each_defined(void (*body)(ptl_op_t op, ptl_datatype_t type, uint8_t *page),
                         uint8_t *page)
{
    for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
        for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
            if (is_defined(op, type)) {
                body(op, type, page);
            }
        }
    }
}

/* The page is bad, the one before it good. */
static void try_bad_page(ptl_op_t op, ptl_datatype_t type, uint8_t *page)
{
    size_t size = atomic_size(type);
    uintptr_t bad = (uintptr_t)page;
    assert_int_equal(run(bad, size, op, type), -EFAULT);
    assert_int_equal(run(bad + 1, size, op, type), -EFAULT);
    assert_int_equal(run(bad + PAGE - 3 * size, 3 * size, op, type), -EFAULT);
    /* The last element; of three and of more than a line has room for. */
    assert_int_equal(run(bad - 2 * size, 3 * size, op, type), -EFAULT);
    assert_int_equal(run(bad - 9 * size, 10 * size, op, type), -EFAULT);
    assert_int_equal(run(bad - 9 * size, 9 * size, op, type), 0);
    assert_int_equal(run(bad - 9 * size - 1, 9 * size, op, type), 0);
    /* The last byte. */
    if (size > 1) {
        assert_int_equal(run(bad - size + 1, size, op, type), -EFAULT);
        assert_int_equal(run(bad - 3 * size + 1, 3 * size, op, type), -EFAULT);
    }
    assert_int_equal(run(bad, 0, op, type), 0);
}

static void bad_pages_are_efault(void **state)
{
    (void)state;
    static const int protections[] = {PROT_NONE, PROT_READ};
    assert_int_equal(fault_install(), 0);
    for (int i = 0; i < 2; i++) {
        uint8_t *p =
            mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(p, MAP_FAILED);
        assert_int_equal(mprotect(p + PAGE, PAGE, protections[i]), 0);
        each_defined(try_bad_page, p + PAGE);
        munmap(p, 2 * PAGE);
    }
    fault_remove();
}

static void try_wild_address(ptl_op_t op, ptl_datatype_t type, uint8_t *page)
{
    (void)page;
    static const uintptr_t wild[] = {0,
                                     1,
                                     64,
                                     0x0000800000000000,
                                     0x00007fffffffffff,
                                     0xdeadbeefdeadbee8,
                                     0xffff800000000000,
                                     UINTPTR_MAX - 31,
                                     UINTPTR_MAX};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        assert_int_equal(run(wild[i], atomic_size(type), op, type), -EFAULT);
        assert_int_equal(run(wild[i], 5 * atomic_size(type), op, type), -EFAULT);
        assert_int_equal(run(wild[i], 0, op, type), 0);
    }
}

static void wild_addresses_are_efault(void **state)
{
    (void)state;
    assert_int_equal(fault_install(), 0);
    each_defined(try_wild_address, NULL);
    fault_remove();
}

/* Up to the fault each element is done or not, and none is done twice. */
static void elements_before_a_fault_are_whole(void **state)
{
    (void)state;
    assert_int_equal(fault_install(), 0);
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
    uint64_t data[40];
    for (int i = 0; i < 40; i++) {
        data[i] = UINT64_C(0x0101010101010101) * (uint64_t)(i + 1);
    }
    assert_int_equal(
        nic_atomic(p + PAGE - 39 * 8, data, NULL, NULL, sizeof(data), PTL_SUM, PTL_UINT64_T),
        -EFAULT);
    assert_memory_equal(p + PAGE - 39 * 8, data, 39 * 8);
    memset(p, 0, PAGE);
    /* 16 bytes each, so one after the other in strips of a line. */
    long double numbers[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, *target = (long double *)(p + PAGE) - 8;
    assert_int_equal(
        nic_atomic(target, numbers, NULL, NULL, sizeof(numbers), PTL_SUM, PTL_LONG_DOUBLE),
        -EFAULT);
    for (int i = 0; i < 8; i++) {
        assert_true(target[i] == 0 || target[i] == numbers[i]);
    }
    munmap(p, 2 * PAGE);
    fault_remove();
}

/* ---- Floating-point settings ---- */

struct float_case {
    ptl_op_t op;
    ptl_datatype_t type;
    union {
        float f[2];
        double d[2];
        long double ld[2];
    } target, data, result;
};

/* Overflow, NaN compared, and a sum that is rounded. */
static const struct float_case float_cases[] = {
    {PTL_SUM, PTL_FLOAT, {.f = {FLT_MAX}}, {.f = {FLT_MAX}}, {.f = {INFINITY}}},
    {PTL_SUM, PTL_DOUBLE, {.d = {DBL_MAX}}, {.d = {DBL_MAX}}, {.d = {INFINITY}}},
    {PTL_SUM, PTL_LONG_DOUBLE, {.ld = {LDBL_MAX}}, {.ld = {LDBL_MAX}}, {.ld = {INFINITY}}},
    {PTL_MIN, PTL_DOUBLE, {.d = {2}}, {.d = {NAN}}, {.d = {2}}},
    {PTL_MIN, PTL_LONG_DOUBLE, {.ld = {2}}, {.ld = {NAN}}, {.ld = {2}}},
    {PTL_SUM, PTL_FLOAT, {.f = {1}}, {.f = {1e-20F}}, {.f = {1}}},
    {PTL_SUM, PTL_DOUBLE, {.d = {1}}, {.d = {1e-40}}, {.d = {1}}},
    {PTL_SUM, PTL_LONG_DOUBLE, {.ld = {1}}, {.ld = {1e-40L}}, {.ld = {1}}},
    {PTL_SUM, PTL_DOUBLE_COMPLEX, {.d = {1, 1}}, {.d = {1e-40, 1}}, {.d = {1, 2}}},
    {PTL_PROD, PTL_LONG_DOUBLE_COMPLEX, {.ld = {LDBL_MAX}}, {.ld = {4}}, {.ld = {INFINITY}}},
    {PTL_SUM, PTL_DOUBLE, {.d = {DBL_TRUE_MIN}}, {.d = {0}}, {.d = {DBL_TRUE_MIN}}},
};

static void settings_of_the_thread_do_not_matter(void **state)
{
    (void)state;
    fenv_t initial;
    fegetenv(&initial);
    for (size_t i = 0; i < sizeof(float_cases) / sizeof(float_cases[0]); i++) {
        struct float_case c = float_cases[i];
        feclearexcept(FE_ALL_EXCEPT);
        fesetround(FE_UPWARD);
        feenableexcept(FE_ALL_EXCEPT);
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* denormals are zero */
        int rc = nic_atomic(&c.target, &c.data, NULL, NULL, atomic_size(c.type), c.op, c.type);
        int rounding = fegetround(), raised = fetestexcept(FE_ALL_EXCEPT), traps = fegetexcept();
        fesetenv(&initial);
        assert_int_equal(rc, 0);
        /* A long double and its imaginary part are 10 bytes, the rest is anything. */
        size_t part = c.type >= PTL_LONG_DOUBLE ? 10 : atomic_size(c.type);
        assert_memory_equal(&c.target, &c.result, part);
        assert_int_equal(rounding, FE_UPWARD);
        assert_int_equal(raised, 0);
        assert_int_equal(traps, FE_ALL_EXCEPT);
    }
}

/* ---- Threads ---- */

#define NICS 3
#define STEP_NS 20000000 /* several turns of a processor that is shared */
#define MOST 4000000     /* rounds: a float counts up to four times as many */

static struct {
    uint64_t sum, count;
    uint8_t byte;
    uint32_t bits;
    int32_t most;
    float f;
    double d;
    _Alignas(16) long double ld;
    _Alignas(16) double _Complex dc;
    uint8_t odd[9];              /* a word at 1 */
    _Alignas(8) uint8_t pack[8]; /* elements that fill a word */
} shared;

static void one_more(void *target, const void *one, ptl_op_t op, ptl_datatype_t type)
{
    assert_int_equal(nic_atomic(target, one, NULL, NULL, atomic_size(type), op, type), 0);
}

static void add_to_word(int i)
{
    one_more(&shared.sum, &(uint64_t){3}, PTL_SUM, PTL_UINT64_T);
}

static void count_by_cswap(int i)
{
    uint64_t expected = 0, found = 1;
    for (uint64_t next = 1; found != expected; next = found + 1) {
        expected = next - 1;
        nic_atomic(&shared.count, &next, &expected, &found, 8, PTL_CSWAP, PTL_UINT64_T);
    }
}

static void add_to_byte(int i)
{
    one_more(&shared.byte, &(uint8_t){1}, PTL_SUM, PTL_UINT8_T);
}

static void flip_bit_twice(int i)
{
    one_more(&shared.bits, &(uint32_t){UINT32_C(1) << i % 31}, PTL_BXOR, PTL_UINT32_T);
    one_more(&shared.bits, &(uint32_t){UINT32_C(1) << i % 31}, PTL_BXOR, PTL_UINT32_T);
}

static void raise_most(int i)
{
    one_more(&shared.most, &(int32_t){i}, PTL_MAX, PTL_INT32_T);
}

static void add_to_float(int i)
{
    one_more(&shared.f, &(float){1}, PTL_SUM, PTL_FLOAT);
}

static void add_to_double(int i)
{
    one_more(&shared.d, &(double){1}, PTL_SUM, PTL_DOUBLE);
}

static void add_to_long_double(int i)
{
    one_more(&shared.ld, &(long double){1}, PTL_SUM, PTL_LONG_DOUBLE);
}

static void add_to_complex(int i)
{
    one_more(&shared.dc, &(double _Complex){1}, PTL_SUM, PTL_DOUBLE_COMPLEX);
}

static void add_to_odd_word(int i)
{
    one_more(shared.odd + 1, &(uint64_t){UINT64_C(1) << 32}, PTL_SUM, PTL_UINT64_T);
}

static void add_to_all_of_pack(int i)
{
    static const uint8_t more[8] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_int_equal(nic_atomic(shared.pack, more, NULL, NULL, sizeof(more), PTL_SUM, PTL_UINT8_T),
                     0);
}

/* The program's own atomics. */
static void program_adds_to_word(int i)
{
    __atomic_fetch_add(&shared.sum, 3, __ATOMIC_RELAXED);
}

static void program_counts(int i)
{
    __atomic_fetch_add(&shared.count, 1, __ATOMIC_SEQ_CST);
}

static void program_adds_to_byte(int i)
{
    __atomic_fetch_add(&shared.byte, 1, __ATOMIC_RELAXED);
}

static void program_adds_to_one_of_pack(int i)
{
    __atomic_fetch_add(&shared.pack[2], 3, __ATOMIC_RELAXED);
}

static void program_flips_bit_twice(int i)
{
    __atomic_fetch_xor(&shared.bits, UINT32_C(1) << i % 31, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&shared.bits, UINT32_C(1) << i % 31, __ATOMIC_RELAXED);
}

static void program_adds_to_double(int i)
{
    double now, next;
    __atomic_load(&shared.d, &now, __ATOMIC_RELAXED);
    do {
        next = now + 1;
    } while (
        !__atomic_compare_exchange(&shared.d, &now, &next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* All do one step at once; the program joins in where locked instructions do the work. */
enum {
    WORD,
    COUNT,
    BYTE,
    BITS,
    HIGHEST,
    FLOAT,
    DOUBLE,
    LONG_DOUBLE,
    COMPLEX,
    ODD_WORD,
    PACK,
    STEPS
};

static const struct {
    void (*nic)(int i), (*program)(int i);
} steps[STEPS] = {
    [WORD] = {add_to_word, program_adds_to_word},
    [COUNT] = {count_by_cswap, program_counts},
    [BYTE] = {add_to_byte, program_adds_to_byte},
    [BITS] = {flip_bit_twice, program_flips_bit_twice},
    [HIGHEST] = {raise_most, NULL},
    [FLOAT] = {add_to_float, NULL},
    [DOUBLE] = {add_to_double, program_adds_to_double},
    [LONG_DOUBLE] = {add_to_long_double, NULL},
    [COMPLEX] = {add_to_complex, NULL},
    [ODD_WORD] = {add_to_odd_word, NULL},
    [PACK] = {add_to_all_of_pack, program_adds_to_one_of_pack},
};

static pthread_barrier_t all_here;

struct worker {
    bool is_program;
    int rounds[STEPS];
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *hammer(void *arg)
{
    struct worker *w = arg;
    for (int s = 0; s < STEPS; s++) {
        void (*step)(int i) = w->is_program ? steps[s].program : steps[s].nic;
        pthread_barrier_wait(&all_here);
        int64_t end = now_ns() + STEP_NS;
        int i = 0;
        while (step != NULL && i < MOST && now_ns() < end) {
            for (int k = 0; k < 100; k++) {
                step(i++);
            }
        }
        w->rounds[s] = i;
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[NICS];
    struct worker workers[NICS + 1] = {[NICS] = {.is_program = true}};
    assert_int_equal(pthread_barrier_init(&all_here, NULL, NICS + 1), 0);
    for (int i = 0; i < NICS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &workers[i]), 0);
    }
    hammer(&workers[NICS]);
    uint64_t total[STEPS] = {0};
    int highest = 0;
    for (int i = 0; i <= NICS; i++) {
        if (i < NICS) {
            pthread_join(threads[i], NULL);
        }
        for (int s = 0; s < STEPS; s++) {
            total[s] += (uint64_t)workers[i].rounds[s];
        }
        if (highest < workers[i].rounds[HIGHEST]) {
            highest = workers[i].rounds[HIGHEST];
        }
    }
    pthread_barrier_destroy(&all_here);
    assert_int_equal(shared.sum, 3 * total[WORD]);
    assert_int_equal(shared.count, total[COUNT]);
    assert_int_equal(shared.byte, total[BYTE] % 256);
    assert_int_equal(shared.bits, 0);
    assert_int_equal(shared.most, highest - 1);
    assert_true(shared.f == (float)total[FLOAT]);
    assert_true(shared.d == (double)total[DOUBLE]);
    assert_true(shared.ld == (long double)total[LONG_DOUBLE]);
    assert_true(shared.dc == (double)total[COMPLEX]);
    uint64_t word;
    memcpy(&word, shared.odd + 1, sizeof(word));
    assert_int_equal(word, total[ODD_WORD] << 32);
    int by_program = workers[NICS].rounds[PACK];
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t each = i == 7 ? 255 : i + 1, nics = total[PACK] - (uint64_t)by_program;
        uint64_t sum = nics * each + (i == 2 ? 3 * (uint64_t)by_program : 0);
        assert_int_equal(shared.pack[i], sum % 256);
    }
}

/* ---- Forks ---- */

static bool stop;
static long double contended;

static void *busy(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        one_more(&contended, &(long double){1}, PTL_SUM, PTL_LONG_DOUBLE);
    }
    return NULL;
}

/* The busy thread has the lock most of the time, and the child has not the thread. */
static void a_forked_child_finds_no_lock_held(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, busy, NULL), 0);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            long double one = 1;
            _exit(nic_atomic(&contended, &one, NULL, NULL, sizeof(one), PTL_SUM, PTL_LONG_DOUBLE) ==
                          0
                      ? 0
                      : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_pages_are_efault),
        cmocka_unit_test(wild_addresses_are_efault),
        cmocka_unit_test(elements_before_a_fault_are_whole),
        cmocka_unit_test(settings_of_the_thread_do_not_matter),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(a_forked_child_finds_no_lock_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
