/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of the rules of all users; see table.h. */
#include "raw/serve/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int table_read(struct table_part *part, const struct policy *policy, const char *text,
               size_t length, struct raw_rules *room, char error[RAW_ERROR])
{
    const struct policy_line *line = &policy->of[part->line];
    part->set = NULL;
    part->sets = 0;
    if (raw_rules_parse(room, "rules", text, length, error) != 0) {
        return -EINVAL;
    }
    if (room->count > line->sets) {
        snprintf(error, RAW_ERROR, "the rules have %u sets, line %u of the policy allows %u",
                 room->count, line->line, line->sets);
        return -ENOSPC;
    }
    int rc = policy_and(line, room->set, room->count, error);
    if (rc != 0) {
        return rc;
    }
    part->set = malloc(room->count * sizeof(*part->set));
    if (part->set == NULL) {
        snprintf(error, RAW_ERROR, "no memory for %u sets", room->count);
        return -ENOMEM;
    }
    memcpy(part->set, room->set, room->count * sizeof(*part->set));
    part->sets = room->count;
    return 0;
}

void table_free(struct table_part *part)
{
    free(part->set);
    part->set = NULL;
    part->sets = 0;
}

int table_join(struct raw_wanted *wanted, struct raw_rules *rules, const struct table_part *parts,
               unsigned count, unsigned contexts, char error[RAW_ERROR])
{
    *wanted = (struct raw_wanted){.rules = rules, .contexts = contexts};
    rules->count = 0;
    for (unsigned line = 0; line < POLICY_LINES; line++) {
        for (unsigned p = 0; p < count; p++) {
            for (unsigned s = 0; parts[p].line == line && s < parts[p].sets; s++) {
                if (rules->count == RAW_SETS) {
                    snprintf(error, RAW_ERROR,
                             "all users together have more than %d sets: ask when others have gone",
                             RAW_SETS);
                    return -ENOSPC;
                }
                wanted->context[rules->count] = (uint8_t)parts[p].context;
                wanted->counter[rules->count] = (uint16_t)rules->count;
                rules->set[rules->count++] = parts[p].set[s];
            }
        }
    }
    return 0;
}
