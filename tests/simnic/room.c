/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks before the first rank starts, on machines that are folders of files. */
#include "pinwheel/sim/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

/* Writes a file of the machine, and makes the folders that lead to it. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = strchr(whole + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A machine with room for some 1,000 ranks of each kind of limit. */
static int make(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/pinwheel-room-XXXXXX");
    assert_non_null(mkdtemp(root));
    put("/proc/loadavg", "1.00 1.00 1.00 3/200 4711\n");
    put("/proc/sys/kernel/pid_max", "32768\n");
    put("/proc/sys/kernel/threads-max", "32768\n");
    put("/proc/meminfo", "MemTotal:       4000000 kB\nMemAvailable:   2000000 kB\n");
    put("/proc/self/cgroup", "4:cpu,memory:/a/b\n8:pids:/p\n0::/u/v\n");
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static void refuses(const char *limit, const char *value, const char *need)
{
    char error[ROOM_ERROR] = "";
    assert_false(room_check(root, 1000, error));
    if (strstr(error, limit) == NULL || strstr(error, value) == NULL ||
        strstr(error, need) == NULL) {
        fail_msg("wanted %s, %s, %s; found \"%s\"", limit, value, need, error);
    }
}

static void room_for_all(void **state)
{
    (void)state;
    char error[ROOM_ERROR] = "";
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/u/v/memory.max", "max\n");
    if (!room_check(root, 1000, error)) {
        fail_msg("%s", error);
    }
}

static void too_many_processes(void **state)
{
    (void)state;
    put("/proc/sys/kernel/pid_max", "1200\n");
    refuses("kernel/pid_max is 1200 processes", "200 are taken", "needs 1008 more");
}

static void a_group_of_processes(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/pids/pids.max", "1010\n"); /* of the group above */
    put("/sys/fs/cgroup/pids/pids.current", "3\n");
    put("/sys/fs/cgroup/pids/p/pids.max", "max\n");
    refuses("pids.max is 1010", "3 are taken", "needs 1008 more");
}

static void too_little_memory(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemAvailable:    900000 kB\n");
    refuses("MemAvailable", "900000 KiB", "needs 1024000 more");
}

/* Pages of files can be dropped: they are not taken. */
static void a_group_of_memory(void **state)
{
    (void)state;
    char error[ROOM_ERROR] = "";
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000000000\n");
    put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1500000000\n");
    put("/sys/fs/cgroup/memory/a/memory.stat", "cache 1\ninactive_file 1000000000\n");
    assert_true(room_check(root, 1000, error));
    put("/sys/fs/cgroup/memory/a/memory.stat", "cache 1\ninactive_file 400000000\n");
    refuses("memory.limit_in_bytes is 2000000000", "1100000000 are taken", "needs 1048576000 more");
}

static void a_group_of_version_2(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/u/memory.max", "1000000000\n");
    refuses("u/memory.max is 1000000000", "0 are taken", "needs 1048576000 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(room_for_all, make, unmake),
        cmocka_unit_test_setup_teardown(too_many_processes, make, unmake),
        cmocka_unit_test_setup_teardown(a_group_of_processes, make, unmake),
        cmocka_unit_test_setup_teardown(too_little_memory, make, unmake),
        cmocka_unit_test_setup_teardown(a_group_of_memory, make, unmake),
        cmocka_unit_test_setup_teardown(a_group_of_version_2, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
