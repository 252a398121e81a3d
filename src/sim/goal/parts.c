/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what operations of Portals consist of; see parts.h. */
#include "parts.h"

#include <inttypes.h>

/* ---- Numbers ---- */

int goal_read_u32(struct goal_scan *s, uint64_t most, const char *what, uint32_t *to)
{
    uint64_t n;
    if (goal_scan_number(s, most, what, &n) != 0) {
        return -1;
    }
    *to = (uint32_t)n;
    return 0;
}

int goal_read_bytes(struct goal_scan *s, uint64_t *bytes)
{
    if (goal_scan_number(s, UINT64_MAX, "a number of bytes", bytes) != 0) {
        return -1;
    }
    return goal_scan_take(s, "b") ? 0 : goal_scan_expected(s, s->at, "\"b\"");
}

int goal_read_rank(const struct goal_reading *r, bool any, uint32_t *peer)
{
    struct goal_scan *s = r->s;
    uint64_t n;
    goal_scan_blanks(s);
    const char *first = s->at;
    if (goal_scan_keyword(s, "self")) {
        *peer = r->rank;
        return 0;
    }
    if (any && goal_scan_take(s, "-1")) {
        *peer = GOAL_ANY;
        return 0;
    }
    if (goal_scan_number(s, UINT64_MAX, any ? "a rank, \"self\" or -1" : "a rank or \"self\"",
                         &n) != 0) {
        return -1;
    }
    if (n >= r->ranks) {
        return goal_scan_error(s, first, "rank %" PRIu64 " does not exist: ranks are 0 to %u", n,
                               r->ranks - 1);
    }
    *peer = (uint32_t)n;
    return 0;
}

int goal_read_counter(struct goal_scan *s, uint32_t *counter)
{
    return goal_read_u32(s, UINT32_MAX, "the number of a counter", counter);
}

/* Reads an amount of time: of the clock in ps, or of an HPU in cycles. */
static int read_time(struct goal_scan *s, uint64_t most, uint64_t *amount, bool *cycles)
{
    static const struct {
        const char *word;
        uint64_t ps;
    } units[] = {{"ps", 1}, {"ns", 1000}, {"us", 1000000}, {"c", 0}};
    goal_scan_blanks(s);
    const char *first = s->at;
    if (goal_scan_number(s, most, "what a handler takes, as 10ns or 45c (cycles)", amount) != 0) {
        return -1;
    }
    goal_scan_blanks(s);
    const char *unit = s->at;
    struct goal_word w = goal_scan_word(s);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (goal_word_is(&w, units[i].word)) {
            uint64_t ps = units[i].ps;
            *cycles = ps == 0;
            if (__builtin_mul_overflow(*amount, ps != 0 ? ps : 1, amount) || *amount > most) {
                return goal_scan_error(s, first, "a time too long: at most %" PRIu64 " ps", most);
            }
            return 0;
        }
    }
    return goal_scan_expected(
        s, unit,
        "a unit: ps, ns, us or c (cycles); a handler is what it takes, and no "
        "number of LogGOPSim's");
}

/* ---- Handlers ---- */

/* "40c+1c/4b" */
static int read_cost(struct goal_reading *r, uint8_t type)
{
    struct goal_scan *s = r->s;
    uint64_t base, more = 0, bytes = 0;
    bool cycles, also;
    if (read_time(s, INT64_MAX, &base, &cycles) != 0) {
        return -1;
    }
    if (goal_scan_take(s, "+")) {
        const char *first = s->at;
        if (read_time(s, UINT32_MAX, &more, &also) != 0) {
            return -1;
        }
        if (also != cycles) {
            return goal_scan_error(s, first,
                                   "cycles and time do not add up: both must be the same");
        }
        if (!goal_scan_take(s, "/")) {
            return goal_scan_expected(s, s->at, "\"/\" and a number of bytes");
        }
        first = s->at;
        if (goal_read_bytes(s, &bytes) != 0) {
            return -1;
        }
        if (bytes == 0 || bytes > UINT32_MAX) {
            return goal_scan_error(
                s, first, "so much for each 1 to 4294967295 bytes, not for %" PRIu64, bytes);
        }
    }
    r->handler = type;
    goal_add_part(r->b, type, base, (uint32_t)more, (uint32_t)bytes, cycles);
    return 0;
}

