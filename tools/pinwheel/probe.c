/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out what this machine lets Pinwheel do; see probe.h. */
#include "probe.h"

#include <errno.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct probe __attribute__((format(printf, 1, 2))) because(const char *format, ...)
{
    struct probe p = {false, ""};
    va_list args;
    va_start(args, format);
    vsnprintf(p.why_not, sizeof(p.why_not), format, args);
    va_end(args);
    return p;
}

static const struct probe works = {true, ""};

struct probe_folder probe_folder(const char *path)
{
    struct probe_folder f = {.usable = works};
    struct statfs fs;
    if (statfs(path, &fs) != 0) {
        f.usable = because("%.80s: %s", path, strerror(errno));
        return f;
    }
    f.tmpfs = fs.f_type == TMPFS_MAGIC;
    f.writable = access(path, W_OK | X_OK) == 0;
    f.free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (!f.tmpfs) {
        f.usable = because("%.80s: not a tmpfs; set PINWHEEL_SHM_DIR to one", path);
    } else if (!f.writable) {
        f.usable = because("%.80s: not writable for this user", path);
    } else if (f.free_bytes == 0) {
        f.usable = because("%.80s: full", path);
    }
    return f;
}

struct probe probe_membarrier(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (commands < 0) {
        return because("membarrier: %s", strerror(errno));
    }
    long needed = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    if ((commands & needed) != needed) {
        return because("membarrier has no GLOBAL_EXPEDITED here (commands 0x%lx)", commands);
    }
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0 ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) {
        return because("membarrier GLOBAL_EXPEDITED: %s", strerror(errno));
    }
    return works;
}

struct probe probe_process_vm(void)
{
    int hold[2];
    volatile uint64_t word = 0; /* the child writes to its own copy */
    if (pipe(hold) != 0) {
        return because("pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        char byte;
        word = 0x70696e776865656cu;
        close(hold[1]);
        while (read(hold[0], &byte, 1) > 0) {
        }
        _exit(0);
    }
    int error = errno;
    close(hold[0]);
    struct probe p = works;
    if (child < 0) {
        p = because("fork: %s", strerror(error));
    } else {
        uint64_t copy = 0;
        struct iovec to = {&copy, sizeof(copy)}, from = {(void *)(uintptr_t)&word, sizeof(word)};
        if (process_vm_readv(child, &to, 1, &from, 1, 0) != (ssize_t)sizeof(copy)) {
            p = because("process_vm_readv on a child: %s (a seccomp filter, or ptrace_scope)",
                        strerror(errno));
        }
    }
    close(hold[1]);
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    return p;
}

struct probe probe_pidfd(void)
{
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0) {
        return because("pidfd_open: %s", strerror(errno));
    }
    close((int)fd);
    return works;
}

int probe_cores(char *list, int size)
{
    cpu_set_t set;
    int length = 0;
    list[0] = '\0';
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 0;
    }
    for (int first = 0; first < CPU_SETSIZE; first++) {
        if (!CPU_ISSET(first, &set)) {
            continue;
        }
        int last = first;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) {
            last++;
        }
        char range[32];
        int n = snprintf(range, sizeof(range), last > first ? "%s%d-%d" : "%s%d",
                         length > 0 ? "," : "", first, last);
        if (length + n >= size) {
            break; /* the rest does not fit */
        }
        memcpy(list + length, range, (size_t)n + 1);
        length += n;
        first = last;
    }
    return CPU_COUNT(&set);
}
