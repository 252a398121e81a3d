/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who puts rules into the kernel. The owner talks with users, so it has no capability; a process
 * beside it has CAP_BPF and CAP_NET_ADMIN, and does nothing but this:
 *
 *      owner ──for each context: line of the policy, the user's rules as text──► installer
 *            ◄──────────────────────────── done, or why not ────────────────────  reads them, adds
 *                                                                  the conditions of the line,
 * swaps
 *
 * Invariants:
 *  - The installer has the policy from before the first user, so an owner that was taken over still
 *    cannot have frames that the policy does not allow.
 *  - It ends with the owner, whatever ends that, and then nothing holds the program to the
 *    interface.
 */
#ifndef RAW_SERVE_INSTALLER_H
#define RAW_SERVE_INSTALLER_H

#include "raw/serve/policy.h"
#include "raw/source/source.h"

#include <sys/types.h>

struct installer_context {
    unsigned line, context;
    const char *text;
};

struct installer {
    pid_t pid;
    int fd; /* readable: there is an answer, or it has gone */
    struct installer_request *request;
};

/* installer_start() begins the process, with a copy of the source. -errno. */
int installer_start(struct installer *i, struct raw_source *source, const struct policy *policy,
                    unsigned contexts);
void installer_stop(struct installer *i);

/* installer_ask() asks for other rules: those of these contexts. installer_answer() takes the
 * answer: 1: it is done; 0: there is none yet; -errno, with the error: the rules before stay, or
 * (-EPIPE) the installer has gone. */
int installer_ask(struct installer *i, const struct installer_context *contexts, unsigned count);
int installer_answer(struct installer *i, char error[RAW_ERROR]);

#endif
