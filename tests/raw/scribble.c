/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A user of an interface who means ill: scribble SOCKET RULES SEED has a context of the owner and
 * writes all over the memory that it shares with it, for as long as it lives: rubbish everywhere
 * (but in one word of the owner's, else it would seem to be stopped), counts and lengths that could
 * be and that could not, bells and requests in between.
 */
#include "raw/rules/prove.h"
#include "raw/serve/protocol.h"
#include "raw/serve/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct serve_message message;

static int join(const char *path, const char *rules, struct ring *ring)
{
    struct serve_head ask = {.kind = SERVE_ASK, .version = SERVE_VERSION};
    int socket = serve_connect(path), fd = -1, rc;
    if (socket < 0 || serve_send(socket, &ask, rules, -1) != 0) {
        fprintf(stderr, "scribble: %s: %s\n", path, strerror(-socket));
        exit(1);
    }
    while ((rc = serve_receive(socket, &message, &fd)) == -EAGAIN) {
        struct pollfd p = {.fd = socket, .events = POLLIN};
        (void)poll(&p, 1, -1);
    }
    if (rc != 1 || message.head.kind != SERVE_GRANT ||
        ring_map(ring, fd, message.head.ring, message.head.frame_most) != 0) {
        fprintf(stderr, "scribble: %.*s\n", (int)message.length, message.text);
        exit(1);
    }
    return socket;
}

static void scribble(struct ring *r, struct raw_dice *d)
{
    uint8_t *memory = (uint8_t *)r->shared;
    uint32_t filled = atomic_load(&r->shared->filled), sent = atomic_load(&r->shared->sent);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t what = raw_dice(d) >> raw_dice_below(d, 64);
        size_t where = raw_dice(d) % (i % 8 == 0 ? 2 * (size_t)RING_PAGE : r->length - 8);
        if (where >= sizeof(r->shared->filled)) { /* by which it takes frames below */
            memcpy(memory + where, &what, sizeof(what));
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        uint32_t length = raw_dice_below(d, 3000);
        memcpy(r->up + (size_t)raw_dice_below(d, r->slots) * r->stride, &length, sizeof(length));
        atomic_store(&r->shared->given, sent + raw_dice_below(d, 2 * r->slots));
        atomic_store(&r->shared->user_sleeps, raw_dice_below(d, 2));
    }
    /* so that it does not seem to be stopped */
    atomic_store(&r->shared->taken, filled - raw_dice_below(d, 2) * raw_dice_below(d, r->slots));
}

int main(int argc, char **argv)
{
    struct ring ring;
    struct raw_dice d = {.key = argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
    if (argc != 4) {
        fprintf(stderr, "scribble SOCKET RULES SEED\n");
        return 2;
    }
    int socket = join(argv[1], argv[2], &ring);
    printf("scribbling\n");
    fflush(stdout);
    for (uint64_t round = 0;; round++) {
        scribble(&ring, &d);
        struct serve_head h = {.kind = round % 64 == 0 ? SERVE_RULES : SERVE_BELL};
        if (round % 8 == 0) {
            (void)serve_send(socket, &h, h.kind == SERVE_RULES ? "set rubbish {" : "", -1);
        }
        int rc;
        while ((rc = serve_receive(socket, &message, NULL)) == 1) {
            if (message.head.kind == SERVE_GONE) {
                fprintf(stderr, "scribble: %.*s\n", (int)message.length, message.text);
                return 1;
            }
        }
        if (rc != -EAGAIN) {
            return 1;
        }
    }
}
