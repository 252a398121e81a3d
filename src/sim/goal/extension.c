/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals and sPIN operations of GOAL; see extension.h.
 *
 * LogGOPSim's documents and programs differ in the order of an operation's parts. So an operation
 * is read as a head, which is fixed, and parts in any order, one of which may be required.
 */
#include "extension.h"

#include <stdio.h>

enum argument { NO_NUMBER, NUMBER, PERHAPS_NUMBER, NUMBER_BYTES, NUMBER_OR_ANY, RANK_OR_SELF };

enum { ADDRESSED = 1, APPENDED = 2, TRIGGERED = 4, COUNTED = 8, PLACED = 16 };

/* The parts: each is a word, the argument behind it, and the kinds of operations that may have
 * it. */
static const struct part {
    const char *word;
    enum argument argument;
    unsigned kinds;
} parts[] = {
    {"to", RANK_OR_SELF, ADDRESSED},
    {"from", RANK_OR_SELF, ADDRESSED},
    {"to", NO_NUMBER, APPENDED}, /* a list */
    {"priority_list", NO_NUMBER, APPENDED},
    {"overflow_list", NO_NUMBER, APPENDED},
    {"hh", NUMBER, APPENDED},
    {"ph", NUMBER, APPENDED},
    {"ch", NUMBER, APPENDED},
    {"mem", NUMBER, APPENDED},
    {"allowed", NUMBER_OR_ANY, APPENDED},
    {"use_once", NO_NUMBER, APPENDED},
    {"arg1", NUMBER, ADDRESSED | APPENDED},
    {"arg2", NUMBER, ADDRESSED | APPENDED},
    {"arg3", NUMBER, ADDRESSED | APPENDED},
    {"arg4", NUMBER, ADDRESSED | APPENDED},
    {"ct", NUMBER, ADDRESSED | APPENDED},
    {"tag", NUMBER_OR_ANY, ADDRESSED | APPENDED},
    {"when", PERHAPS_NUMBER, TRIGGERED}, /* "when 3 reaches 1", "when ct 3 reaches 1" */
    {"reaches", NUMBER, TRIGGERED},
    {"for", NUMBER, COUNTED},
    {"cpu", NUMBER, ADDRESSED | APPENDED | COUNTED | PLACED},
    {"nic", NUMBER, ADDRESSED | APPENDED | PLACED},
};

static const struct operation {
    const char *word;
    enum argument head; /* argument behind the operation's word */
    const char *needed; /* a part that the operation must have; NULL: none */
    unsigned kinds;
} operations[] = {
    {"put", NUMBER_BYTES, "to", ADDRESSED},
    {"get", NUMBER_BYTES, "from", ADDRESSED},
    {"append", NUMBER_BYTES, "allowed", APPENDED},
    {"tput", NUMBER_BYTES, "reaches", ADDRESSED | TRIGGERED},
    {"tget", NUMBER_BYTES, "reaches", ADDRESSED | TRIGGERED},
    {"tappend", NUMBER_BYTES, "reaches", APPENDED | TRIGGERED},
    {"test", NUMBER, "for", COUNTED},
    {"calcgem5", NUMBER, NULL, PLACED},
};

static const struct operation *find(const struct goal_word *word)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (goal_word_is(word, operations[i].word)) {
            return &operations[i];
        }
    }
    return NULL;
}

bool goal_extension_is(const struct goal_word *word)
{
    return find(word) != NULL;
}

static int read_argument(struct goal_scan *s, enum argument a)
{
    uint64_t n;
    goal_scan_blanks(s);
    if (a == NO_NUMBER || (a == NUMBER_OR_ANY && goal_scan_take(s, "-1")) ||
        (a == RANK_OR_SELF && goal_scan_take(s, "self")) ||
        (a == PERHAPS_NUMBER && (s->at == s->end || !goal_is_digit(*s->at)))) {
        return 0;
    }
    if (goal_scan_number(s, UINT64_MAX, "a number", &n) != 0) {
        return -1;
    }
    if (a == NUMBER_BYTES && !goal_scan_take(s, "b")) {
        return goal_scan_expected(s, s->at, "\"b\"");
    }
    return 0;
}

/* Reads one part; sets *found if it is the part that the operation must have. */
static int read_part(struct goal_scan *s, const struct operation *o, bool *found)
{
    const char *first = s->at;
    struct goal_word w = goal_scan_word(s);
    char what[512];
    int n = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if ((parts[i].kinds & o->kinds) == 0) {
            continue;
        }
        if (goal_word_is(&w, parts[i].word)) {
            *found |= o->needed != NULL && strcmp(o->needed, parts[i].word) == 0;
            return read_argument(s, parts[i].argument);
        }
        n += snprintf(what + n, sizeof(what) - (size_t)n, "\"%s\", ", parts[i].word);
    }
    snprintf(what + n, sizeof(what) - (size_t)n, "or the end of the line");
    return goal_scan_expected(s, first, what);
}

int goal_extension_refuse(struct goal_scan *s, const struct goal_word *word)
{
    const struct operation *o = find(word);
    bool found = o->needed == NULL;
    if (read_argument(s, o->head) != 0) {
        return -1;
    }
    if (strcmp(o->word, "calcgem5") == 0 && read_argument(s, NUMBER_BYTES) != 0) {
        return -1;
    }
    for (;;) {
        const char *end = s->at;
        uint64_t line = s->line;
        if (goal_scan_line_end(s)) {
            s->line = line;
            if (!found) {
                char what[32];
                snprintf(what, sizeof(what), "\"%s\"", o->needed);
                return goal_scan_expected(s, end, what);
            }
            return goal_scan_error(s, word->at,
                                   "\"%s\" is an operation of Portals and sPIN; it needs the "
                                   "simulated NIC, which does not exist yet",
                                   o->word);
        }
        if (read_part(s, o, &found) != 0) {
            return -1;
        }
    }
}
