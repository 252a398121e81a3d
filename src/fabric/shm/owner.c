/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether the owner of a segment still exists; see owner.h. */
#include "fabric/shm/owner.h"

#include <sys/stat.h>

static uint64_t pid_namespace(void)
{
    struct stat ns;
    return stat("/proc/self/ns/pid", &ns) == 0 ? (uint64_t)ns.st_ino : 0;
}

void owner_describe(struct segment_info *info)
{
    info->process = getpid();
    info->pid_namespace = pid_namespace();
}

bool owner_is_self(const struct segment_info *info)
{
    return info->process == (int32_t)SYS_CALL(SYS_getpid) && info->pid_namespace == pid_namespace();
}

static ssize_t read_cookie(const struct segment_info *info, uint64_t *cookie)
{
    struct iovec local = {cookie, sizeof(*cookie)};
    struct iovec remote = {(void *)(uintptr_t)info->cookie_at, sizeof(*cookie)};
    return sys_process_vm_readv(info->process, &local, 1, &remote, 1);
}

bool proves_itself(const struct segment_info *info)
{
    uint64_t cookie = 0;
    return read_cookie(info, &cookie) == sizeof(cookie) && cookie == info->cookie;
}

/* Whether a process does not exist, or has ended: all its threads have, and only its parent has not
 * waited for it yet. */
static bool has_ended(int32_t process)
{
    int fd = forks_open((int)SYS_CALL(SYS_pidfd_open, process, 0));
    if (fd < 0) {
        return fd == -ESRCH;
    }
    struct pollfd end = {.fd = fd, .events = POLLIN};
    bool ended = sys_poll(&end, 1, 0) > 0;
    forks_close(fd);
    return ended;
}

bool owner_gone(const struct segment_info *info)
{
    uint64_t cookie = 0;
    if (info->process <= 0 || info->pid_namespace == 0 || info->pid_namespace != pid_namespace()) {
        return false;
    }
    ssize_t got = read_cookie(info, &cookie);
    if (got == sizeof(cookie)) {
        return cookie != info->cookie;
    }
    return got == -EFAULT || has_ended(info->process);
}
