/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telemetry in the NIC: totals, a flow table, a sketch with the heaviest flows, and histograms of
 * the time between requests and answers (telemetry.h). The host is telemetry.c.
 *
 *      gcc -shared -fPIC -O2 telemetry_nic.c -o telemetry_nic.so     or     pinwheel cc --image
 */
#include <spin_handler.h>

#include "telemetry.h"

PTL_HANDLER_STATE(struct telemetry);

enum { ETH = 14, TCP = 6, UDP = 17, ICMP = 1, ICMP6 = 58 };
static const uint64_t IDLE =
    60000000000; /* ns; a flow without a frame for so long may be replaced */

/* What a frame has. */
struct seen {
    uint32_t key[KEY];
    unsigned proto, type,
        id;        /* type: flags of TCP, type of ICMP, first flags of DNS; id: of a request */
    bool has_more; /* type and id are there */
};

static uint32_t word(const uint8_t *f)
{
    return (uint32_t)f[0] << 24 | (uint32_t)f[1] << 16 | (uint32_t)f[2] << 8 | f[3];
}

static uint32_t half(const uint8_t *f)
{
    return (uint32_t)f[0] << 8 | f[1];
}

static void add(struct amount *a, uint64_t bytes)
{
    a->frames++;
    a->bytes += bytes;
}

/* Reads ports, and what tells requests from answers. */
static void read_more(struct seen *s, const uint8_t *f, ptl_size_t length)
{
    if ((s->proto == TCP || s->proto == UDP) && length >= 8) {
        s->key[8] = word(f);
        s->has_more = length >= 14;
        s->type = s->proto == TCP ? (s->has_more ? f[13] : 0) : length >= 12 ? f[10] : 0;
        s->id = s->proto == UDP && length >= 12 ? half(f + 8) : 0;
    } else if ((s->proto == ICMP || s->proto == ICMP6) && length >= 8) {
        s->has_more = true;
        s->type = f[0];
        s->id = word(f + 4);
    }
}

/* False: there is no whole header of IP. Of fragments behind the first the ports are 0. */
static bool read_frame(struct seen *s, const uint8_t *f, ptl_size_t length)
{
    for (unsigned i = 0; i < KEY; i++) {
        s->key[i] = 0;
    }
    s->has_more = false;
    s->type = s->id = 0;
    if (length >= ETH + 20 && half(f + 12) == 0x0800 && f[ETH] >> 4 == 4) {
        unsigned head = (f[ETH] & 15u) * 4;
        if (head < 20 || ETH + head > length) {
            return false;
        }
        s->proto = f[ETH + 9];
        s->key[0] = word(f + ETH + 12);
        s->key[4] = word(f + ETH + 16);
        s->key[9] = s->proto | 4 << 8;
        if ((half(f + ETH + 6) & 0x1fff) == 0) {
            read_more(s, f + ETH + head, length - ETH - head);
        }
        return true;
    }
    if (length >= ETH + 40 && half(f + 12) == 0x86dd && f[ETH] >> 4 == 6) {
        s->proto = f[ETH + 6];
        for (unsigned i = 0; i < 8; i++) {
            s->key[i] = word(f + ETH + 8 + 4 * (ptl_size_t)i);
        }
        s->key[9] = s->proto | 6 << 8;
        read_more(s, f + ETH + 40, length - ETH - 40);
        return true;
    }
    return false;
}

