/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs about limits share: wishes with one small limit among roomy ones. */
#ifndef LIMITS_KIT_H
#define LIMITS_KIT_H

#include "suite.h"

#define LIMIT_OF(field_) offsetof(ptl_ni_limits_t, field_)

/* limits_room() is a little of everything; limits_with() the same with another value of the
 * int at this offset. */
ptl_ni_limits_t limits_room(void);
ptl_ni_limits_t limits_with(size_t offset, int value);

#endif
