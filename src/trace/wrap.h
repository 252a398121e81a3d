/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of wrapped functions: each wrap_*.c is rows of WRAP(), one for each function of MPI:
 *
 *     WRAP(function, (parameters), (arguments), what is written when the call succeeded)
 *
 * A row defines MPI_function, or the name that large.h gives it. The function calls PMPI_function
 * and returns its result; in the row's last part `c` is the call. Rows are macros because the
 * functions differ in their names and parameters only.
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

/* WRAP_STATUS() is WRAP() for a function with the parameter `status`, which may be
 * MPI_STATUS_IGNORE: the row passes `s` to PMPI_, which is never that, and reads it afterwards. */
#define WRAP_STATUS(function, parameters, arguments, ...)                                          \
    WRAP_WITH(struct trace_call c = {.name = NAME_OF(function)}; MPI_Status own = {0};             \
              MPI_Status *s = status != MPI_STATUS_IGNORE ? status : &own, function, parameters,   \
              arguments, __VA_ARGS__)

/* NAMED() is WRAP() for calls that communicate but are not understood: one-sided ones,
 * neighbourhood collectives, dynamic processes. The recorder writes a line with the call's name, so
 * that the converter can tell the user what the recording lacks. */
#define NAMED(function, parameters, arguments)                                                     \
    WRAP(function, parameters, arguments, trace_other(&c))

#endif
