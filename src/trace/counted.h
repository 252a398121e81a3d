/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that communicate and are not understood: one-sided ones, collectives of
 * neighbours, processes that join. Each leaves a line with
 * its name, so that who uses the recording learns what it lacks. A macro, because
 * each needs a function of its own name and parameters, and they differ in nothing else.
 */
#ifndef TRACE_COUNTED_H
#define TRACE_COUNTED_H

#include "large.h"

#define COUNTED(name, parameters, arguments)                                                       \
    int MPI_(name) parameters                                                                      \
    {                                                                                              \
        struct trace_call c;                                                                       \
        trace_enter(&c);                                                                           \
        return trace_other(&c, NAME_OF(name), PMPI_(name) arguments);                              \
    }

#endif
