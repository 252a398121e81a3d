/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that work on each other's allocated memory, whoever they are (users.sh):
 *
 *      pinwheel run -n 3 rma_mapped [secret]
 *
 * Each rank prints whether the next one's memory is mapped; with `secret` it lets nobody look into
 * it first (PR_SET_DUMPABLE).
 */
#include "../../examples/rma.h"

#include <sys/prctl.h>

enum { WORDS = 8192, EACH = 100 };

int main(int argc, char **argv)
{
    struct start s;
    struct pw_rma *rma;
    struct pw_rma_region *region;
    struct pw_rma_key *key;
    unsigned char bytes[PW_RMA_KEY];
    uint64_t *memory, one = 1, old = 0, back = 0;
    void *at;
    if (argc > 1 && strcmp(argv[1], "secret") == 0 && prctl(PR_SET_DUMPABLE, 0) != 0) {
        fail("PR_SET_DUMPABLE: %s", strerror(errno));
    }
    rma_start(&s, &rma);
    expect(pw_rma_allocate(rma, WORDS * sizeof(*memory), PW_RMA_READ | PW_RMA_WRITE,
                           (void **)&memory, &region),
           "pw_rma_allocate");
    expect(pw_rma_key_pack(region, bytes, sizeof(bytes)), "pw_rma_key_pack");
    publish(&s, bytes);
    meet(&s);
    look_up(&s, (s.rank + 1) % s.size, bytes);
    expect(pw_rma_key_open(rma, bytes, sizeof(bytes), &key), "pw_rma_key_open");
    for (uint64_t i = 0; i < EACH; i++) {
        expect(pw_rma_put(key, &i, 8, 8 * (1 + i), NULL), "pw_rma_put");
        expect(pw_rma_fetch_op(key, &one, &old, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL),
               "pw_rma_fetch_op");
        expect(pw_rma_get(key, &back, 8, 8 * i, NULL), "pw_rma_get");
        expect(pw_rma_flush(pw_rma_key_peer(key)), "pw_rma_flush");
    }
    int code = pw_rma_map(key, &at);
    meet(&s);
    bool right = memory[0] == EACH && old == EACH - 1 && back == EACH - 2;
    for (uint64_t i = 0; i < EACH; i++) {
        right &= memory[1 + i] == i;
    }
    printf("rank %u: %s, %s\n", s.rank, code == 0 ? "mapped" : strerror(-code),
           right ? "right" : "wrong");
    fflush(stdout);
    pw_rma_key_close(key);
    meet(&s);
    expect(pw_rma_unregister(region), "pw_rma_unregister");
    rma_finish(&s, rma);
    return finish(&s, right ? 0 : 1);
}
