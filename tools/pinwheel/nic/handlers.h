/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of `pinwheel nic` on a NIC's handlers: HPUs, execution contexts, text, HPU memory. */
#ifndef PINWHEEL_NIC_HANDLERS_H
#define PINWHEEL_NIC_HANDLERS_H

#include "nic/stats.h"
#include "pinwheel/util/json.h"

#include <stdint.h>

/* nic_handlers_print() prints HPUs and contexts that have done something, nothing if there is
 * none; nic_handlers_json() all of them. */
void nic_handlers_print(const struct nic_stats *b);
void nic_handlers_json(struct json *j, const struct nic_stats *b);

/* nic_handlers_rates() prints what they have done between two looks, `cycles` of the time stamp
 * counter apart; `before` zeroed: since the beginning. */
void nic_handlers_rates(const struct nic_stats *before, const struct nic_stats *now, double seconds,
                        uint64_t cycles);

/* nic_handlers_text() prints the newest of what handlers have printed, each line with its HPU. */
void nic_handlers_text(const struct nic_stats *b);

/* nic_handlers_memory() dumps the HPU memory of a context of a process. 0, or 1 after it has said
 * what went wrong. */
int nic_handlers_memory(int32_t process, const struct nic_stats *b, uint64_t context);

#endif
