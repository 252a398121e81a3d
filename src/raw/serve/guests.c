/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of users, and their messages; see owner.h. */
#include "raw/serve/owner.h"

#include "base/sys.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 4, ADMITTED = 8 }; /* each time */

const char *owner_who(const struct policy_peer *peer, char text[64])
{
    snprintf(text, 64, "user %u, process %d", (unsigned)peer->uid, (int)peer->pid);
    return text;
}

void owner_leave(struct owner *o, struct owner_guest *g, enum serve_kind kind, int error,
                 const char *why)
{
    char who[64];
    if (kind != 0) {
        struct serve_head h = {.kind = kind, .error = error};
        (void)serve_send(g->fd, &h, why, -1);
    }
    close(g->fd);
    if (g->context >= 0) {
        struct owner_context *c = &o->context[g->context];
        c->guest = -1;
        c->state = c->state == OWNER_LIVE ? OWNER_LEAVING : c->state;
        owner_say(o, "context %d: %s has gone%s%s; his rules go", g->context,
                  owner_who(&g->peer, who), kind != 0 ? ": " : "", kind != 0 ? why : "");
    } else if (kind != 0) {
        owner_say_no(o, &g->peer, why);
    }
    free(g->text);
    *g = (struct owner_guest){.fd = -1, .context = -1};
    o->news = true;
}

/* ---- Coming ---- */

static void turn_away(struct owner *o, int fd, const struct policy_peer *peer, int error,
                      const char *why)
{
    struct serve_head h = {.kind = SERVE_REFUSED, .error = error};
    (void)serve_send(fd, &h, why, -1);
    close(fd);
    owner_say_no(o, peer, why);
}

void owner_admit(struct owner *o, int fd, const struct policy_peer *peer)
{
    struct owner_guest *free_one = NULL;
    unsigned unasked = 0;
    char why[RAW_ERROR];
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        struct owner_guest *g = &o->guest[i];
        free_one = free_one == NULL && g->fd < 0 ? g : free_one;
        unasked += g->fd >= 0 && g->context < 0 && g->peer.uid == peer->uid;
    }
    if (policy_find(o->o.policy, 0, peer) < 0) {
        snprintf(why, sizeof(why), "the policy of %s has no line for user %u", o->o.iface,
                 (unsigned)peer->uid);
        turn_away(o, fd, peer, -EACCES, why);
    } else if (free_one == NULL || unasked >= OWNER_UNASKED) {
        turn_away(o, fd, peer, -EBUSY, "there are too many connections: try again");
    } else {
        *free_one =
            (struct owner_guest){.fd = fd, .peer = *peer, .context = -1, .since = clock_ns()};
        o->news = true;
    }
}

static int identify(int fd, struct policy_peer *peer)
{
    struct ucred u;
    socklen_t length = sizeof(u);
    *peer = (struct policy_peer){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &length) != 0) {
        return -errno;
    }
    peer->uid = u.uid;
    peer->pid = u.pid;
    peer->group[0] = u.gid;
    length = sizeof(peer->group) - sizeof(peer->group[0]);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &peer->group[1], &length) != 0) {
        length = 0; /* more than there is room for count as none */
    }
    peer->groups = 1 + (unsigned)(length / sizeof(peer->group[0]));
    return 0;
}

static void admit_all(struct owner *o)
{
    for (int i = 0; i < ADMITTED; i++) {
        struct policy_peer peer;
        int fd = accept4(o->o.listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* without a descriptor for it, it waits for the next tick */
            o->deaf = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
            return;
        }
        if (identify(fd, &peer) != 0) {
            close(fd);
        } else {
            owner_admit(o, fd, &peer);
        }
    }
    o->news = true; /* there may be more */
}

/* ---- Messages ---- */

static void keep(struct owner *o, struct owner_guest *g)
{
    const struct serve_message *m = &o->message;
    g->text = malloc(m->length + 1);
    if (g->text == NULL) {
        owner_leave(o, g, SERVE_REFUSED, -ENOMEM, "no memory for the rules");
        return;
    }
    memcpy(g->text, m->text, m->length);
    g->text[m->length] = '\0';
    g->length = m->length;
    g->asked = m->head;
    g->order = ++o->arrivals;
    g->waiting = true;
}

static void handle(struct owner *o, struct owner_guest *g)
{
    const struct serve_head *h = &o->message.head;
    if (memchr(o->message.text, 0, o->message.length) != NULL) {
        owner_leave(o, g, SERVE_GONE, -EPROTO, "a message with a zero byte in its text");
        return;
    }
    if (h->kind == SERVE_ASK && g->context < 0) {
        if (h->version != SERVE_VERSION) {
            char why[RAW_ERROR];
            snprintf(why, sizeof(why),
                     "version %u of the protocol is spoken, and %d here: both must be of the same "
                     "release",
                     h->version, SERVE_VERSION);
            owner_leave(o, g, SERVE_REFUSED, -EPROTO, why);
            return;
        }
        keep(o, g);
    } else if (h->kind == SERVE_RULES && g->context >= 0) {
        keep(o, g);
    } else if (h->kind != SERVE_BELL || o->message.length > 0) {
        owner_leave(o, g, SERVE_GONE, -EPROTO, "a message out of turn");
    }
}

static void listen_to(struct owner *o, struct owner_guest *g)
{
    for (int i = 0; i < MESSAGES && g->fd >= 0 && !g->waiting; i++) {
        int rc = serve_receive(g->fd, &o->message, NULL);
        if (rc == -EAGAIN) {
            return;
        }
        if (rc <= 0) {
            owner_leave(o, g, rc == 0 ? 0 : SERVE_GONE, rc, "what was sent is no message");
            return;
        }
        handle(o, g);
    }
    o->news = true; /* there may be more */
}

void owner_listen(struct owner *o)
{
    if (o->o.listen >= 0 && !o->deaf) {
        admit_all(o);
    }
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        if (o->guest[i].fd >= 0) {
            listen_to(o, &o->guest[i]);
        }
    }
}
