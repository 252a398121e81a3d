/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules: which frames of an interface run handlers, and which of these end a message. A table of
 * rules has sets, the first that matches a frame has it; no other frame is touched.
 *
 *      struct raw_rules ── set 0 ── clause AND clause AND ...     the frame matches
 *                       │            └─ rule OR rule OR ...
 *                       │       ── end: clause AND clause ...     it is its message's last frame
 *                       │       ── id: word, word ...             its message
 *                       ├─ set 1 ...
 *
 *      rule:  start <= (word & mask) <= end        word: 4 bytes of the frame at an offset
 *
 * What a set does with its frames is its action: handlers of a context have them, or, decided where
 * the rules are executed, the kernel has them (pass), or nobody (drop).
 *
 * A table comes from text (text.c), whose names of protocols and fields become rules. It has three
 * executions that must agree: raw_match(), the reference; the instructions of code.h in the kernel;
 * and these in the interpreter (interpret.h).
 *
 * Invariants:
 *  - A rule is false for a frame that does not have each byte that the mask selects.
 *  - Sets are ordered by priority, then by their place in the text: the lowest index wins.
 *  - A name of a protocol implies all that makes its fields lie where the text says: header length
 *    5 and no fragment for what is behind IPv4, the next header for what is behind IPv6. A frame
 *    with options, extension headers or another tag therefore does not match and is not touched.
 */
#ifndef RAW_RULES_H
#define RAW_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RAW_SETS = 64,      /* sets of a table */
    RAW_CLAUSES = 24,   /* clauses of a set, that many to match and that many to end */
    RAW_RULES = 8,      /* rules of a clause */
    RAW_IDS = 8,        /* words of a message's id */
    RAW_COUNTERS = 512, /* counters of sets (code.h) */
    RAW_REACH = 256,    /* a rule looks at the first so many bytes of a frame */
    RAW_NAME = 32,      /* bytes of a name with its NUL */
    RAW_ERROR = 256,    /* bytes of an error with its NUL */
    RAW_FRAME_LEAST = 14,
    RAW_FRAME_MOST = 9018
};

/* The word is read in network order; `little`: as a little-endian machine loads it. */
struct raw_rule {
    uint16_t offset; /* of the word; offset + raw_rule_bytes() <= RAW_REACH */
    bool little;
    uint32_t mask, start, end; /* start <= end */
};

struct raw_clause {
    unsigned count; /* 1 or more */
    struct raw_rule rule[RAW_RULES];
};

struct raw_word {
    uint16_t offset;
    uint32_t mask;
};

enum raw_action { RAW_HANDLERS, RAW_TO_KERNEL, RAW_DISCARD };

struct raw_set {
    char name[RAW_NAME];
    enum raw_action action; /* only sets for handlers have ends, ids and a context */
    char context[RAW_NAME]; /* execution context that has its frames; "" is the only one there is */
    unsigned priority;      /* lower goes first */
    unsigned line;          /* of the text */
    unsigned count, ends, ids;
    struct raw_clause clause[RAW_CLAUSES];
    struct raw_clause end[RAW_CLAUSES]; /* none: each frame is a message */
    struct raw_word id[RAW_IDS];
};

struct raw_rules {
    unsigned count;
    struct raw_set set[RAW_SETS];
};

/* What raw_match() and the instructions say of a frame: RAW_NONE, or the verdict of its set. */
enum { RAW_NONE = -1 };
static inline int raw_verdict(unsigned set, bool ends)
{
    return (int)(set << 1 | ends);
}

/* The frames and bytes that a set has matched. */
struct raw_counter {
    uint64_t frames, bytes;
};

/* raw_rule_bytes() returns how many bytes behind its offset a frame must have for a word of this
 * mask: up to the last that the mask selects. */
unsigned raw_mask_bytes(uint32_t mask, bool little);

bool raw_rule_true(const struct raw_rule *rule, const uint8_t *frame, size_t length);

/* raw_match() is the reference: the verdict of the first set that matches, or RAW_NONE;
 * raw_match_sets() the same of sets without a table around them. */
int raw_match(const struct raw_rules *rules, const uint8_t *frame, size_t length);
int raw_match_sets(const struct raw_set *sets, unsigned count, const uint8_t *frame, size_t length);

/* raw_action() returns what the set of a verdict does with its frames; RAW_NONE: RAW_TO_KERNEL. */
static inline enum raw_action raw_action(const struct raw_rules *rules, int verdict)
{
    return verdict == RAW_NONE ? RAW_TO_KERNEL : rules->set[(unsigned)verdict >> 1].action;
}

/* raw_word_of() returns the selected bits of a word of the frame; bytes beyond its end are 0. */
uint32_t raw_word_of(const struct raw_word *word, const uint8_t *frame, size_t length);

/* raw_rules_parse() reads the text of a table, `length` bytes; errors call it `name`. 0, or -1 with
 * the error "NAME:LINE: what is wrong". */
int raw_rules_parse(struct raw_rules *rules, const char *name, const char *text, size_t length,
                    char error[RAW_ERROR]);

/* raw_rules_known() returns the text of a table that has a name ("icmp-echo"), or NULL; its n-th
 * name is raw_rules_name(n), NULL behind the last. */
const char *raw_rules_known(const char *name);
const char *raw_rules_name(unsigned n);

/* raw_rules_load() reads the table in a file, or the one of a name that raw_rules_known() has. */
int raw_rules_load(struct raw_rules *rules, const char *path, char error[RAW_ERROR]);

/* raw_text_load() reads a file of text into *text, which the caller frees. 0, or -1 with the error
 * set. */
int raw_text_load(const char *path, char **text, size_t *length, char error[RAW_ERROR]);

/* raw_rules_print() writes the table as text that raw_rules_parse() reads as the same table: each
 * rule in its numbers. It returns the length that the text needs, like snprintf(). */
size_t raw_rules_print(const struct raw_rules *rules, char *text, size_t size);

#endif
