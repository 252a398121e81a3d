/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts how often messages take each path: the fast paths, and the general stages that they stand
 * for, which alone PINWHEEL_FASTPATH=off leaves. Code that belongs to a path says COUNT_PATH(name).
 * The library that is built for tests (tests/paths) counts these calls, and ends the process where
 * a fast path is taken although the option is `off`. In every other build COUNT_PATH() compiles to
 * nothing.
 */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

/* PATH(name, fast): the fast paths come first, in the order of a message's life. */
#define PATHS(PATH)                                                                                \
    /* at the initiator: a request of one ring line, without and with an answer; a short or a      \
     * long request without answer, and a short one with an answer; triggered requests */          \
    PATH(send_straight, 1)                                                                         \
    PATH(send_straight_op, 1)                                                                      \
    PATH(send_now_short, 1)                                                                        \
    PATH(send_now_long, 1)                                                                         \
    PATH(send_op_short, 1)                                                                         \
    PATH(trigger_straight, 1)                                                                      \
    PATH(trigger_quiet, 1)                                                                         \
    /* loopback: done at once, or by PtlAtomic itself, or through the stages of the receiver */    \
    PATH(self_quiet, 1)                                                                            \
    PATH(self_atomic, 1)                                                                           \
    PATH(self_staged, 1)                                                                           \
    /* at the target: the matching entry was found without a search */                             \
    PATH(match_recent, 1)                                                                          \
    PATH(match_found, 1)                                                                           \
    /* at the target: a message whose payload has come with its header */                          \
    PATH(take_put, 1)                                                                              \
    PATH(plain_put, 1)                                                                             \
    PATH(plain_atomic, 1)                                                                          \
    PATH(plain_fetching, 1)                                                                        \
    PATH(short_entry, 1)                                                                           \
    PATH(short_refused, 1)                                                                         \
    PATH(short_handlers, 1)                                                                        \
    PATH(use_up_simple, 1)                                                                         \
    PATH(ack_gathered, 1)                                                                          \
    PATH(reply_at_once, 1)                                                                         \
    /* at the initiator: an answer whose payload has come with it; an ack without any error */     \
    PATH(short_response, 1)                                                                        \
    PATH(acked, 1)                                                                                 \
    /* shared memory: one of several consecutive ring lines that are taken together */             \
    PATH(shm_run, 1)                                                                               \
    /* the general stages */                                                                       \
    PATH(send_op, 0)                                                                               \
    PATH(trigger_request, 0)                                                                       \
    PATH(self_fabric, 0)                                                                           \
    PATH(match_search, 0)                                                                          \
    PATH(header_request, 0)                                                                        \
    PATH(done_put, 0)                                                                              \
    PATH(done_get, 0)                                                                              \
    PATH(done_atomic, 0)                                                                           \
    PATH(done_fetch, 0)                                                                            \
    PATH(use_up_settled, 0)                                                                        \
    PATH(send_ack, 0)                                                                              \
    PATH(send_reply, 0)                                                                            \
    PATH(header_response, 0)                                                                       \
    PATH(done_response, 0)

#ifdef PINWHEEL_COUNT_PATHS
#define PATH_ENUM(name, fast) PATH_##name,
enum path_name { PATHS(PATH_ENUM) PATHS_COUNT };
void path_taken(enum path_name path);
#define COUNT_PATH_OF(name, which) path_taken((enum path_name)(PATH_##name + (which)))
#else
#define COUNT_PATH_OF(name, which) ((void)(which))
#endif
/* COUNT_PATH_OF() counts the path that comes `n` places behind `name` in PATHS. */
#define COUNT_PATH(name) COUNT_PATH_OF(name, 0)

#endif
