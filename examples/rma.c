/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access: each rank puts a line into the memory of the next one, which does nothing
 * for it, and reads it back.
 *
 *      rank 0 ──put, get──► rank 1 ──put, get──► ... ──► rank 0
 *
 *      $ pinwheel run -n 4 ./rma
 */
#include "rma.h"

enum { LINE = 64 };

int main(int argc, char **argv)
{
    static char mine[LINE], line[LINE], back[LINE];
    unsigned char bytes[PW_RMA_KEY];
    struct start s;
    struct pw_rma *rma;
    struct pw_rma_region *region;
    struct pw_rma_key *key;
    struct pw_rma_request got;
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: rma\n");
        return 2;
    }
    rma_start(&s, &rma);

    /* Memory for the others, and its key. */
    expect(pw_rma_register(rma, mine, sizeof(mine), PW_RMA_READ | PW_RMA_WRITE, &region),
           "pw_rma_register");
    expect(pw_rma_key_pack(region, bytes, sizeof(bytes)), "pw_rma_key_pack");
    publish(&s, bytes);
    meet(&s);

    /* The next rank's memory. */
    look_up(&s, (s.rank + 1) % s.size, bytes);
    expect(pw_rma_key_open(rma, bytes, sizeof(bytes), &key), "pw_rma_key_open");
    snprintf(line, sizeof(line), "a line of rank %u", s.rank);
    expect(pw_rma_put(key, line, sizeof(line), 0, NULL), "pw_rma_put");
    expect(pw_rma_flush(pw_rma_key_peer(key)), "pw_rma_flush");
    expect(pw_rma_get(key, back, sizeof(back), 0, &got), "pw_rma_get");
    expect(pw_rma_wait(&got), "pw_rma_wait");
    meet(&s); /* all lines are there */

    printf("rank %u has \"%s\"\n", s.rank, mine);
    snprintf(line, sizeof(line), "a line of rank %u", (s.rank + s.size - 1) % s.size);
    bool right = strcmp(mine, line) == 0;
    snprintf(line, sizeof(line), "a line of rank %u", s.rank);
    right &= strcmp(back, line) == 0;
    pw_rma_key_close(key);
    expect(pw_rma_unregister(region), "pw_rma_unregister");
    rma_finish(&s, rma);
    return finish(&s, right ? 0 : 1);
}
