/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests over UDP that send to processes that have ended: the system may give the port of one to
 * any other test that runs at that time, which then gets a message that was meant for nobody. So a
 * program of tests moves to a network of its own, which has a loopback and nothing else.
 */
#ifndef TESTS_OWN_NETWORK_H
#define TESTS_OWN_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Only with PINWHEEL_FABRIC=udp. False: its loopback cannot be used. Who may not have a network
 * of his own (it takes CAP_SYS_ADMIN) stays in the one that all share. */
static inline bool own_network(void)
{
    const char *fabric = getenv("PINWHEEL_FABRIC");
    if (fabric == NULL || strcmp(fabric, "udp") != 0 || unshare(CLONE_NEWNET) != 0) {
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

#endif
