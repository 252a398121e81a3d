/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a user and the owner of an interface say to each other: messages over a Unix socket
 * (SOCK_SEQPACKET), a connection for each context. Frames go by rings (ring.h).
 *
 *      user                                    owner
 *        ASK version, ring, share, priority, rules ──►
 *           ◄── GRANT what he has, descriptor of the rings    or    REFUSED errno, why
 *        RULES rules ──►
 *           ◄── DONE                                         or    REFUSED: those before stay
 *        BELL ──►   ◄── BELL                        who sleeps is to look at the rings
 *           ◄── GONE errno, why                     the context is no more
 *
 * Either side ends it by closing. All numbers are of this machine: both sides are on it.
 */
#ifndef RAW_SERVE_PROTOCOL_H
#define RAW_SERVE_PROTOCOL_H

#include "raw/rules/rules.h"

#include <stdint.h>

enum { SERVE_VERSION = 1, SERVE_TEXT = 65536 };

enum serve_kind {
    SERVE_ASK = 1,
    SERVE_RULES,
    SERVE_BELL,
    SERVE_GRANT,
    SERVE_DONE,
    SERVE_REFUSED,
    SERVE_GONE,
    SERVE_KINDS
};

/* The head of every message; the text of rules, or of an error, is behind it. */
struct serve_head {
    uint32_t kind;
    uint32_t version; /* ASK, GRANT */
    int32_t error;    /* REFUSED, GONE: -errno */
    uint32_t ring, share, priority;
    uint32_t frame_most; /* GRANT */
    uint32_t sends;      /* GRANT: he may send */
    char iface[16];      /* GRANT */
};

struct serve_message {
    struct serve_head head;
    uint32_t length; /* of the text */
    char text[SERVE_TEXT];
};

/* serve_send() sends a message, without waiting, with a descriptor unless `fd` is -1. 0 or
 * -errno. */
int serve_send(int socket, const struct serve_head *head, const char *text, int fd);

/* serve_receive() takes a message, without waiting. 1; 0: the other side has closed; -EAGAIN: none
 * is there; -EPROTO: it is no message. `fd`, if it is not NULL, gets the descriptor, or -1; without
 * it descriptors are closed by the kernel. */
int serve_receive(int socket, struct serve_message *m, int *fd);

/* serve_connect() connects to an owner: the socket, or -errno. serve_listen() makes the socket of
 * an owner, which all users may connect to; -EADDRINUSE: another one lives there. */
int serve_connect(const char *path);
int serve_listen(const char *path);

#endif
