/* SPDX-License-Identifier: BSD-3-Clause */
/* What rules may not take from the interface by which one is logged in. */
#ifndef RAW_GUARD_H
#define RAW_GUARD_H

#include "raw/rules/rules.h"

/* raw_guard() returns -1, with the error set, if the default route leaves by the interface and the
 * rules take ARP or ssh from it, unless the user has said yes. */
int raw_guard(const char *iface, const struct raw_rules *rules, bool yes, char error[RAW_ERROR]);

/* raw_guard_tags() returns true if rules ask for VLAN tags which the interface takes off its
 * frames, so that no program sees them. */
bool raw_guard_tags(const char *iface, const struct raw_rules *rules);

#endif
