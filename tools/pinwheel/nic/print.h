/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of `pinwheel nic` for one look at the NICs: a table, one NIC in full, JSON. */
#ifndef PINWHEEL_NIC_PRINT_H
#define PINWHEEL_NIC_PRINT_H

#include "fabric/shm/inspect.h"
#include "nic/stats.h"

#include <stdbool.h>
#include <stddef.h>

struct nic_seen {
    struct segment_view view;
    struct nic_stats stats;
};

/* All NICs, as one look has found them. */
struct nic_look {
    struct nic_seen *of;
    size_t count, room;
    int64_t at;      /* clock_ns() */
    uint64_t cycles; /* time stamp counter at that moment */
    int32_t process; /* only NICs of this process; 0: of all */
    bool failed;     /* memory is short */
    bool quiet;      /* NICs that were left out are not reported again */
};

/* nic_sum() adds up numbers; nic_dropped() returns how many messages all interfaces of a NIC have
 * dropped. */
uint64_t nic_sum(const uint64_t *numbers, size_t count);
uint64_t nic_dropped(const struct nic_stats *b);

/* nic_address() writes the address of a NIC. */
const char *nic_address(const struct segment_view *v, char text[32]);

void nic_print_table(const struct nic_look *l);
void nic_print_full(const struct nic_seen *s);

/* nic_print_json() prints the look as JSON, with the processes that have frames (frames.h), and
 * returns the exit status. */
int nic_print_json(const struct nic_look *l, const char *folder);

#endif
