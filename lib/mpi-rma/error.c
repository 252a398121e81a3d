/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors: classes of MPI, which go through the error handler of the window or communicator. Where
 * that handler would end the program a line on stderr names what was wrong before.
 */
#include "window.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int class_of(int code)
{
    switch (code) {
    case 0:
        return MPI_SUCCESS;
    case -ENOMEM:
        return MPI_ERR_NO_MEM;
    case -EINVAL:
    case -ERANGE:
        return MPI_ERR_RMA_RANGE;
    case -ESTALE:
        return MPI_ERR_RMA_RANGE;
    case -EACCES:
    case -EPERM:
        return MPI_ERR_RMA_CONFLICT;
    case -EFAULT:
        return MPI_ERR_BUFFER;
    case -EOPNOTSUPP:
        return MPI_ERR_OP;
#ifdef MPIX_ERR_PROC_FAILED
    case -EPIPE:
        return MPIX_ERR_PROC_FAILED;
#endif
    default:
        return MPI_ERR_OTHER;
    }
}

static void tell(MPI_Errhandler handler, const char *format, va_list arguments)
{
    if (handler == MPI_ERRORS_ARE_FATAL) {
        char text[256];
        vsnprintf(text, sizeof(text), format, arguments);
        fprintf(stderr, "pinwheel rma: %s\n", text);
    }
    if (handler != MPI_ERRHANDLER_NULL) {
        PMPI_Errhandler_free(&handler);
    }
}

int window_error(struct window *w, int class, const char *format, ...)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    va_list arguments;
    va_start(arguments, format);
    PMPI_Win_get_errhandler(w->handle, &handler);
    tell(handler, format, arguments);
    va_end(arguments);
    PMPI_Win_call_errhandler(w->handle, class);
    return class;
}

int comm_error(MPI_Comm comm, int class, const char *format, ...)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    va_list arguments;
    va_start(arguments, format);
    PMPI_Comm_get_errhandler(comm, &handler);
    tell(handler, format, arguments);
    va_end(arguments);
    PMPI_Comm_call_errhandler(comm, class);
    return class;
}
