/* SPDX-License-Identifier: BSD-3-Clause */
/* Random tables and frames, and the comparison; see prove.h. */
#include "raw/rules/prove.h"

#include "raw/rules/interpret.h"
#include "sim/util/random.h"

#include <stdio.h>
#include <string.h>

uint64_t raw_dice(struct raw_dice *d)
{
    return goal_random(d->key, d->count++);
}

uint32_t raw_dice_below(struct raw_dice *d, uint32_t bound)
{
    return bound > 0 ? (uint32_t)goal_scale(raw_dice(d), bound - 1) : 0;
}

/* ---- Tables ---- */

static struct raw_rule random_rule(struct raw_dice *d)
{
    static const uint32_t masks[] = {UINT32_MAX, 0xffff0000, 0xff000000, 0x0000ffff, 0x000000ff,
                                     0x00ffff00, 0xfffffff0, 1,          0x80000000, 0};
    struct raw_rule r = {.little = raw_dice_below(d, 4) == 0};
    uint32_t kind = raw_dice_below(d, 12);
    r.mask = kind < 10 ? masks[kind] : (uint32_t)raw_dice(d);
    uint32_t place = raw_dice_below(d, 8) == 0 ? RAW_REACH - 3 : 60;
    r.offset = (uint16_t)raw_dice_below(d, place);
    r.start = (uint32_t)raw_dice(d) & r.mask;
    r.end = raw_dice_below(d, 2) == 0 ? r.start : (uint32_t)raw_dice(d);
    if (r.start > r.end) {
        uint32_t end = r.start;
        r.start = r.end;
        r.end = end;
    }
    return r;
}

static unsigned random_clauses(struct raw_dice *d, struct raw_clause *clause, unsigned most)
{
    unsigned count = 1 + raw_dice_below(d, most);
    for (unsigned c = 0; c < count; c++) {
        clause[c].count = raw_dice_below(d, 3) != 0 ? 1 : 1 + raw_dice_below(d, RAW_RULES);
        for (unsigned i = 0; i < clause[c].count; i++) {
            clause[c].rule[i] = random_rule(d);
        }
    }
    return count;
}

void raw_random_table(struct raw_dice *d, struct raw_rules *rules, unsigned sets)
{
    rules->count = 1 + raw_dice_below(d, sets);
    for (unsigned s = 0; s < rules->count; s++) {
        struct raw_set *set = &rules->set[s];
        *set = (struct raw_set){.line = s + 1};
        snprintf(set->name, sizeof(set->name), "set%u", s);
        set->count = random_clauses(d, set->clause, 4);
        uint32_t action = raw_dice_below(d, 8);
        set->action = action == 0 ? RAW_TO_KERNEL : action == 1 ? RAW_DISCARD : RAW_HANDLERS;
        if (set->action == RAW_HANDLERS) {
            set->ends = raw_dice_below(d, 2) == 0 ? 0 : random_clauses(d, set->end, 3);
        }
    }
}

/* ---- Frames ---- */

static void write_bits(const struct raw_rule *r, uint32_t value, uint8_t *frame, size_t length)
{
    for (unsigned i = 0; i < 4 && r->offset + i < length; i++) {
        unsigned shift = r->little ? 8 * i : 24 - 8 * i;
        uint8_t mask = (uint8_t)(r->mask >> shift), bits = (uint8_t)(value >> shift);
        frame[r->offset + i] = (uint8_t)((frame[r->offset + i] & ~mask) | (bits & mask));
    }
}

/* Makes one alternative of a clause true of the frame, if its bits allow that, or just not so. */
static void aim(struct raw_dice *d, const struct raw_clause *c, bool beside, uint8_t *frame,
                size_t length)
{
    const struct raw_rule *r = &c->rule[raw_dice_below(d, c->count)];
    uint32_t span = r->end - r->start;
    uint32_t value = r->start;
    switch (raw_dice_below(d, 4)) {
    case 0:
        value = r->end;
        break;
    case 1:
        value += (uint32_t)goal_scale(raw_dice(d), span);
        break;
    default:
        break;
    }
    if (beside) {
        uint32_t step = r->mask & (0 - r->mask); /* the least that the mask does not hide */
        value = raw_dice_below(d, 2) == 0 ? r->start - step : r->end + step;
    }
    write_bits(r, value, frame, length);
}

static void aim_all(struct raw_dice *d, const struct raw_clause *clause, unsigned count,
                    uint8_t *frame, size_t length)
{
    unsigned wrong = raw_dice_below(d, 4) == 0 ? raw_dice_below(d, count) : count;
    for (unsigned c = 0; c < count; c++) {
        aim(d, &clause[c], c == wrong, frame, length);
    }
}

