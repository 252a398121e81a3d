/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether there is room for memory: what the library reads under /proc and /sys/fs/cgroup, here
 * written by the test; and processes in a cgroup of 64 MB that all take memory at once, of which
 * some are told that there is no more, and none is killed.
 */
#include "region.h"

#include "../../lib/rma/share.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, BOTH = PW_RMA_READ | PW_RMA_WRITE };

static char root[64];

/* Writes a file below the test's folder, and the folders over it. */
static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

static uint64_t room(void)
{
    char proc[80], cgroups[80];
    snprintf(proc, sizeof(proc), "%s/proc", root);
    snprintf(cgroups, sizeof(cgroups), "%s/cgroup", root);
    return room_in(proc, cgroups);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

PTEST(what_is_read, 1)
{
    snprintf(root, sizeof(root), "/tmp/pinwheel-room-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(room(), UINT64_MAX); /* nothing is known */
    write_file("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:      700 kB\n");
    CHECK_EQ(room(), 700 * 1024);
    write_file("proc/self/cgroup", "3:cpu,memoryless:/x\n0::/a/b\n");
    CHECK_EQ(room(), 700 * 1024);
    write_file("cgroup/a/b/memory.max", "max\n");
    write_file("cgroup/a/b/memory.current", "5000\n");
    CHECK_EQ(room(), 700 * 1024);
    write_file("cgroup/a/memory.max", "90000\n"); /* the one above */
    write_file("cgroup/a/memory.current", "50000\n");
    CHECK_EQ(room(), 40000);
    write_file("cgroup/a/memory.stat", "anon 1\nfile 30000\nkernel 7\nshmem 10000\n");
    CHECK_EQ(room(), 60000);
    write_file("cgroup/a/b/memory.max", "4000\n");
    CHECK_EQ(room(), 0);
    write_file("proc/self/cgroup", "4:memory:/m/n\n0::/\n"); /* the first kind */
    write_file("cgroup/memory/m/n/memory.limit_in_bytes", "80000\n");
    write_file("cgroup/memory/m/n/memory.usage_in_bytes", "70000\n");
    write_file("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("cgroup/memory/memory.usage_in_bytes", "1\n");
    CHECK_EQ(room(), 10000);
    write_file("cgroup/memory/m/n/memory.stat", "cache 9\ntotal_cache 3000\ntotal_shmem 1000\n");
    CHECK_EQ(room(), 12000);
    write_file("proc/self/cgroup", "4:memory\nnothing\n\n:::::\n");
    CHECK_EQ(room(), 700 * 1024);
    CHECK_EQ(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- A cgroup ---- */

static char group[256];

static bool tell(const char *file, const char *text)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/* A group of 64 MB of either kind, for rank 0 to make; false: it may not. */
static bool group_make(const char *parent, const char *limit)
{
    snprintf(group, sizeof(group), "%s/pinwheel-room-%d", parent, (int)ptest_look(0, 40));
    return mkdir(group, 0755) == 0 && tell(limit, "67108864");
}

static bool group_enter(void)
{
    char line[32];
    snprintf(line, sizeof(line), "%d", (int)getpid());
    return tell("cgroup.procs", line);
}

PTEST_LIMIT(all_at_once, 4, 60)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    void *start;
    if (rank == 0) {
        ptest_show(40, (uint64_t)getpid());
        bool made = group_make("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
        ptest_show(41, made ? 1 : group_make("/sys/fs/cgroup", "memory.max") ? 2 : 0);
    }
    BARRIER();
    if (ptest_look(0, 41) == 0) {
        ptest_skip("this user may make no cgroup");
    }
    snprintf(group, sizeof(group), "/sys/fs/cgroup%s/pinwheel-room-%d",
             ptest_look(0, 41) == 1 ? "/memory" : "", (int)ptest_look(0, 40));
    CHECK(group_enter());
    ends_open(&e, KIND_ML, rank, size);
    DONE(pw_rma_room(20 * MIB));
    REFUSED(pw_rma_room(80 * MIB), ENOMEM); /* all four together */
    REFUSED(pw_rma_allocate(e.rma, 80 * MIB, BOTH, &start, &region), ENOMEM);
    BARRIER();
    int rc = pw_rma_allocate(e.rma, 20 * MIB, BOTH, &start, &region);
    CHECK(rc == 0 || rc == -ENOMEM);
    ptest_show(42, rc == 0);
    if (rc == 0) {
        memset(start, 1, 20 * MIB);
    }
    BARRIER();
    uint64_t got = ptest_look(0, 42) + ptest_look(1, 42) + ptest_look(2, 42) + ptest_look(3, 42);
    CHECK(got == 1 || got == 2);
    BARRIER();
    if (rc == 0) {
        region_end(region);
    }
    ends_close(&e);
    if (ptest_look(0, 41) == 1) {
        snprintf(group, sizeof(group), "/sys/fs/cgroup/memory");
    } else {
        snprintf(group, sizeof(group), "/sys/fs/cgroup");
    }
    CHECK(group_enter());
    BARRIER();
    if (rank == 0) {
        snprintf(group, sizeof(group), "/sys/fs/cgroup%s/pinwheel-room-%d",
                 ptest_look(0, 41) == 1 ? "/memory" : "", (int)getpid());
        CHECK_EQ(rmdir(group), 0);
    }
}
