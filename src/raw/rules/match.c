/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference matcher of rules.h: written to be read, not to be fast. */
#include "raw/rules/rules.h"

unsigned raw_mask_bytes(uint32_t mask, bool little)
{
    unsigned bytes = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t byte = little ? mask >> 8 * i : mask >> (24 - 8 * i);
        bytes = (byte & 0xff) != 0 ? i + 1 : bytes;
    }
    return bytes;
}

static uint32_t load(unsigned offset, bool little, const uint8_t *frame, size_t length)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < 4 && offset + i < length; i++) {
        word |= (uint32_t)frame[offset + i] << (little ? 8 * i : 24 - 8 * i);
    }
    return word;
}

bool raw_rule_true(const struct raw_rule *r, const uint8_t *frame, size_t length)
{
    if (r->offset + raw_mask_bytes(r->mask, r->little) > length) {
        return false;
    }
    uint32_t v = load(r->offset, r->little, frame, length) & r->mask;
    return r->start <= v && v <= r->end;
}

static bool all_true(const struct raw_clause *clause, unsigned count, const uint8_t *frame,
                     size_t length)
{
    for (unsigned c = 0; c < count; c++) {
        bool any = false;
        for (unsigned r = 0; r < clause[c].count; r++) {
            any = any || raw_rule_true(&clause[c].rule[r], frame, length);
        }
        if (!any) {
            return false;
        }
    }
    return true;
}

int raw_match_sets(const struct raw_set *sets, unsigned count, const uint8_t *frame, size_t length)
{
    for (unsigned s = 0; s < count; s++) {
        const struct raw_set *set = &sets[s];
        if (all_true(set->clause, set->count, frame, length)) {
            return raw_verdict(s, all_true(set->end, set->ends, frame, length));
        }
    }
    return RAW_NONE;
}

int raw_match(const struct raw_rules *rules, const uint8_t *frame, size_t length)
{
    return raw_match_sets(rules->set, rules->count, frame, length);
}

uint32_t raw_word_of(const struct raw_word *word, const uint8_t *frame, size_t length)
{
    return load(word->offset, false, frame, length) & word->mask;
}
