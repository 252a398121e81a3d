/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of cells: none beyond the first ones before many have been sent, then all of them;
 * and what is sent arrives where the kernel cannot map them at once, where the folder of segments
 * is full, and where signals interrupt the request for memory.
 */
#include "fabric_fixture.h"

#include "fabric/shm/shm.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CELLS = 16, FIRST = 4, FEW = 90, MANY = 400, PAGE_BLOCKS = 8 };

static bool full;
static unsigned interruptions, backed;

int __real_posix_fallocate(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate(int fd, off_t offset, off_t length);

int __wrap_posix_fallocate(int fd, off_t offset, off_t length)
{
    if (interruptions != 0) {
        interruptions--;
        return EINTR;
    }
    if (full) {
        return ENOSPC;
    }
    backed++;
    return __real_posix_fallocate(fd, offset, length);
}

static uint64_t blocks(void)
{
    struct stat status;
    assert_int_equal(fstat(shm_of(ends[IN].fabric)->segment->fd, &status), 0);
    return (uint64_t)status.st_blocks;
}

static void carry_cells(unsigned messages)
{
    for (unsigned i = 0; i < messages; i++) {
        carry_sound_one(PACKET);
    }
}

static void memory_comes_with_use(void **state)
{
    open_both("cells");
    uint64_t idle = blocks();
    for (unsigned i = 0; i < MANY; i++) {
        carry_sound_one(100);
    }
    assert_int_equal(blocks(), idle);
    carry_cells(FEW); /* of one cell */
    assert_int_equal(blocks(), idle);
    carry_cells(MANY);
    assert_in_range(blocks(), idle + (LARGE_CLASSES * (CELLS - FIRST) - 1) * PAGE_BLOCKS,
                    idle + LARGE_CLASSES * (CELLS - FIRST) * PAGE_BLOCKS);
    close_both();
}

static void a_full_folder_leaves_the_first_cells(void **state)
{
    open_both("cells");
    uint64_t idle = blocks();
    full = true;
    carry_cells(MANY);
    stream(MANY, 20000);
    full = false;
    assert_int_equal(blocks(), idle);
    assert_false(shm_peer_of(ends[OUT].peer)->dying || shm_peer_of(ends[IN].peer)->dying);
    close_both();
}

/* A claim, an acceptance, and growth at both ends: each is interrupted some times. */
static void signals_interrupt_nothing(void **state)
{
    open_ends("cells");
    backed = 0;
    interruptions = 3;
    connect_end(&ends[OUT]);
    carry_sound_one(0);
    assert_int_equal(interruptions, 0);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned before = backed;
        interruptions = 1;
        carry_sound_one(PACKET);
        assert_int_equal(interruptions, backed == before);
    }
    interruptions = 0;
    assert_true(backed >= 6);
    assert_int_equal(shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST].cells.mask + 1, CELLS);
    assert_false(shm_peer_of(ends[OUT].peer)->dying || shm_peer_of(ends[IN].peer)->dying);
    close_both();
}

/* As before Linux 5.14: madvise() knows no advice of these numbers. */
static bool forbid_populating(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void an_old_kernel_maps_one_by_one(void **state)
{
    int status;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: with ThreadSanitizer a forked child cannot recover from a fault\n");
    skip();
#endif
    pid_t child = fork();
    if (child == 0) {
        static char page[4096] __attribute__((aligned(4096)));
        if (!forbid_populating()) {
            _exit(77);
        }
        assert_true(madvise(page, sizeof(page), 23) == -1 && errno == EINVAL);
        open_both("cells");
        carry_cells(MANY);
        stream(MANY, 20000);
        assert_int_equal(shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST].cells.mask + 1, CELLS);
        close_both();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip(); /* no filters here */
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_with_use),
        cmocka_unit_test(a_full_folder_leaves_the_first_cells),
        cmocka_unit_test(signals_interrupt_nothing),
        cmocka_unit_test(an_old_kernel_maps_one_by_one),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
