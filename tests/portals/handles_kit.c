/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects in the places of freed ones; see handles_kit.h. */
#include "handles_kit.h"

const ptl_ni_limits_t handles_few = {.max_entries = HANDLES_FEW,
                                     .max_unexpected_headers = 100,
                                     .max_mds = 200,
                                     .max_cts = HANDLES_FEW,
                                     .max_eqs = HANDLES_FEW,
                                     .max_pt_index = 63,
                                     .max_iovecs = 10,
                                     .max_list_size = HANDLES_FEW,
                                     .max_triggered_ops = 100,
                                     .max_msg_size = 1 << 22,
                                     .max_atomic_size = 512,
                                     .max_fetch_atomic_size = 512,
                                     .max_waw_ordered_size = 64,
                                     .max_war_ordered_size = 8,
                                     .max_volatile_size = 64};

struct handles_taken handles_take_all(struct scene *s)
{
    struct handles_taken t = {0};
    int code;
    while (t.eqs < HANDLES_FEW && (code = PtlEQAlloc(s->ni, 16, &t.eq[t.eqs])) == PTL_OK) {
        suite_own(s, MADE_EQ, t.eq[t.eqs++]);
    }
    CODE(code, PTL_NO_SPACE);
    while (t.cts < HANDLES_FEW && (code = PtlCTAlloc(s->ni, &t.ct[t.cts])) == PTL_OK) {
        suite_own(s, MADE_CT, t.ct[t.cts++]);
    }
    CODE(code, PTL_NO_SPACE);
    return t;
}

void handles_untouched(const struct handles_taken *taken)
{
    for (int i = 0; i < taken->eqs; i++) {
        NO_EVENT(taken->eq[i]);
    }
    for (int i = 0; i < taken->cts; i++) {
        EXPECT_CT(taken->ct[i], 0, 0);
    }
}
