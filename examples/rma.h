/* SPDX-License-Identifier: BSD-3-Clause */
/* What examples of libpinwheel-rma have in common: opening it, and keys that go by the job. */
#ifndef EXAMPLES_RMA_H
#define EXAMPLES_RMA_H

#include "start.h"

#include <pinwheel_rma.h>

/* expect() wants that a call gave 0. */
static inline void expect(int code, const char *call)
{
    if (code != 0) {
        fail("%s gave %s", call, strerror(-code));
    }
}

/* Keys are published as text: values of the job hold no other bytes. */
static inline void publish(const struct start *s, const unsigned char *key)
{
    char name[32], text[2 * PW_RMA_KEY + 1];
    for (int i = 0; i < PW_RMA_KEY; i++) {
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    }
    snprintf(name, sizeof(name), "rma-key-%u", s->rank);
    check_job(pinwheel_job_put(s->job, name, text), s->job);
}

static inline void look_up(const struct start *s, unsigned rank, unsigned char *key)
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

/* rma_start() starts a program of any number of ranks, and opens. */
static inline void rma_start(struct start *s, struct pw_rma **rma)
{
    ptl_ni_limits_t limits;
    start(s, 1, 0);
    /* A second PtlNIInit of the same interface returns the first one's limits. */
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits,
                    &s->ni),
          "PtlNIInit");
    struct pw_rma_config config = {1, &s->ni, &limits, 0};
    expect(pw_rma_open(&config, rma), "pw_rma_open");
}

static inline void rma_finish(struct start *s, struct pw_rma *rma)
{
    expect(pw_rma_close(rma), "pw_rma_close");
    check(PtlNIFini(s->ni), "PtlNIFini");
}

#endif
