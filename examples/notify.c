/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notified access: words go through all ranks, each of which adds its rank to them. A rank has two
 * slots; its predecessor puts into one with the slot's number as the tag, and the rank tells it by
 * an empty put when the slot is free again. No rank ever asks another one whether it is done.
 *
 *      rank 0 ──put, tag 0 or 1──► rank 1 ──put──► ... ──put──► last rank
 *             ◄──empty, tag 0 or 1──
 *
 *      $ pinwheel run -n 4 ./notify
 */
#include "rma.h"

#include <pinwheel_notify.h>

enum { SLOTS = 2, WORDS = 512, BLOCKS = 100 };

static uint64_t slots[SLOTS][WORDS], words[WORDS];

/* A neighbour, which may be none: its key, and requests for what it tells of each slot. */
struct neighbour {
    struct pw_rma_key *key;
    struct pw_notify *told[SLOTS];
};

static struct neighbour meet_neighbour(const struct start *s, struct pw_rma *rma,
                                       struct pw_rma_region *region, unsigned rank)
{
    struct neighbour n = {.key = NULL};
    unsigned char bytes[PW_RMA_KEY];
    ptl_process_t id = {.rank = rank};
    if (rank >= s->size) {
        return n;
    }
    look_up(s, rank, bytes);
    expect(pw_rma_key_open(rma, bytes, sizeof(bytes), &n.key), "pw_rma_key_open");
    for (uint32_t tag = 0; tag < SLOTS; tag++) {
        expect(pw_notify_open(region, &id, tag, 1, &n.told[tag]), "pw_notify_open");
    }
    return n;
}

static void leave_neighbour(struct neighbour *n)
{
    for (int tag = 0; tag < SLOTS && n->key != NULL; tag++) {
        pw_notify_close(n->told[tag]);
    }
    if (n->key != NULL) {
        pw_rma_key_close(n->key);
    }
}

static void wait_for(struct pw_notify *told)
{
    expect(pw_notify_start(told), "pw_notify_start");
    expect(pw_notify_wait(told, NULL), "pw_notify_wait");
}

int main(int argc, char **argv)
{
    struct start s;
    struct pw_rma *rma;
    struct pw_rma_region *region;
    unsigned char bytes[PW_RMA_KEY];
    uint64_t wrong = 0;
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: notify\n");
        return 2;
    }
    rma_start(&s, &rma);
    expect(pw_rma_register(rma, slots, sizeof(slots), PW_RMA_WRITE | PW_RMA_NOTIFY, &region),
           "pw_rma_register");
    expect(pw_rma_key_pack(region, bytes, sizeof(bytes)), "pw_rma_key_pack");
    publish(&s, bytes);
    meet(&s);
    struct neighbour before = meet_neighbour(&s, rma, region, s.rank - 1);
    struct neighbour after = meet_neighbour(&s, rma, region, s.rank + 1);

    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t slot = block % SLOTS;
        if (before.key != NULL) {
            wait_for(before.told[slot]);
        }
        for (uint64_t i = 0; i < WORDS; i++) {
            words[i] = s.rank + (before.key != NULL ? slots[slot][i] : block * i);
        }
        if (before.key != NULL) {
            expect(pw_notify_put(before.key, NULL, 0, 0, slot, NULL), "pw_notify_put");
        }
        if (after.key != NULL) {
            if (block >= SLOTS) {
                wait_for(after.told[slot]);
            }
            expect(pw_notify_put(after.key, words, sizeof(words), slot * sizeof(words), slot, NULL),
                   "pw_notify_put");
            expect(pw_rma_flush(pw_rma_key_peer(after.key)), "pw_rma_flush");
        }
        for (uint64_t i = 0; i < WORDS; i++) {
            wrong += words[i] != block * i + s.rank * (s.rank + 1) / 2;
        }
    }
    expect(pw_rma_flush_all(rma), "pw_rma_flush_all");
    meet(&s);
    if (s.rank + 1 == s.size) {
        printf("%d blocks came through %u ranks\n", BLOCKS, s.size);
    }
    leave_neighbour(&before);
    leave_neighbour(&after);
    expect(pw_rma_unregister(region), "pw_rma_unregister");
    rma_finish(&s, rma);
    return finish(&s, wrong == 0 ? 0 : 1);
}