/* Reads a number of bytes, which a payload handler may leave out for its packet: then it is 0. */
static int read_packet(struct goal_reading *r, uint64_t *bytes)
{
    struct goal_scan *s = r->s;
    *bytes = 0;
    goal_scan_blanks(s);
    const char *first = s->at;
    if (r->handler != GOAL_PAYLOAD_HANDLER) {
        return goal_read_bytes(s, bytes);
    }
    if (s->at == s->end || !goal_is_digit(*s->at)) {
        return 0;
    }
    if (goal_read_bytes(s, bytes) != 0) {
        return -1;
    }
    return *bytes != 0 ? 0
                       : goal_scan_error(s, first,
                                         "a payload handler has at least 1 byte to move; "
                                         "without a number it is its packet");
}

/* Reads "[N b] to R [as T]"; a payload handler may leave the bytes out, for its packet. */
static int read_does_put(struct goal_reading *r, uint8_t type)
{
    struct goal_scan *s = r->s;
    uint64_t bytes = 0;
    uint32_t peer, tag = 0;
    if (read_packet(r, &bytes) != 0) {
        return -1;
    }
    if (!goal_scan_keyword(s, "to")) {
        return goal_scan_expected(s, s->at, "\"to\"");
    }
    if (goal_read_rank(r, false, &peer) != 0 ||
        (goal_scan_keyword(s, "as") && goal_read_u32(s, GOAL_ANY - 1, "a tag", &tag) != 0)) {
        return -1;
    }
    goal_add_part(r->b, type, bytes, peer, tag, false);
    return 0;
}

static int read_does(struct goal_reading *r, const struct goal_word *word)
{
    struct goal_scan *s = r->s;
    uint64_t n = 0;
    uint32_t counter = 0;
    if (goal_word_is(word, "put") || goal_word_is(word, "hostput")) {
        return read_does_put(r, goal_word_is(word, "put") ? GOAL_DOES_PUT : GOAL_DOES_HOST_PUT);
    }
    if (goal_word_is(word, "write")) {
        if (read_packet(r, &n) != 0) {
            return -1;
        }
        goal_add_part(r->b, GOAL_DOES_WRITE, n, 0, 0, false);
        return 0;
    }
    if (goal_read_counter(s, &counter) != 0) {
        return -1;
    }
    if (!goal_scan_keyword(s, "by")) {
        return goal_scan_expected(s, s->at, "\"by\"");
    }
    if (goal_scan_number(s, INT64_MAX, "an increment", &n) != 0) {
        return -1;
    }
    goal_add_part(r->b, GOAL_DOES_COUNT, n, 0, counter, false);
    return 0;
}

static bool is_deed(const struct goal_word *word)
{
    return goal_word_is(word, "put") || goal_word_is(word, "hostput") ||
           goal_word_is(word, "write") || goal_word_is(word, "count");
}

/* Reads a handler and what it does. */
int goal_read_handler(struct goal_reading *r, const struct goal_word *word, uint8_t type)
{
    struct goal_scan *s = r->s;
    if (type <= r->handler) {
        return goal_scan_error(s, word->at, "handlers come in the order hh, ph, ch, each once");
    }
    if (read_cost(r, type) != 0) {
        return -1;
    }
    for (;;) {
        goal_scan_blanks(s);
        const char *first = s->at;
        struct goal_word w = goal_scan_word(s);
        if (!is_deed(&w)) {
            s->at = first;
            return 0;
        }
        if (read_does(r, &w) != 0) {
            return -1;
        }
    }
}
