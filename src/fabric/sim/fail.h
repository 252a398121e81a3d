/* SPDX-License-Identifier: BSD-3-Clause */
/* HPUs that fail (fail.c). */
#ifndef FABRIC_SIM_FAIL_H
#define FABRIC_SIM_FAIL_H

#include "fabric/sim/sim.h"

/* fail_plan() has the HPUs of a rank's own NIC fail when their times come; in a NIC that is opened
 * later an HPU that has failed before fails at once. False: no memory. */
bool fail_plan(struct sim_fabric *f);

#endif
