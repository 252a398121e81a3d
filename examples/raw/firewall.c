/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a firewall that needs a memory: each source may begin so many connections a second,
 * and send so many pings. What needs none is in firewall.rules, which the kernel carries out:
 * `pass` and `drop` never come here, and of a connection only the first segment does.
 *
 *      gcc -shared -fPIC -O2 firewall.c -o firewall.so       or       pinwheel cc --image
 *      pinwheel raw run --iface eth0 --rules firewall.rules --image firewall.so
 *
 * A source has a bucket of BURST tokens, which fills again at RATE a second; a frame takes one, and
 * is dropped where there is none. Buckets are in lines of WAYS; a source without one gets the one
 * of its line that was used longest ago. So a flood of made-up sources takes buckets from others of
 * its line, who then have a full one again: it costs the limit, and never lets out who keeps to it.
 */
#include <spin_handler.h>

enum { LINES = 256, WAYS = 4, RATE = 10, BURST = 20, SOURCE = 26 };

struct bucket {
    uint32_t source, tokens;
    uint64_t last; /* ns, since when the tokens count; 0: it was never used */
};

/* The host reads the counts: passed and dropped frames, buckets that were taken from another. */
struct firewall {
    uint64_t passed, dropped, taken;
    struct bucket bucket[LINES][WAYS];
};
PTL_HANDLER_STATE(struct firewall);

static struct bucket *bucket_of(struct firewall *f, uint32_t source, uint64_t now)
{
    struct bucket *line = f->bucket[source * 2654435761u >> 24], *oldest = &line[0];
    for (unsigned i = 0; i < WAYS; i++) {
        if (line[i].last != 0 && line[i].source == source) {
            return &line[i];
        }
        if (line[i].last < oldest->last) {
            oldest = &line[i];
        }
    }
    f->taken += oldest->last != 0;
    *oldest = (struct bucket){source, BURST, now};
    return oldest;
}

/* The rules say that the frame has an IPv4 header. */
__handler int raw_header(const ptl_header_t h, void *state)
{
    enum { STEP = 1000000000 / RATE };
    struct firewall *f = state;
    const uint8_t *frame = h.user_hdr;
    if (h.user_hdr_length < SOURCE + 4) {
        return DROP;
    }
    uint32_t source = (uint32_t)frame[SOURCE] << 24 | (uint32_t)frame[SOURCE + 1] << 16 |
                      (uint32_t)frame[SOURCE + 2] << 8 | frame[SOURCE + 3];
    uint64_t now = h.offset; /* the time at which the frame came */
    struct bucket *b = bucket_of(f, source, now);
    uint64_t more = (now - b->last) / STEP;
    b->tokens = more + b->tokens < BURST ? (uint32_t)more + b->tokens : BURST;
    b->last = b->tokens < BURST ? b->last + more * STEP : now;
    if (b->tokens == 0) {
        f->dropped++;
        return DROP;
    }
    b->tokens--;
    f->passed++;
    return PROCEED;
}
PTL_HANDLER(raw_header);
