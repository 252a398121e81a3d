/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading the handlers of an execution context (context.h). */
#ifndef RAW_LOAD_H
#define RAW_LOAD_H

#include "raw/context.h"

extern const struct hpu_ops raw_context_ops;

#endif
