/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of wrapped functions: each wrap_*.c is rows of WRAP(), one for each function of MPI:
 *
 *     WRAP(function, (parameters), (arguments), what is written when the call succeeded)
 *
 * The row's function is called MPI_function, or has the name that large.h gives it, calls its like
 * of PMPI_ and returns what that has returned; `c` is the call. Macros, because each function needs
 * a name and parameters of its own, and they differ in nothing else.
 */
#ifndef TRACE_WRAP_H
#define TRACE_WRAP_H

#include "large.h"

#define WRAP_WITH(declarations, function, parameters, arguments, ...)                              \
    int MPI_(function) parameters                                                                  \
    {                                                                                              \
        declarations;                                                                              \
        trace_enter(&c);                                                                           \
        int rc = PMPI_(function) arguments;                                                        \
        if (trace_leave(&c, rc)) {                                                                 \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return rc;                                                                                 \
    }

#define WRAP(function, parameters, arguments, ...)                                                 \
    WRAP_WITH(struct trace_call c = {.name = NAME_OF(function)}, function, parameters, arguments,  \
              __VA_ARGS__)

/* WRAP_STATUS() is WRAP() for a function with the parameter `status`, which the program may leave
 * out: the row passes `s`, and reads it afterwards. */
#define WRAP_STATUS(function, parameters, arguments, ...)                                          \
    WRAP_WITH(struct trace_call c = {.name = NAME_OF(function)}; MPI_Status own = {0};             \
              MPI_Status *s = status != MPI_STATUS_IGNORE ? status : &own, function, parameters,   \
              arguments, __VA_ARGS__)

/* NAMED() is WRAP() for calls that communicate and are not understood: one-sided ones, collectives
 * of neighbours, processes that join. Each leaves a line with its name, so that who uses the
 * recording learns what it lacks. */
#define NAMED(function, parameters, arguments)                                                     \
    WRAP(function, parameters, arguments, trace_other(&c))

#endif
