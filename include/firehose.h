/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firehose.h: GASNet's names for the functions of pinwheel_firehose.h. A client that wants them
 * defines PW_FIREHOSE_GASNET_NAMES before it includes this header, and `firehose_table`, a variable
 * or expression of type struct pw_firehose *: the table on which these calls work.
 *
 * The names are macros and inline functions: the library defines none of them, so a program may be
 * linked with another library that does. Differences to GASNet: there is no firehose_init, since
 * pw_firehose_init() takes the callbacks in a struct; requests belong to the caller and are never
 * NULL; where GASNet would end the process a call returns NULL. Remote callbacks write their
 * arguments as in GASNet. This is section 3 of the paper that pinwheel_firehose.h names.
 */
#ifndef FIREHOSE_H
#define FIREHOSE_H

#include "pinwheel_firehose.h"

#ifdef PW_FIREHOSE_GASNET_NAMES

typedef struct pw_firehose_request firehose_request_t;
typedef struct pw_firehose_region firehose_region_t;
typedef struct pw_firehose_info firehose_info_t;

#define FIREHOSE_INIT_FLAG_LOCAL_ONLY PW_FIREHOSE_LOCAL_ONLY
#define FIREHOSE_FLAG_RETURN_IF_PINNED PW_FIREHOSE_RETURN_IF_PINNED
#define FIREHOSE_FLAG_ENABLE_REMOTE_CALLBACK PW_FIREHOSE_REMOTE_CALLBACK

static inline const struct pw_firehose_request *
pw_firehose_if_held(int result, const struct pw_firehose_request *request)
{
    return result == 0 ? request : NULL;
}

#define firehose_fini() ((void)pw_firehose_fini(firehose_table))
#define firehose_poll() pw_firehose_poll(firehose_table)
#define firehose_local_pin(addr, len, req)                                                         \
    pw_firehose_if_held(pw_firehose_local_pin(firehose_table, addr, len, req), req)
#define firehose_try_local_pin(addr, len, req)                                                     \
    pw_firehose_if_held(pw_firehose_try_local_pin(firehose_table, addr, len, req), req)
#define firehose_partial_local_pin(addr, len, req)                                                 \
    pw_firehose_if_held(pw_firehose_partial_local_pin(firehose_table, addr, len, req), req)
#define firehose_remote_pin(node, addr, len, flags, req, args_fn, completed_fn, context)           \
    pw_firehose_if_held(pw_firehose_remote_pin(firehose_table, node, addr, len, flags, req,        \
                                               args_fn, completed_fn, context),                    \
                        req)
#define firehose_try_remote_pin(node, addr, len, flags, req)                                       \
    pw_firehose_if_held(pw_firehose_try_remote_pin(firehose_table, node, addr, len, req), req)
#define firehose_partial_remote_pin(node, addr, len, flags, req)                                   \
    pw_firehose_if_held(pw_firehose_partial_remote_pin(firehose_table, node, addr, len, req), req)
#define firehose_release(reqs, count) ((void)pw_firehose_release(firehose_table, reqs, count))

#endif

#endif