static bool same(const uint32_t *a, const uint32_t *b)
{
    for (unsigned i = 0; i < KEY; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static void copy(uint32_t *to, const uint32_t *from)
{
    for (unsigned i = 0; i < KEY; i++) {
        to[i] = from[i];
    }
}

static void count_flow(struct telemetry *t, const struct seen *s, uint32_t hash, uint64_t bytes,
                       uint64_t now)
{
    struct flow *line = t->flow[hash % LINES], *place = &line[0];
    for (unsigned i = 0; i < WAYS; i++) {
        if (line[i].frames > 0 && same(line[i].key, s->key)) {
            line[i].frames++;
            line[i].bytes += bytes;
            line[i].last = now;
            return;
        }
        if (line[i].last < place->last) {
            place = &line[i];
        }
    }
    if (place->frames > 0 && now - place->last < IDLE) {
        add(&t->no_room, bytes);
        return;
    }
    if (place->frames > 0) {
        t->flows_ended++;
        t->ended.frames += place->frames;
        t->ended.bytes += place->bytes;
    }
    copy(place->key, s->key);
    place->frames = 1;
    place->bytes = bytes;
    place->first = place->last = now;
}

static void count_sketch(struct telemetry *t, const struct seen *s, uint32_t hash, uint64_t bytes)
{
    uint64_t estimate = UINT64_MAX;
    struct top *least = &t->top[0];
    for (unsigned row = 0; row < ROWS; row++) {
        uint64_t *cell = &t->sketch[row][telemetry_cell(s->key, row)];
        *cell += bytes;
        estimate = *cell < estimate ? *cell : estimate;
    }
    for (unsigned i = 0; i < TOP; i++) {
        struct top *e = &t->top[i];
        if (e->hash == hash && e->estimate > 0 && same(e->key, s->key)) {
            e->estimate = estimate;
            return;
        }
        least = e->estimate < least->estimate ? e : least;
    }
    if (estimate > least->estimate) {
        copy(least->key, s->key);
        least->hash = hash;
        least->estimate = estimate;
    }
}

/* The tag of a request, made from its frame or from that of its answer. */
static uint64_t tag_of(const struct seen *s, bool answer)
{
    struct seen r = *s;
    if (answer) {
        for (unsigned i = 0; i < 4; i++) {
            r.key[i] = s->key[4 + i];
            r.key[4 + i] = s->key[i];
        }
        r.key[8] = s->key[8] << 16 | s->key[8] >> 16;
    }
    uint64_t tag = (uint64_t)telemetry_hash(r.key, r.id) << 32 | telemetry_hash(r.key, ~r.id);
    return tag != 0 ? tag : 1;
}

static void ask(struct telemetry *t, enum latency_kind kind, const struct seen *s, uint64_t now)
{
    uint64_t tag = tag_of(s, false);
    struct asked *line = t->asked[tag % ASKED], *place = &line[0];
    for (unsigned i = 0; i < ASKED_WAYS; i++) {
        if (line[i].tag == tag) {
            return; /* asked again: the time counts from the first */
        }
        if (place->tag != 0 && (line[i].tag == 0 || line[i].time < place->time)) {
            place = &line[i];
        }
    }
    t->latency[kind].given_up += place->tag != 0;
    place->tag = tag;
    place->time = now;
}

static void answer(struct telemetry *t, enum latency_kind kind, const struct seen *s, uint64_t now)
{
    struct latency *l = &t->latency[kind];
    uint64_t tag = tag_of(s, true);
    struct asked *line = t->asked[tag % ASKED];
    for (unsigned i = 0; i < ASKED_WAYS; i++) {
        if (line[i].tag == tag) {
            uint64_t ns = now - line[i].time;
            line[i].tag = 0;
            l->count++;
            l->most = ns > l->most ? ns : l->most;
            l->bucket[telemetry_bucket(ns)]++;
            return;
        }
    }
}

static void time_answers(struct telemetry *t, const struct seen *s, uint64_t now)
{
    enum { SYN = 2, ACK = 0x10, SYN_ACK = SYN | ACK, DOMAIN = 53, IS_ANSWER = 0x80 };
    if (s->proto == TCP && s->has_more && (s->type & SYN) != 0) {
        ((s->type & SYN_ACK) == SYN ? ask : answer)(t, TCP_HANDSHAKE, s, now);
    } else if (s->proto == UDP && s->has_more) {
        if ((s->key[8] & 0xffff) == DOMAIN && (s->type & IS_ANSWER) == 0) {
            ask(t, DNS, s, now);
        } else if (s->key[8] >> 16 == DOMAIN && (s->type & IS_ANSWER) != 0) {
            answer(t, DNS, s, now);
        }
    } else if (s->has_more &&
               ((s->proto == ICMP && s->type == 8) || (s->proto == ICMP6 && s->type == 128))) {
        ask(t, ICMP_ECHO, s, now);
    } else if (s->has_more &&
               ((s->proto == ICMP && s->type == 0) || (s->proto == ICMP6 && s->type == 129))) {
        answer(t, ICMP_ECHO, s, now);
    }
}

__handler int raw_header(const ptl_header_t h, void *state)
{
    struct telemetry *t = state;
    struct seen s;
    uint64_t now = h.offset; /* the time at which the frame came */
    t->first = t->all.frames == 0 ? now : t->first;
    t->last = now;
    add(&t->all, h.length);
    if (!read_frame(&s, h.user_hdr, h.user_hdr_length)) {
        add(&t->other, h.length);
        return PROCESS_DATA;
    }
    if (s.proto == TCP || s.proto == UDP) {
        add(s.proto == TCP ? &t->tcp : &t->udp, h.length);
    } else if (s.proto == ICMP || s.proto == ICMP6) {
        add(&t->icmp, h.length);
    }
    uint32_t hash = telemetry_hash(s.key, 0);
    count_flow(t, &s, hash, h.length, now);
    count_sketch(t, &s, hash, h.length);
    time_answers(t, &s, now);
    return PROCESS_DATA;
}
PTL_HANDLER(raw_header);
