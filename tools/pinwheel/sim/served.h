/* SPDX-License-Identifier: BSD-3-Clause */
/* What serves the ranks of a simulated job beside the launcher: the coordinator, and PMIx. */
#ifndef PINWHEEL_SIM_SERVED_H
#define PINWHEEL_SIM_SERVED_H

#include "coordinator.h"
#include "pinwheel/launch/launch.h"

struct served {
    struct coordinator *coordinator;
    struct sim_pmix *pmix; /* NULL: no rank needs it */
};

/* served_begin() has the launcher tell the coordinator of ranks that end, and starts a PMIx server
 * if the program is linked with an MPI that needs one, or if it is `wanted`; false after a line on
 * stderr. served_end() ends the server; `nics`: a rank has opened a NIC. */
bool served_begin(struct served *s, struct launch *launch, struct coordinator *c, bool direct,
                  bool wanted);
void served_end(struct served *s, bool nics);

#endif
