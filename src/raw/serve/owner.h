/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of an interface: takes the frames of all users from a source, and hands each to the one
 * whose rules it matches; takes what users send.
 *
 *      source ──context 0──► matches his sets? ──copy──► ring of user 0 ──► handlers, in his
 * process ──context 1──► ...                         ring of user 1 ◄─────────────── may he send
 * it? ◄──copy── ring of each user
 *
 * Invariants:
 *  - A frame goes into at most one ring, and only if the rules of this ring's user, with the
 *    conditions of his line of the policy, match it now: whatever the kernel has said of it, and
 *    whoever had the context before.
 *  - Nothing that a user does holds up the owner: no call waits for a user, no loop is as long as a
 *    user says. Each user costs a turn at most his share of frames, and a few messages.
 *  - A context's rules go when its connection ends, or when its user has taken no frame for
 *    `patience` although some were there. Until they are gone its frames are dropped and counted.
 *  - The user's end of a ring is never waited for: what finds it full is dropped, and counted
 * there.
 */
#ifndef RAW_SERVE_OWNER_H
#define RAW_SERVE_OWNER_H

#include "raw/serve/installer.h"
#include "raw/serve/protocol.h"
#include "raw/serve/ring.h"
#include "raw/serve/table.h"

enum { OWNER_GUESTS = 48, OWNER_UNASKED = 4 }; /* connections; of a user, without a context */

struct owner_counts {
    uint64_t frames;   /* that he was handed */
    uint64_t full;     /* that found his ring full */
    uint64_t lost;     /* that found no room in the kernel */
    uint64_t stray;    /* of the context, that his rules do not match (any more) */
    uint64_t sent;     /* that he has sent */
    uint64_t refused;  /* that he may not send */
    uint64_t no_room;  /* that found no room to leave */
    uint64_t nonsense; /* times that what he wrote into his ring could not be */
};

enum owner_state { OWNER_FREE, OWNER_COMING, OWNER_LIVE, OWNER_LEAVING };

/* A context: the place of one user's rules. */
struct owner_context {
    enum owner_state state;
    int guest; /* its connection; -1: it has ended */
    struct policy_peer peer;
    struct table_part part;
    char *text; /* his rules */
    unsigned priority, share;
    uint64_t order; /* who came first */
    struct ring ring;
    struct owner_counts counts;
    uint64_t lost_before;   /* of those who had the context */
    int64_t since;          /* when he last took a frame, or had none to take */
    struct table_part next; /* rules that are to take the place of his, while they are asked for */
    char *next_text;
};

struct owner_guest {
    int fd; /* -1: none */
    struct policy_peer peer;
    int context; /* -1: it has asked for none yet */
    int64_t since;
    bool waiting; /* its request is below, and it is not read until that is answered */
    uint64_t order;
    struct serve_head asked;
    char *text;
    uint32_t length;
};

struct owner_options {
    struct raw_source *source;
    const struct policy *policy;
    struct installer *installer; /* NULL: the source takes rules without privilege */
    unsigned contexts;           /* of the source */
    int listen;                  /* -1: none; owner_admit() brings connections */
    int64_t patience;            /* ns */
    const char *iface;
    bool own_source; /* frames that are sent come from `address`, unless a line says any-source */
    uint8_t address[6];
    bool spin;
    void (*say)(const char *line); /* NULL: nothing is said */
};

struct owner {
    struct owner_options o;
    struct owner_context context[RAW_CONTEXTS];
    unsigned turns[RAW_CONTEXTS]; /* contexts in the order of their turns */
    struct owner_guest guest[OWNER_GUESTS];
    uint64_t arrivals, frames, count; /* count: of turns */
    int64_t looked;                   /* when patience was last asked */
    bool news;                        /* connections are to be looked at */
    int64_t said;                     /* when a refusal was last said */
    bool deaf;                        /* no descriptor is left for another connection */
    /* the change of rules that is under way */
    bool busy;
    int candidate;    /* its context; -1: only some that leave */
    bool replaces;    /* its rules are replaced, it is not new */
    uint32_t leaving; /* bits of contexts that it removes */
    struct raw_rules room, rules;
    struct serve_message message;
    uint8_t frame[RAW_FRAME_MOST];
    char error[RAW_ERROR];
};

/* owner_open() begins with no users; the source is open, with no rules. -ENOMEM. owner_close()
 * tells all users that it ends; the source stays. */
int owner_open(struct owner **owner, const struct owner_options *options);
void owner_close(struct owner *o, int error, const char *why);

/* owner_turn() gives each context a turn, and returns how many frames have moved; owner_news() does
 * what connections ask for, now and then when it is called for each turn. owner_wait() sleeps until
 * there is something, at most so long. Negative errno: it cannot go on, and o->error says why. */
int owner_turn(struct owner *o);
int owner_news(struct owner *o);
int owner_wait(struct owner *o, int milliseconds);

/* ---- Between the files ---- */

/* owner_admit() takes a connection, or closes it. owner_leave() ends one, with a last message
 * unless `kind` is 0: its context leaves. guests.c */
void owner_admit(struct owner *o, int fd, const struct policy_peer *peer);
void owner_leave(struct owner *o, struct owner_guest *g, enum serve_kind kind, int error,
                 const char *why);
/* owner_listen() takes the connections and messages that are there. */
void owner_listen(struct owner *o);

/* owner_change() begins the next change of rules, if none is under way and somebody waits for one,
 * or ends the one under way. Negative errno: the kernel does not let go of rules. change.c */
int owner_change(struct owner *o);

/* owner_report() says what became of the frames of a context. */
void owner_report(const struct owner *o, unsigned number);

/* owner_who() writes a user's name for people. */
const char *owner_who(const struct policy_peer *peer, char text[64]);
void owner_say(const struct owner *o, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* owner_say_no() says a refusal, one a second at most: users may ask as often as they like. */
void owner_say_no(struct owner *o, const struct policy_peer *peer, const char *why);

#endif
