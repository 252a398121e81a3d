/* SPDX-License-Identifier: BSD-3-Clause */
/* The watcher: memory that changes under a pin is no hit when the call that has changed it returns,
 * though nobody told the library; without the watcher it is one. Exit status 77: the kernel has
 * no userfaultfd, or this user may not have one. */
#include "pinwheel_firehose.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, PAGES = 1, ROUNDS = 50 };

static int pinned;

static int move(void *client, const struct pw_firehose_region *unpins, size_t u,
                struct pw_firehose_region *pins, size_t n)
{
    pinned += (int)n - (int)u;
    return 0;
}

static struct pw_firehose_info info;

static struct pw_firehose *open_table(unsigned flags)
{
    static const struct pw_firehose_ops ops = {.move = move};
    struct pw_firehose_config c = {.nodes = 1,
                                   .page = PAGE,
                                   .flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV | flags,
                                   .max_pinnable = 64 * PAGE,
                                   .ops = &ops};
    struct pw_firehose *table;
    assert_int_equal(pw_firehose_init(&c, &table, &info), 0);
    return table;
}

static char *map(void *at, bool shared)
{
    int how = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0);
    char *memory = mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, how, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 1, PAGES * PAGE);
    return memory;
}

static bool hit(struct pw_firehose *table, const char *at)
{
    struct pw_firehose_request r = {0}, *one = &r;
    struct pw_firehose_stats before, after;
    pw_firehose_stats(table, &before);
    assert_int_equal(pw_firehose_local_pin(table, (uintptr_t)at, 8, one), 0);
    assert_int_equal(pw_firehose_release(table, &one, 1), 0);
    pw_firehose_stats(table, &after);
    return after.local.miss == before.local.miss;
}

/* Changes the page at `memory` in one of the ways, and returns where the memory is then. */
enum way { REMAPPED, MOVED, ADVISED, ADVISED_SHARED, FORKED, WAYS };

static char *change(enum way way, char *memory)
{
    pid_t child;
    int status;
    char *moved;
    switch (way) {
    case REMAPPED:
        return map(memory, false);
    case MOVED:
        moved = map(NULL, false);
        assert_ptr_equal(
            mremap(memory, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, moved),
            moved);
        assert_ptr_equal(map(memory, false), memory);
        munmap(moved, PAGES * PAGE);
        return memory;
    case ADVISED:
        assert_int_equal(madvise(memory, PAGE, MADV_DONTNEED), 0);
        return memory;
    case ADVISED_SHARED:
        assert_int_equal(madvise(memory, PAGE, MADV_REMOVE), 0);
        return memory;
    default:
        child = fork();
        if (child == 0) {
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        return memory;
    }
}

static void each_way(bool watched, enum way way)
{
    struct pw_firehose *table = open_table(watched ? PW_FIREHOSE_WATCH : 0);
    char *memory = map(NULL, way == ADVISED_SHARED), *other = map(NULL, false);
    assert_false(hit(table, other));
    for (unsigned i = 0; i < ROUNDS; i++) {
        hit(table, memory);
        assert_true(hit(table, memory));
        memory = change(way, memory);
        assert_int_equal(hit(table, memory), !watched);
    }
    assert_int_equal(hit(table, other), way != FORKED || !watched);
    assert_int_equal(pw_firehose_fini(table), 0);
    assert_int_equal(pinned, 0);
    munmap(memory, PAGES * PAGE);
    munmap(other, PAGES * PAGE);
}

static bool forks;

static void watched(void **state)
{
    for (enum way way = 0; way < WAYS; way++) {
        if (way != FORKED || forks) {
            each_way(true, way);
        }
    }
}

static void not_watched(void **state)
{
    for (enum way way = 0; way < WAYS; way++) {
        each_way(false, way);
    }
}

struct hitter {
    struct pw_firehose *table;
    char *memory;
    _Atomic bool stop;
};

static void *hit_other(void *argument)
{
    struct hitter *h = argument;
    struct pw_firehose_request r = {0}, *one = &r;
    while (!h->stop) {
        assert_int_equal(pw_firehose_local_pin(h->table, (uintptr_t)h->memory, 8, one), 0);
        assert_int_equal(pw_firehose_release(h->table, &one, 1), 0);
    }
    return NULL;
}

/* Another thread hits other memory meanwhile, and its hits go on. */
static void beside_hits(void **state)
{
    struct hitter h = {.table = open_table(PW_FIREHOSE_WATCH), .memory = map(NULL, false)};
    char *memory = map(NULL, false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hit_other, &h), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct pw_firehose_request r = {0}, *one = &r;
        assert_int_equal(pw_firehose_local_pin(h.table, (uintptr_t)memory, 8, one), 0);
        assert_int_equal(pw_firehose_release(h.table, &one, 1), 0);
        memory = map(memory, false);
        assert_int_equal(pw_firehose_try_local_pin(h.table, (uintptr_t)memory, 8, one), -EAGAIN);
    }
    h.stop = true;
    pthread_join(thread, NULL);
    assert_int_equal(pw_firehose_fini(h.table), 0);
    munmap(memory, PAGES * PAGE);
    munmap(h.memory, PAGES * PAGE);
}

/* What the library says that it notices, with the right that fork() needs and without. */
static void said(void **state)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    int status;
    assert_int_equal(pw_firehose_fini(open_table(0)), 0);
    assert_int_equal(info.watched, 0);
    assert_int_equal(pw_firehose_fini(open_table(PW_FIREHOSE_WATCH)), 0);
    assert_int_equal(info.watched,
                     PW_FIREHOSE_WATCHED_MEMORY | (forks ? PW_FIREHOSE_WATCHED_FORK : 0));
    pid_t child = fork();
    if (child == 0) {
        if (syscall(SYS_capget, &head, data) == 0) {
            data[0].effective &= ~(1u << CAP_SYS_PTRACE);
            syscall(SYS_capset, &head, data);
        }
        pw_firehose_fini(open_table(PW_FIREHOSE_WATCH));
        _exit((int)info.watched);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PW_FIREHOSE_WATCHED_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(said),
        cmocka_unit_test(watched),
        cmocka_unit_test(not_watched),
        cmocka_unit_test(beside_hits),
    };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
    if (fd < 0) {
        fprintf(stderr, "no userfaultfd: %s\n", strerror(errno));
        return errno == ENOSYS || errno == EPERM ? 77 : 1;
    }
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK};
    forks = ioctl(fd, UFFDIO_API, &api) == 0;
    if (!forks && errno != EPERM) {
        fprintf(stderr, "no events of userfaultfd: %s\n", strerror(errno));
        return 1;
    }
    close(fd);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
