/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes that find out what this machine lets Pinwheel do. Each probe tries the operation itself,
 * instead of deducing the result from versions, and tells why it does not work.
 */
#ifndef PINWHEEL_PROBE_H
#define PINWHEEL_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe {
    bool works;
    char why_not[160]; /* why it does not work; "": it works */
};

/* Whether a folder can hold shared segments. */
struct probe_folder {
    struct probe usable;
    bool tmpfs, writable;
    uint64_t free_bytes;
};

struct probe_folder probe_folder(const char *path);

/* Tries membarrier(2) between all processes that have registered for it. With it an idle peer pays
 * for the ordering of memory accesses, and not each message. */
struct probe probe_membarrier(void);

/* Tries process_vm_readv(2) on a child, as it would be used on any process of the same user. */
struct probe probe_process_vm(void);

/* Tries pidfd_open(2), by which a process notices the death of a peer. */
struct probe probe_pidfd(void);

/* probe_cores() returns how many cores this process may run on, and writes their list, such as
 * "0-1,4", to `list`; 0 if the system does not tell. */
int probe_cores(char *list, int size);

#endif
