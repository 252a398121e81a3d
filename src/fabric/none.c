/* SPDX-License-Identifier: BSD-3-Clause */
/* The home fabric of a closed NIC: no message comes. A thread that found the NIC earlier may still
 * call it, with and without the lock (invariant set 7). */
#include "fabric/fabric.h"

static bool nothing(struct fabric *f)
{
    return false;
}

static void leave_it(struct fabric *f)
{
}

static bool never_sleep(struct fabric *f, enum doorbell_kind kind, uint32_t *word)
{
    return false;
}

static void disarm(struct fabric *f, bool polled)
{
}

static void waits_on(struct fabric *f, int core, int64_t now, cpu_set_t *others)
{
}

static int64_t no_deadline(struct fabric *f)
{
    return -1;
}

static const struct fabric_home home = {.flows = nothing, .waits_on = waits_on};

const struct fabric_ops fabric_none = {
    .name = "none",
    .poll = nothing,
    .peek = nothing,
    .foresee = leave_it,
    .arm = never_sleep,
    .disarm = disarm,
    .next_deadline = no_deadline,
    .home = &home,
};
