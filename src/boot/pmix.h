/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's side of PMIx: Open MPI's mpirun, PRRTE's prterun, Slurm's --mpi=pmix. */
#ifndef BOOT_PMIX_H
#define BOOT_PMIX_H

#include "boot/launcher.h"

/* pmix_join() joins the job of PMIX_NAMESPACE and PMIX_RANK.
 *   -EINVAL        one of the two is missing, or PMIX_RANK is no number
 *   -EOPNOTSUPP    libpmix.so.2 cannot be loaded, or this library was built
 *                  without PMIx's headers (pmix_absent.c)
 *   -ECONNREFUSED  no PMIx server answers
 *   -EPROTO        the server does not say how many ranks there are
 *   -ENOMEM, and those of launcher_claim() */
int pmix_join(struct launcher *l);

#endif
