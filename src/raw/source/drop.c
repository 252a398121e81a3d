/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving privileges up once an interface is set up; see drop.h. Sockets and maps that are open stay
 * usable; bpf(2) is not, so neither are the swap of rules and what is passed on to the kernel.
 */
#include "raw/source/drop.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int raw_drop(uint64_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, has) != 0) {
        return -errno;
    }
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        has[i].effective = has[i].permitted &= (uint32_t)(keep >> 32 * i);
        has[i].inheritable = 0;
    }
    /* a program of the super-user gets its capabilities back at execve(), unless the bounding set
     * is empty; an error ends the loop behind the last one there is */
    for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++) {
    }
    if (errno != EINVAL && errno != EPERM) {
        return -errno;
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_capset, &head, has) != 0) {
        return -errno;
    }
    return 0;
}
