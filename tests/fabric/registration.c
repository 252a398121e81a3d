/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache with a provider that demands it. Its network reads and writes memory
 * through a mapping of its own, of which only registered pages can be accessed; registered pages
 * are locked (mlock). A transfer whose key is none, or whose range is not of that key, is refused;
 * one that goes on after its memory was unregistered faults.
 */
#include "fabric/registration/registration.h"

#include "../splitmix.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, PAGES = 64, LONGEST = 4 * PAGE, MOST = 6, KEYS = 1 << 16, THREADS = 4 };

struct network {
    pthread_mutex_t lock;
    int file;
    char *memory, *window; /* the program's mapping; the network's */
    unsigned registered[PAGES];
    struct {
        char *start;
        size_t length; /* 0: the key is none any more */
    } keys[KEYS];
    uint64_t next;
    unsigned now, most, fail;
};

static struct network net;

/* Counts a registration of each page, and makes the first and the last one true. */
static int count(char *start, size_t length, int by)
{
    for (size_t i = (size_t)(start - net.memory) / PAGE, n = length / PAGE; n > 0; i++, n--) {
        unsigned before = net.registered[i];
        net.registered[i] += (unsigned)by;
        if (before == 0 || net.registered[i] == 0) {
            bool on = before == 0;
            /* mlock() does nothing under a sanitizer */
            if (syscall(on ? SYS_mlock : SYS_munlock, net.memory + i * PAGE, PAGE) != 0 ||
                mprotect(net.window + i * PAGE, PAGE, on ? PROT_READ | PROT_WRITE : PROT_NONE) !=
                    0) {
                return -1;
            }
        }
    }
    return 0;
}

static int add(void *context, void *start, size_t length, uint64_t *handle, uint64_t *key)
{
    if (net.fail > 0) {
        net.fail--;
        return -ENOMEM;
    }
    pthread_mutex_lock(&net.lock);
    assert_true(net.next < KEYS && (uintptr_t)start % PAGE == 0 && length % PAGE == 0);
    assert_int_equal(count(start, length, 1), 0);
    net.keys[net.next].start = start;
    net.keys[net.next].length = length;
    net.now++;
    net.most = net.now > net.most ? net.now : net.most;
    *key = net.next;
    *handle = ++net.next;
    pthread_mutex_unlock(&net.lock);
    return 0;
}

static void take_out(void *context, uint64_t handle)
{
    pthread_mutex_lock(&net.lock);
    assert_true(handle > 0 && net.keys[handle - 1].length > 0);
    assert_int_equal(count(net.keys[handle - 1].start, net.keys[handle - 1].length, -1), 0);
    net.keys[handle - 1].length = 0;
    net.now--;
    pthread_mutex_unlock(&net.lock);
}

static const struct registration_provider provider = {add, take_out};

/* The network writes a byte to each address of a range. */
static int transfer(uint64_t key, char *start, size_t length, char value)
{
    pthread_mutex_lock(&net.lock);
    bool fits = key < KEYS && net.keys[key].length > 0 && start >= net.keys[key].start &&
                start + length <= net.keys[key].start + net.keys[key].length;
    pthread_mutex_unlock(&net.lock);
    if (!fits) {
        return -EACCES;
    }
    memset(net.window + (start - net.memory), value, length);
    return 0;
}

static struct registrations *open_cache(void)
{
    struct registration_limits limits = {PAGE, LONGEST, MOST};
    struct registrations *r;
    memset(&net, 0, sizeof(net));
    pthread_mutex_init(&net.lock, NULL);
    net.file = memfd_create("registration", MFD_CLOEXEC);
    assert_int_equal(ftruncate(net.file, PAGES * PAGE), 0);
    net.memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, net.file, 0);
    net.window = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_SHARED, net.file, 0);
    assert_ptr_not_equal(net.memory, MAP_FAILED);
    assert_ptr_not_equal(net.window, MAP_FAILED);
    assert_int_equal(registrations_open(&limits, &provider, NULL, &r), 0);
    return r;
}

static void close_cache(struct registrations *r)
{
    registrations_close(r);
    assert_int_equal(net.now, 0);
    for (unsigned i = 0; i < PAGES; i++) {
        assert_int_equal(net.registered[i], 0);
    }
    assert_true(net.most <= MOST);
    munmap(net.memory, PAGES * PAGE);
    munmap(net.window, PAGES * PAGE);
    close(net.file);
}

/* KiB that the kernel has locked for this process. */
static unsigned long locked(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmLck:", 6) == 0) {
            kib = strtoul(line + 6, NULL, 10);
        }
    }
    fclose(f);
    return kib;
}

static void is_locked(void)
{
    unsigned pages = 0;
    for (unsigned i = 0; i < PAGES; i++) {
        pages += net.registered[i] > 0;
    }
    assert_int_equal(locked(), pages * PAGE / 1024);
}

/* Without the cache the network moves nothing; with it each transfer, and what it needs is locked.
 */
