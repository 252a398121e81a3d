/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers' packets of messages whose packets come in any order (pieces.c). */
#ifndef NIC_SPIN_PIECES_H
#define NIC_SPIN_PIECES_H

#include "nic/rx.h"

/* pieces_next() is handlers_next_packet() for a wire packet, or a part of it, at rx->f.at of such a
 * message: run->place is where the handlers' packet lies. With run->packet NULL memory was short.
 * pieces_drop() forgets packets of which only a part has come. */
bool pieces_next(struct rx *rx, uint8_t *data, size_t length);
void pieces_drop(struct handler_run *run);

#endif
