/* SPDX-License-Identifier: BSD-3-Clause */
/* HPUs that fail at a time, as `pinwheel sim --fault` says. */
#include "fabric/sim/fail.h"

#include <stdlib.h>

/* An HPU of this NIC fails: `arg` is the fault. */
struct failing {
    struct sim_fabric *fabric;
    unsigned hpu;
};

static void hpu_fails(void *arg)
{
    const struct failing *w = arg;
    w->fabric->setup.up->hpu_fails(w->fabric->setup.nic, w->hpu);
    free(arg);
}

bool fail_plan(struct sim_fabric *f)
{
    const struct sim_segment *s = f->clock->segment;
    for (uint32_t i = 0; i < s->hpu_faults && i < SIM_HPU_FAULTS; i++) {
        if (sim_node(s, s->hpu_fault[i].rank) == sim_node(s, f->clock->rank)) {
            struct failing *w = malloc(sizeof(*w));
            if (w == NULL) {
                return false;
            }
            *w = (struct failing){f, s->hpu_fault[i].hpu};
            if (!sim_clock_at(f->clock, s->hpu_fault[i].time, hpu_fails, w, true)) {
                free(w);
                return false;
            }
        }
    }
    return true;
}
