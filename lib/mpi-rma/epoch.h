/* SPDX-License-Identifier: BSD-3-Clause */
/* What epochs of all kinds have in common. */
#ifndef MPI_RMA_EPOCH_H
#define MPI_RMA_EPOCH_H

#include "window.h"

/* epoch_begin(): an access epoch may begin here. epoch_ended() tells the error, if there is one, of
 * a call that has synchronised memory. Both return a class of errors, or MPI_SUCCESS. */
int epoch_begin(struct window *w, const char *call);
int epoch_ended(struct window *w, const char *call, int code);

#endif
