/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access: each rank puts a line into the memory of the next one, which does nothing
 * for it, and reads it back.
 *
 *      rank 0 ──put, get──► rank 1 ──put, get──► ... ──► rank 0
 *
 *      $ pinwheel run -n 4 ./rma
 */
#include "start.h"

#include <pinwheel_rma.h>

enum { LINE = 64 };

/* expect() wants that a call gave 0. */
static void expect(int code, const char *call)
{
    if (code != 0) {
        fail("%s gave %s", call, strerror(-code));
    }
}

/* Keys are published as text: values of the job hold no other bytes. */
static void publish(const struct start *s, const unsigned char *key)
{
    char name[32], text[2 * PW_RMA_KEY + 1];
    for (int i = 0; i < PW_RMA_KEY; i++) {
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    }
    snprintf(name, sizeof(name), "rma-key-%u", s->rank);
    check_job(pinwheel_job_put(s->job, name, text), s->job);
}

static void look_up(const struct start *s, unsigned rank, unsigned char *key)
{
    char name[32], text[2 * PW_RMA_KEY + 1];
    unsigned byte = 0;
    snprintf(name, sizeof(name), "rma-key-%u", rank);
    check_job(pinwheel_job_get(s->job, name, text, sizeof(text)), s->job);
    for (int i = 0; i < PW_RMA_KEY; i++) {
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
            fail("rank %u has published no key: %s", rank, text);
        }
        key[i] = (unsigned char)byte;
    }
}

int main(int argc, char **argv)
{
    static char mine[LINE], line[LINE], back[LINE];
    unsigned char bytes[PW_RMA_KEY];
    struct start s;
    struct pw_rma *rma;
    struct pw_rma_region *region;
    struct pw_rma_key *key;
    struct pw_rma_request got;
    ptl_ni_limits_t limits;
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: rma\n");
        return 2;
    }
    start(&s, 1, 0);
    /* A second PtlNIInit of the same interface returns the first one's limits. */
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits,
                    &s.ni),
          "PtlNIInit");
    struct pw_rma_config config = {1, &s.ni, &limits, 0};
    expect(pw_rma_open(&config, &rma), "pw_rma_open");

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
    expect(pw_rma_close(rma), "pw_rma_close");
    check(PtlNIFini(s.ni), "PtlNIFini");
    return finish(&s, right ? 0 : 1);
}
