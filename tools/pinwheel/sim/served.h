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

/* served_begin() starts a PMIx server if the program is linked with an MPI that needs one, or if it
 * is `wanted`, while the caller has no other threads; false after a line on stderr. served_tell()
 * has the launcher tell the coordinator, and the server, of ranks that end. served_end() ends the
 * server; `nics`: a rank has opened a NIC. */
bool served_begin(struct served *s, struct launch *launch, bool wanted);
void served_tell(struct served *s, struct launch *launch, struct coordinator *c, bool direct);
void served_end(struct served *s, bool nics);

#endif
