/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of interfaces; see ni_limits.h. */
#include "ni_limits.h"

#include "portals4.h"

#include <stdio.h>

static const struct kind {
    const char *name;
    unsigned options;
} kinds[LIMITS_KINDS] = {
    {"matching,physical", PTL_NI_MATCHING | PTL_NI_PHYSICAL},
    {"matching,logical", PTL_NI_MATCHING | PTL_NI_LOGICAL},
    {"no-match,physical", PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL},
    {"no-match,logical", PTL_NI_NO_MATCHING | PTL_NI_LOGICAL},
};

static void add(struct ni_limits *limits, int kind, int *at, const char *name, uint64_t value)
{
    limits->names[*at] = name;
    limits->values[kind][*at] = value;
    limits->count = ++*at;
}

static void store(struct ni_limits *limits, int k, const ptl_ni_limits_t *l)
{
    int at = 0;
    add(limits, k, &at, "max_entries", (uint64_t)l->max_entries);
    add(limits, k, &at, "max_unexpected_headers", (uint64_t)l->max_unexpected_headers);
    add(limits, k, &at, "max_mds", (uint64_t)l->max_mds);
    add(limits, k, &at, "max_cts", (uint64_t)l->max_cts);
    add(limits, k, &at, "max_eqs", (uint64_t)l->max_eqs);
    add(limits, k, &at, "max_pt_index", (uint64_t)l->max_pt_index);
    add(limits, k, &at, "max_iovecs", (uint64_t)l->max_iovecs);
    add(limits, k, &at, "max_list_size", (uint64_t)l->max_list_size);
    add(limits, k, &at, "max_triggered_ops", (uint64_t)l->max_triggered_ops);
    add(limits, k, &at, "max_msg_size", l->max_msg_size);
    add(limits, k, &at, "max_atomic_size", l->max_atomic_size);
    add(limits, k, &at, "max_fetch_atomic_size", l->max_fetch_atomic_size);
    add(limits, k, &at, "max_waw_ordered_size", l->max_waw_ordered_size);
    add(limits, k, &at, "max_war_ordered_size", l->max_war_ordered_size);
    add(limits, k, &at, "max_volatile_size", l->max_volatile_size);
    add(limits, k, &at, "features", l->features);
}

void ni_limits_read(struct ni_limits *limits)
{
    int code = PtlInit();
    if (code != PTL_OK) {
        snprintf(limits->error, sizeof(limits->error), "PtlInit gave %d", code);
        return;
    }
    for (int k = 0; k < LIMITS_KINDS; k++) {
        ptl_ni_limits_t l;
        ptl_handle_ni_t ni;
        code = PtlNIInit(PTL_IFACE_DEFAULT, kinds[k].options, PTL_PID_ANY, NULL, &l, &ni);
        if (code != PTL_OK) {
            snprintf(limits->error, sizeof(limits->error), "PtlNIInit gave %d for a %s interface",
                     code, kinds[k].name);
            limits->count = 0;
            break;
        }
        limits->kind_names[k] = kinds[k].name;
        limits->kinds = k + 1;
        store(limits, k, &l);
        PtlNIFini(ni);
    }
    PtlFini();
}
