/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of rules as text, in numbers: what raw_rules_parse() reads as the same table. */
#include "raw/rules/rules.h"

#include <stdarg.h>
#include <stdio.h>

struct out {
    char *text;
    size_t size, length;
};

static void __attribute__((format(printf, 2, 3))) put(struct out *o, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = o->length < o->size ? o->size - o->length : 0;
    int n = vsnprintf(room > 0 ? o->text + o->length : NULL, room, format, list);
    o->length += n > 0 ? (size_t)n : 0;
    va_end(list);
}

static void put_clauses(struct out *o, const char *word, const struct raw_clause *clause,
                        unsigned count)
{
    for (unsigned c = 0; c < count; c++) {
        put(o, "    %s", word);
        for (unsigned i = 0; i < clause[c].count; i++) {
            const struct raw_rule *r = &clause[c].rule[i];
            put(o, "%sat %u%s mask 0x%x = 0x%x..0x%x", i > 0 ? " or " : "", r->offset,
                r->little ? " little" : "", r->mask, r->start, r->end);
        }
        put(o, "\n");
    }
}

static const char *raw_action_name(enum raw_action action)
{
    return action == RAW_TO_KERNEL ? " pass" : action == RAW_DISCARD ? " drop" : "";
}

size_t raw_rules_print(const struct raw_rules *rules, char *text, size_t size)
{
    struct out o = {text, size, 0};
    for (unsigned s = 0; s < rules->count; s++) {
        const struct raw_set *set = &rules->set[s];
        put(&o, "set %s priority %u", set->name, set->priority);
        if (set->context[0] != '\0') {
            put(&o, " context %s", set->context);
        }
        put(&o, "%s {\n", raw_action_name(set->action));
        put_clauses(&o, "", set->clause, set->count);
        put_clauses(&o, "end ", set->end, set->ends);
        for (unsigned i = 0; i < set->ids; i++) {
            put(&o, "%sat %u mask 0x%x", i > 0 ? ", " : "    message ", set->id[i].offset,
                set->id[i].mask);
        }
        put(&o, "%s}\n", set->ids > 0 ? "\n" : "");
    }
    return o.length;
}
