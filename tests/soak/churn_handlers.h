/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of the soak of births and deaths, and what they count in HPU memory. */
#ifndef SOAK_CHURN_HANDLERS_H
#define SOAK_CHURN_HANDLERS_H

#include "spin.h"
#include "spin_handler.h"

struct churn_state {
    uint64_t headers, completions;
};

extern const ptl_handlers_t churn_by_packet, churn_deposited;

#endif
