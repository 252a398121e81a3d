/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With a job key: the engine takes only packets of peers that have the key, and each packet once.
 *
 * In a greeting (HELLO, WELCOME, OPEN, OPENED) `number` is a random number of the initiator for
 * this exchange. HELLO and OPEN carry it, WELCOME and OPENED repeat it, so that an old answer does
 * not pass for one to this exchange; an old OPEN does not pass because of its nonce. A greeting
 * also carries the address that it was sent to: one that was forwarded to another engine is refused
 * there.
 *
 * The sender of a RESET knows nothing of the session that it ends. So the RESET carries all that it
 * can know: its own address, that of the receiver, and the number and the beginning of the tag of
 * the packet that it answers. The receiver checks that it has sent that packet in this session. So
 * no RESET can be obtained before the session begins, nor from another address than the peer's.
 *
 * In a session each side numbers all packets that it sends, repeated ones anew, with 64 bits. The
 * session's keys are made from the random numbers of both sides. The receiver keeps a replay
 * window:
 *
 *      numbers     ──┬───────────────────┬─────────►
 *       too old: no  │  seen? a bit each │ top: new, and moves top
 */
#include "auth.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Returns the first 8 bytes of a tag as a number. */
static uint64_t first_of(const uint8_t *tag)
{
    uint64_t first;
    memcpy(&first, tag, sizeof(first));
    return be64toh(first);
}

/* Whether an address that a greeting was sent to can be this engine's; 0 in `self` means that it is
 * not known. */
static bool ours(const struct slmp_address *self, const struct slmp_wire *w)
{
    return (self->ip == 0 || self->ip == w->to_ip) && (self->port == 0 || self->port == w->to_port);
}

bool slmp_auth_greeting(struct slmp *e, const struct slmp_wire *w, const uint8_t *packet)
{
    uint8_t tag[SLMP_TAG];
    if (e->mac == NULL) {
        return true;
    }
    bool good = w->tagged && ours(&e->config.self, w) &&
                slmp_mac_greeting(e->mac, packet, (size_t)(w->tag - packet), tag) &&
                slmp_tag_equal(tag, w->tag);
    e->counters.forged += !good;
    return good;
}

/* Whether a RESET names the address that it seems to come from. An engine that does not know its
 * own address cannot send a RESET that is accepted. */
static bool theirs(const struct slmp_address *from, const struct slmp_wire *w)
{
    return w->from_ip == from->ip && w->from_port == from->port;
}

bool slmp_auth_answers(const struct slmp_peer *p, const struct slmp_wire *w)
{
    const struct slmp_auth *s = p->auth;
    return s == NULL ||
           (theirs(&p->address, w) && w->number < s->number && s->number - w->number <= SLMP_SENT &&
            s->sent[w->number % SLMP_SENT] == w->answers);
}

void slmp_auth_quote(struct slmp_wire *reset, const struct slmp_wire *w)
{
    if (w->tagged) {
        reset->number = w->number;
        reset->answers = first_of(w->tag);
    }
}

size_t slmp_auth_greet(struct slmp *e, const struct slmp_address *to, struct slmp_wire *w,
                       uint8_t *packet)
{
    if (e->mac == NULL) {
        return slmp_wire_write(w, packet);
    }
    w->tagged = true;
    w->to_ip = to->ip;
    w->to_port = to->port;
    w->from_ip = e->config.self.ip;
    w->from_port = e->config.self.port;
    size_t length = slmp_wire_write(w, packet);
    /* If libcrypto fails, the packet has a wrong tag, and counts as lost. */
    slmp_mac_greeting(e->mac, packet, length - SLMP_TAG, packet + length - SLMP_TAG);
    return length;
}

/* ---- Sessions ---- */

void slmp_auth_end(struct slmp_peer *p)
{
    if (p->auth != NULL) {
        slmp_session_key_free(p->auth->out);
        slmp_session_key_free(p->auth->in);
        free(p->auth);
        p->auth = NULL;
    }
}