static void transfers(void **state)
{
    struct registrations *r = open_cache();
    uint64_t random = 1;
    assert_int_equal(transfer(0, net.memory, 1, 1), -EACCES);
    for (unsigned i = 0; i < 2000; i++) {
        struct registration_use use;
        size_t length = 1 + splitmix_below(&random, LONGEST - PAGE);
        char *start = net.memory + splitmix_below(&random, PAGES * PAGE - length);
        assert_int_equal(registration_take(r, start, length, &use), 0);
        assert_true(use.start <= start);
        assert_int_equal(transfer(use.key, start, length, (char)i), 0);
        assert_int_equal(start[0], (char)i);
        assert_int_equal(start[length - 1], (char)i);
        is_locked();
        registration_give(r, &use);
    }
    assert_true(net.next > MOST && net.next < 2000);
    close_cache(r);
    assert_int_equal(locked(), 0);
}

static void reuse(void **state)
{
    struct registrations *r = open_cache();
    struct registration_use use;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(registration_take(r, net.memory + 10 * i, 8, &use), 0);
        registration_give(r, &use);
    }
    assert_int_equal(net.next, 1);
    close_cache(r);
}

static void refusals(void **state)
{
    struct registrations *r = open_cache();
    struct registration_use use[MOST + 1];
    assert_int_equal(registration_take(r, net.memory, 0, use), -EINVAL);
    assert_int_equal(registration_take(r, (void *)(UINTPTR_MAX - 4), 64, use), -EINVAL);
    assert_int_equal(registration_take(r, net.memory, LONGEST + 1, use), -EMSGSIZE);
    net.fail = 1;
    assert_int_equal(registration_take(r, net.memory, 8, use), -ENOMEM);
    for (unsigned i = 0; i < MOST; i++) {
        assert_int_equal(registration_take(r, net.memory + i * 8 * PAGE, 8, &use[i]), 0);
    }
    /* all are in use: none of them is removed */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(registration_take(r, net.memory + 60 * PAGE, 8, &use[MOST]), -EAGAIN);
    }
    for (unsigned i = 0; i < MOST; i++) {
        assert_int_equal(transfer(use[i].key, net.memory + i * 8 * PAGE, 8, 1), 0);
    }
    registration_give(r, &use[2]);
    assert_int_equal(registration_take(r, net.memory + 60 * PAGE, 8, &use[2]), 0);
    assert_int_equal(transfer(use[2].key, net.memory + 60 * PAGE, 8, 1), 0);
    for (unsigned i = 0; i < MOST; i++) {
        registration_give(r, &use[i]);
    }
    close_cache(r);
}

/* Who uses memory after its registration was removed is refused, or faults. */
static void after_removal(void **state)
{
    struct registrations *r = open_cache();
    struct registration_use old, use;
    int status;
    assert_int_equal(registration_take(r, net.memory, 8, &old), 0);
    assert_int_equal(registration_forget(r, net.memory, PAGE), 0);
    assert_int_equal(transfer(old.key, net.memory, 8, 2), 0); /* it has not ended */
    assert_int_equal(registration_take(r, net.memory, 8, &use), -EAGAIN);
    registration_give(r, &old);
    assert_int_equal(net.now, 0);
    assert_int_equal(transfer(old.key, net.memory, 8, 3), -EACCES);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        memset(net.window, 3, 8); /* a network that does not ask */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    /* AddressSanitizer turns the fault into an exit */
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    assert_int_equal(registration_take(r, net.memory, 8, &use), 0);
    assert_int_not_equal(use.key, old.key);
    registration_give(r, &use);
    close_cache(r);
}

struct worker {
    pthread_t id;
    unsigned number;
    struct registrations *r;
    uint64_t random;
    unsigned refused, again;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < 1000; i++) {
        struct registration_use use[2];
        char *start[2];
        unsigned n = 0;
        while (n < 2) {
            /* pages are shared, bytes are not */
            start[n] = net.memory + splitmix_below(&w->random, PAGES) * PAGE + w->number * 64;
            int rc = registration_take(w->r, start[n], 64, &use[n]);
            if (rc == -EAGAIN) {
                w->again++;
                break;
            }
            w->refused += rc != 0;
            n++;
        }
        while (n-- > 0) {
            w->refused += transfer(use[n].key, start[n], 64, 1) != 0;
            registration_give(w->r, &use[n]);
        }
        if (i % 64 == 0) {
            registration_forget(w->r, net.memory + splitmix_below(&w->random, PAGES) * PAGE, PAGE);
        }
    }
    return NULL;
}

static void threads(void **state)
{
    struct worker w[THREADS];
    struct registrations *r = open_cache();
    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.r = r, .number = i, .random = i};
        assert_int_equal(pthread_create(&w[i].id, NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].id, NULL);
        assert_int_equal(w[i].refused, 0);
    }
    close_cache(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers),     cmocka_unit_test(reuse),   cmocka_unit_test(refusals),
        cmocka_unit_test(after_removal), cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
