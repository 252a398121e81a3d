/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's side of PMI-1; the protocol is in pmi_server.h. */
#ifndef BOOT_PMI_CLIENT_H
#define BOOT_PMI_CLIENT_H

#include "boot/launcher.h"

/* pmi_client_join() joins the job of PMI_FD, PMI_RANK and PMI_SIZE.
 *   -EINVAL a variable is missing or no valid number -EBADF   PMI_FD names no open connection
 *   -EPROTO  the launcher does not speak PMI-1 -EPIPE   it went away -ENOMEM, and those of
 *   launcher_claim() */
int pmi_client_join(struct launcher *l);

/* pmi_client_alone() makes a job of one rank, with a PMI-1 server inside the process, so that all
 * calls run the same code as with a launcher. -ENOMEM. */
int pmi_client_alone(struct launcher *l);

#endif
