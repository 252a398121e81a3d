/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `pinwheel rma` share: the libraries with our windows, one for each MPI. */
#ifndef PINWHEEL_COMMAND_RMA_H
#define PINWHEEL_COMMAND_RMA_H

#include "pinwheel/util/preload.h"

#define RMA_FOLDER "lib/mpi-rma" /* of the build tree */
enum { RMA_MPIS = 2 };
extern const struct preload_mpi rma_mpis[RMA_MPIS];

int rma_command_info(int argc, char **argv);

#endif
