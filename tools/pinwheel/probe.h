/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes of what this machine lets Pinwheel do. Each probe tries the thing itself rather
 * than deduce it from versions, and says why when it does not work.
 */
#ifndef PINWHEEL_PROBE_H
#define PINWHEEL_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe {
    bool works;
    char why_not[160]; /* "" if it works */
};

/* A folder for shared segments. */
struct probe_folder {
    struct probe usable;
    bool tmpfs, writable;
    uint64_t free_bytes;
};

struct probe_folder probe_folder(const char *path);

/* membarrier(2) between all processes that have registered, which lets idle
 * peers pay for the ordering of messages. */
struct probe probe_membarrier(void);

/* process_vm_readv(2) on a child, as on any process of the same user. */
struct probe probe_process_vm(void);

/* pidfd_open(2), by which the death of a peer is seen. */
struct probe probe_pidfd(void);

/* probe_cores() returns how many cores this process may run on and writes their
 * numbers, "0-1,4", to list; 0 if the system does not say. */
int probe_cores(char *list, int size);

#endif
