/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of `pinwheel nic` that shows the handlers of a NIC: HPUs, execution contexts, printed
 * text, HPU memory. */
#ifndef PINWHEEL_NIC_HANDLERS_H
#define PINWHEEL_NIC_HANDLERS_H

#include "nic/stats.h"
#include "pinwheel/util/json.h"

#include <stdint.h>

/* nic_handlers_print() prints the HPUs and contexts that have run handlers, or nothing if there are
 * none; nic_handlers_json() prints all of them. */
void nic_handlers_print(const struct nic_stats *b);
void nic_handlers_json(struct json *j, const struct nic_stats *b);

/* nic_handlers_rates() prints what HPUs and contexts have done between two looks, which are
 * `cycles` of the time stamp counter apart. A zeroed `before` stands for the beginning. */
void nic_handlers_rates(const struct nic_stats *before, const struct nic_stats *now, double seconds,
                        uint64_t cycles);

/* nic_handlers_text() prints the newest text that handlers have printed, each line with its HPU. */
void nic_handlers_text(const struct nic_stats *b);

/* nic_handlers_memory() dumps the HPU memory of a context of a process. Returns 0, or 1 after it
 * has printed what went wrong. */
int nic_handlers_memory(int32_t process, const struct nic_stats *b, uint64_t context);

#endif