bool slmp_auth_start(struct slmp_peer *p, bool initiator, uint64_t drawn, uint64_t nonce,
                     uint64_t other)
{
    struct slmp *e = p->engine;
    uint64_t own = e->config.incarnation;
    if (e->mac == NULL) {
        return true;
    }
    uint64_t value[] = {drawn,
                        nonce,
                        initiator ? own : other,
                        initiator ? other : own,
                        initiator ? p->token_in : p->token_out,
                        initiator ? p->token_out : p->token_in,
                        0};
    enum { VALUES = sizeof(value) / sizeof(value[0]) };
    struct slmp_session_key *key[2];
    for (unsigned k = 0; k < 2; k++) { /* 0: the key of the packets that the initiator sends */
        uint8_t names[8 * VALUES];
        value[VALUES - 1] = k;
        for (unsigned i = 0; i < sizeof(names); i++) {
            names[i] = (uint8_t)(value[i / 8] >> (56 - 8 * (i % 8)));
        }
        key[k] = slmp_mac_session_key(e->mac, names, sizeof(names));
    }
    slmp_auth_end(p);
    p->auth = calloc(1, sizeof(*p->auth));
    if (key[0] == NULL || key[1] == NULL || p->auth == NULL) {
        slmp_session_key_free(key[0]);
        slmp_session_key_free(key[1]);
        free(p->auth);
        p->auth = NULL;
        return false;
    }
    p->auth->out = key[!initiator];
    p->auth->in = key[initiator];
    return true;
}

/* ---- Packets of a session ---- */

static bool fresh(const struct slmp_auth *s, uint64_t number)
{
    return number >= s->top ||
           (s->top - number <= SLMP_REPLAY &&
            (s->seen[number / 64 % (SLMP_REPLAY / 64)] >> number % 64 & 1) == 0);
}

static void mark(struct slmp_auth *s, uint64_t number)
{
    if (number >= s->top) {
        if (number - s->top >= SLMP_REPLAY) {
            memset(s->seen, 0, sizeof(s->seen));
        } else {
            for (uint64_t i = s->top; i <= number; i++) {
                s->seen[i / 64 % (SLMP_REPLAY / 64)] &= ~(1ULL << i % 64);
            }
        }
        s->top = number + 1;
    }
    s->seen[number / 64 % (SLMP_REPLAY / 64)] |= 1ULL << number % 64;
}

bool slmp_auth_admit(struct slmp_peer *p, const struct slmp_wire *w, const uint8_t *packet)
{
    struct slmp *e = p->engine;
    uint8_t tag[SLMP_TAG];
    if (e->mac == NULL) {
        return true;
    }
    if (!w->tagged || w->number == UINT64_MAX) {
        slmp_drop(p, &e->counters.forged);
        return false;
    }
    if (!fresh(p->auth, w->number)) {
        slmp_drop(p, &e->counters.replayed);
        return false;
    }
    const struct iovec part[2] = {{(void *)(uintptr_t)packet, (size_t)(w->tag - packet)},
                                  {(void *)(uintptr_t)w->payload, w->payload_length}};
    if (!slmp_mac_tag(e->mac, p->auth->in, w->number, part, w->payload_length > 0 ? 2 : 1, tag) ||
        !slmp_tag_equal(tag, w->tag)) {
        slmp_drop(p, &e->counters.forged);
        return false;
    }
    mark(p->auth, w->number);
    return true;
}

void slmp_auth_number(struct slmp_peer *p, struct slmp_wire *w)
{
    if (p->auth != NULL) {
        w->tagged = true;
        w->cover = false;
        w->number = p->auth->number++;
    }
}

void slmp_auth_seal(struct slmp_peer *p, struct slmp_packet *packet, const struct slmp_wire *w)
{
    struct iovec part[1 + sizeof(packet->part) / sizeof(packet->part[0])];
    packet->to = p->address;
    packet->header_length = (uint16_t)slmp_wire_write(w, packet->header);
    packet->length = packet->header_length;
    for (unsigned i = 0; i < packet->parts; i++) {
        packet->length += (uint32_t)packet->part[i].iov_len;
    }
    if (w->tagged) {
        uint8_t *tag = packet->header + packet->header_length - SLMP_TAG;
        part[0] = (struct iovec){packet->header, packet->header_length - (size_t)SLMP_TAG};
        memcpy(&part[1], packet->part, packet->parts * sizeof(part[0]));
        slmp_mac_tag(p->engine->mac, p->auth->out, w->number, part, 1u + packet->parts, tag);
        p->auth->sent[w->number % SLMP_SENT] = first_of(tag);
    } else if (w->cover) {
        slmp_wire_seal(packet->header, packet->header_length, packet->part, packet->parts);
    }
}
