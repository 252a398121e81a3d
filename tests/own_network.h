/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that send to processes that have ended, or to addresses at which nobody is: the system may
 * give the port, or the PID, to any other test that runs at that time, which then gets a message
 * that was meant for nobody. So a program of tests over UDP moves to a network of its own, which
 * has a loopback and nothing else; over shared memory a case that sends to nobody does.
 */
#ifndef TESTS_OWN_NETWORK_H
#define TESTS_OWN_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* move_to_own_network() moves there; false: its loopback cannot be used. A process that may not
 * have a network of its own (it takes CAP_SYS_ADMIN) stays in the one that all share. */
static inline bool move_to_own_network(void)
{
    if (unshare(CLONE_NEWNET) != 0) {
        return true;
    }
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (!up) {
        perror("the loopback of a new network");
    }
    if (fd >= 0) {
        close(fd);
    }
    return up;
}

/* own_network() does so with PINWHEEL_FABRIC=udp. */
static inline bool own_network(void)
{
    const char *fabric = getenv("PINWHEEL_FABRIC");
    return fabric == NULL || strcmp(fabric, "udp") != 0 || move_to_own_network();
}

#endif
