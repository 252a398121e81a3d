/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of `pinwheel raw serve`: which users may have which frames of an interface.
 *
 *      # who, how much                         # which frames, which they may send
 *      allow user alice contexts 2 ring 1024 {
 *          udp.dport = 5000..5999
 *          send udp.sport = 5000..5999
 *      }
 *      allow group net share 8 { icmp.type = echo }
 *      allow everyone { udp.dport = 7; ip.dst = 10.0.0.0/8 }
 *
 * Nobody proves that the rules of a user lie within a line: all conditions of the line are added to
 * each of his sets (policy_and()), so what he gets is in both.
 *
 *      his set:  A and B          the line:  C and D          in the table:  A and B and C and D
 *
 * Invariant: a frame that the sum of both matches is matched by the line, whatever the user wrote.
 */
#ifndef RAW_SERVE_POLICY_H
#define RAW_SERVE_POLICY_H

#include "raw/rules/rules.h"

#include <sys/types.h>

enum { POLICY_LINES = 64, POLICY_RING_MOST = 4096, POLICY_SHARE_MOST = 64, POLICY_CONTEXTS = 16 };

enum policy_who { POLICY_USER, POLICY_GROUP, POLICY_EVERYONE };

struct policy_line {
    enum policy_who who;
    unsigned id;         /* of the user or group */
    char name[RAW_NAME]; /* as the policy calls him */
    unsigned line;       /* of the text */
    /* what one user may have by this line, at most */
    unsigned contexts; /* at once */
    unsigned sets;     /* of a context */
    unsigned ring;     /* slots of a ring, a power of two */
    unsigned share;    /* frames of a context each turn */
    unsigned priority; /* the lowest number that he may ask for */
    bool sends, any_source;
    struct raw_set take; /* conditions of the frames that he may have */
    struct raw_set send; /* of those that he may send */
};

struct policy {
    unsigned count;
    struct policy_line of[POLICY_LINES];
};

/* Who asks. */
struct policy_peer {
    uid_t uid;
    pid_t pid;
    unsigned groups;
    gid_t group[65]; /* the effective one first */
};

/* policy_parse() reads the text of a policy; policy_load() the file. 0, or -1 with the error
 * "NAME:LINE: what is wrong". Names of users and groups are those of this machine. */
int policy_parse(struct policy *p, const char *name, const char *text, size_t length,
                 char error[RAW_ERROR]);
int policy_load(struct policy *p, const char *path, char error[RAW_ERROR]);

/* policy_find() returns the number of the first line, from `from` on, that is about this user; -1:
 * none is. */
int policy_find(const struct policy *p, unsigned from, const struct policy_peer *peer);

/* policy_and() adds the conditions of a line to the sets of a user. -EACCES: no frame could match
 * one of them, so the line does not allow it, or it passes or drops; -E2BIG: the sum has too many
 * conditions. The error names the set. */
int policy_and(const struct policy_line *line, struct raw_set *sets, unsigned count,
               char error[RAW_ERROR]);

#endif
