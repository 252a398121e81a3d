/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers' packets of a message whose packets come in any order, as with adaptive routes of a
 * simulated network. A handler is called with a packet as soon as all of it is there; its offset
 * tells where that lies. Where handlers' packets and wire packets are the same, but for the user
 * header, each is called for at once. Else the bytes of several are collected side by side:
 *
 *      wire packets      |   0 ....|   1 ....|   2 ....|      come: 0, 2, 1
 *      handlers' packets   u |   0 ....|   1 ....|  2  |      0 and 1 are whole when 1 has come
 *
 * A packet that was put together counts as part of the wire packet that completed it (packets.c).
 */
#include "nic/spin/pieces.h"

#include "nic/spin/handler_run.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    struct list link;
    uint64_t place; /* behind the user header */
    size_t length, filled;
    uint8_t *bytes;
};

void pieces_drop(struct handler_run *run)
{
    while (!list_empty(&run->pieces)) {
        struct piece *p = LIST_POP(struct piece, &run->pieces, link);
        free(p->bytes);
        free(p);
    }
}

/* The handlers' packet that byte `at` behind the user header is of; NULL: memory is short. */
static struct piece *piece_of(struct handler_run *run, uint64_t at)
{
    uint64_t packet = run->nic->packet_size, place = at - at % packet;
    uint64_t left = run->length - run->user_header - place;
    LIST_EACH(struct piece, known, &run->pieces, link) {
        if (known->place == place) {
            return known;
        }
    }
    struct piece *p = malloc(sizeof(*p));
    uint8_t *bytes = aligned_alloc(PACKET_ALIGN, packet);
    if (p == NULL || bytes == NULL) {
        free(p);
        free(bytes);
        return NULL;
    }
    *p = (struct piece){.place = place, .length = left < packet ? left : packet, .bytes = bytes};
    list_push_back(&run->pieces, &p->link);
    return p;
}

/* Whether each wire packet is one of the handlers' packets, or several, but for the user header. */
static bool alike(const struct rx *rx)
{
    return rx->run->user_header % PACKET_ALIGN == 0 && rx->f.wire % rx->run->nic->packet_size == 0;
}

bool pieces_next(struct rx *rx, uint8_t *data, size_t length)
{
    struct handler_run *run = rx->run;
    uint64_t from = rx->f.at + run->consumed;
    size_t left = length - run->consumed;
    if (from < run->user_header) {
        size_t skip = run->user_header - from;
        run->consumed += skip < left ? skip : left;
        return false;
    }
    from -= run->user_header;
    if (alike(rx)) {
        run->packet = data + run->consumed;
        run->packet_length = left;
        run->place = from;
        run->consumed += left;
        return true;
    }
    struct piece *p = piece_of(run, from);
    if (p == NULL) {
        run->packet = NULL;
        return true;
    }
    size_t inside = from - p->place, n = p->length - inside < left ? p->length - inside : left;
    memcpy(p->bytes + inside, data + run->consumed, n);
    p->filled += n;
    run->consumed += n;
    if (p->filled < p->length) {
        return false;
    }
    free(run->bounce);
    run->packet = run->bounce = p->bytes;
    run->packet_length = p->length;
    run->place = p->place;
    list_remove(&p->link);
    free(p);
    return true;
}