size_t raw_random_frame(struct raw_dice *d, const struct raw_rules *rules, uint8_t *frame,
                        size_t most)
{
    uint32_t how = raw_dice_below(d, 16), span = (uint32_t)most - RAW_FRAME_LEAST + 1;
    uint32_t short_span = span < 60 ? span : 60;
    size_t length = RAW_FRAME_LEAST + raw_dice_below(d, how == 0 ? span : short_span);
    length += how > 8 && length + 200 <= most ? 200 : 0;
    for (size_t i = 0; i < length && i < RAW_REACH; i += 8) {
        uint64_t bytes = raw_dice(d);
        memcpy(frame + i, &bytes, length - i < 8 ? length - i : 8);
    }
    if (rules->count > 0 && how != 1) {
        const struct raw_set *set = &rules->set[raw_dice_below(d, rules->count)];
        aim_all(d, set->clause, set->count, frame, length);
        if (raw_dice_below(d, 2) == 0) {
            aim_all(d, set->end, set->ends, frame, length);
        }
    }
    if (how == 2) {
        frame[raw_dice_below(d, (uint32_t)(length < RAW_REACH ? length : RAW_REACH))] ^=
            (uint8_t)(1u << raw_dice_below(d, 8));
    }
    return length;
}

/* ---- The comparison ---- */

static void hex(char *text, size_t size, const uint8_t *bytes, size_t length)
{
    size_t at = 0;
    for (size_t i = 0; i < length && at + 3 < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%02x", bytes[i]);
    }
    text[at] = '\0';
}

static int differs(struct raw_proof *p, const char *who, int says, int reference,
                   const uint8_t *frame, size_t length)
{
    char bytes[140];
    hex(bytes, sizeof(bytes), frame, length < 64 ? length : 64);
    snprintf(p->difference, sizeof(p->difference),
             "%s says %d, the reference %d, of a frame of %zu bytes: %s", who, says, reference,
             length, bytes);
    return 1;
}

/* Whether the counters of the interpreter are those of one frame of the reference's set, or of
 * none. They are zeros again afterwards. */
static bool counted(struct raw_counter *counters, int reference, size_t length)
{
    struct raw_counter one = {1, length};
    bool right = true;
    if (reference != RAW_NONE) {
        right = memcmp(&counters[reference >> 1], &one, sizeof(one)) == 0;
        counters[reference >> 1] = (struct raw_counter){0};
    }
    for (unsigned s = 0; s < RAW_SETS; s++) {
        right = right && counters[s].frames == 0 && counters[s].bytes == 0;
    }
    return right;
}

int raw_prove_frame(struct raw_proof *p, const struct raw_rules *rules, const struct raw_code *code,
                    const uint8_t *frame, size_t length)
{
    static _Thread_local struct raw_counter counters[RAW_COUNTERS];
    int reference = raw_match(rules, frame, length), verdict, in_kernel;
    enum raw_action wanted = raw_action(rules, reference);
    int mark = wanted == RAW_HANDLERS ? reference : RAW_NONE; /* what is written before the frame */
    struct raw_interpreted run = {
        .frame = frame, .length = length, .sockets = 1, .counters = p->counts ? counters : NULL};
    if (raw_interpret(code, &run) != 0) {
        snprintf(p->difference, sizeof(p->difference),
                 "instruction %zu of %zu may not be run, for a frame of %zu bytes", run.broken,
                 code->count, length);
        return 1;
    }
    if (run.verdict != mark) {
        return differs(p, "the interpreter", run.verdict, mark, frame, length);
    }
    int action = wanted == RAW_DISCARD                        ? XDP_DROP
                 : wanted == RAW_TO_KERNEL || run.socket != 0 ? XDP_PASS
                                                              : XDP_REDIRECT;
    if (run.action != action) {
        return differs(p, "the action", run.action, action, frame, length);
    }
    if (p->counts && !counted(counters, reference, length)) {
        return differs(p, "the set counted", RAW_NONE, reference, frame, length);
    }
    int rc = p->kernel != NULL ? p->kernel(p->context, frame, length, &in_kernel, &verdict) : 1;
    if (rc < 0) {
        return rc;
    }
    if (rc == 0 && verdict != mark) {
        return differs(p, "the kernel", verdict, mark, frame, length);
    }
    action = wanted == RAW_DISCARD ? XDP_DROP : XDP_PASS;
    if (rc == 0 && in_kernel != action) {
        return differs(p, "the kernel's action", in_kernel, action, frame, length);
    }
    p->in_kernel += rc == 0;
    p->frames++;
    p->matched += reference != RAW_NONE;
    p->ended += reference != RAW_NONE && (reference & 1) != 0;
    return 0;
}

int raw_prove(struct raw_proof *p, const struct raw_rules *rules, const struct raw_code *code,
              struct raw_dice *d, uint64_t count)
{
    static _Thread_local uint8_t frame[RAW_FRAME_MOST];
    for (uint64_t i = 0; i < count; i++) {
        size_t length = raw_random_frame(d, rules, frame, sizeof(frame));
        int rc = raw_prove_frame(p, rules, code, frame, length);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}
