/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of the kill tests. */
#ifndef KILL_HANDLERS_H
#define KILL_HANDLERS_H

#include "spin.h"

extern const ptl_handlers_t kill_handlers;

#endif
