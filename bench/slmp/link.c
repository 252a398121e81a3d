/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a session; see link.h. */
#include "link.h"

#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void opened(void *c, struct slmp_peer *p, const struct slmp_address *a, uint64_t i)
{
}

static void closed(void *c, struct slmp_peer *p, const struct slmp_address *a)
{
    ((struct link *)c)->failed++;
}

static enum slmp_step begin(void *c, struct slmp_incoming *in, const void *first, size_t length)
{
    return SLMP_GO;
}

static enum slmp_step data(void *c, struct slmp_incoming *in, uint64_t offset, const void *bytes,
                           size_t length)
{
    struct link *l = c;
    memcpy(l->to + offset % LINK_LARGE, bytes, length);
    l->bytes += length;
    return SLMP_GO;
}

/* Takes a message that is free; false if all are under way. */
static bool submit(struct link *l, const struct slmp_address *to, size_t length)
{
    if (l->busy[l->next]) {
        return false;
    }
    l->message[l->next] = (struct slmp_message){.to = *to, .body = l->from, .body_length = length};
    int r = slmp_send(l->engine, clock_ns(), &l->message[l->next]);
    if (r != 0) {
        fprintf(stderr, "slmp_bench: slmp_send: %s\n", strerror(-r));
        exit(1);
    }
    l->busy[l->next] = true;
    l->next = (l->next + 1) % LINK_WINDOW;
    l->outstanding++;
    return true;
}

static void done(void *c, struct slmp_incoming *in, enum slmp_status status)
{
    struct link *l = c;
    l->failed += status != SLMP_OK;
    l->received++;
    if (l->answer == ANSWER_EACH ||
        (l->answer == ANSWER_WINDOW && l->received % LINK_WINDOW == 0)) {
        l->failed += !submit(l, &in->from, 8);
    }
}

static void sent(void *c, struct slmp_message *m, enum slmp_status status)
{
    struct link *l = c;
    l->busy[m - l->message] = false;
    l->outstanding--;
    l->sent++;
    l->failed += status != SLMP_OK;
}

struct link *link_open(const struct link_options *o)
{
    struct link *l = calloc(1, sizeof(*l));
    struct slmp_upcalls up = {.context = l,
                              .opened = opened,
                              .closed = closed,
                              .begin = begin,
                              .data = data,
                              .done = done,
                              .sent = sent};
    struct slmp_config c = slmp_defaults();
    struct reason why;
    c.mode = SLMP_OWN;
    c.packet_size = o->packet;
    c.peers_max = o->peers > 0 ? o->peers : 1;
    c.key = o->key;
    c.cover = o->cover;
    c.target = 10000000;
    udp_socket_secrets(&c);
    if (l == NULL || (l->from = calloc(1, LINK_LARGE)) == NULL ||
        (l->to = calloc(1, LINK_LARGE)) == NULL) {
        fputs("slmp_bench: no memory\n", stderr);
        exit(1);
    }
    memset(l->from, 1, LINK_LARGE); /* pages of zeros are one page */
    if (slmp_udp_open(&l->udp, 0x7f000001, 0, NULL, &why) != 0) {
        fprintf(stderr, "slmp_bench: %s\n", why.text);
        exit(1);
    }
    l->udp.drop = o->loss;
    if ((l->engine = slmp_open(&c, &up, &(struct reason){""})) == NULL) {
        fprintf(stderr, "slmp_bench: slmp_open: %s\n", strerror(errno));
        exit(1);
    }
    return l;
}

uint16_t link_port(const struct link *l)
{
    return udp_socket_port(&l->udp.socket);
}

void link_send(struct link *l, uint16_t port, size_t length)
{
    const struct slmp_address to = {0x7f000001, port};
    while (!submit(l, &to, length)) {
        link_turn(l);
    }
}

void link_turn(struct link *l)
{
    struct reason why;
    if (slmp_udp_turn(&l->udp, l->engine, 0, &why) != 0) {
        fprintf(stderr, "slmp_bench: %s\n", why.text);
        exit(1);
    }
    if (l->failed > 0) {
        fprintf(stderr, "slmp_bench: %zu messages were not delivered\n", (size_t)l->failed);
        exit(1);
    }
}
