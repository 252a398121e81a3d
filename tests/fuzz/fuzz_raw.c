/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the text of rules. A table that is accepted is printed and read again as the same text,
 * compiles, and its executions agree on random frames and on the input itself as a frame.
 */
#include "fuzz.h"

#include "raw/rules/prove.h"

#include <string.h>

static char text[2][1 << 20];

static void try_table(const struct raw_rules *rules, const uint8_t *data, size_t size)
{
    static struct raw_rules again;
    char error[RAW_ERROR];
    size_t length = raw_rules_print(rules, text[0], sizeof(text[0]));
    MUST(length < sizeof(text[0]));
    MUST(raw_rules_parse(&again, "again", text[0], length, error) == 0);
    MUST(raw_rules_print(&again, text[1], sizeof(text[1])) == length);
    MUST(memcmp(text[0], text[1], length) == 0);
    struct raw_code code;
    struct raw_code_maps maps = {.counters = -1, .contexts = 1};
    MUST(raw_code_make(&code, rules, &maps) == 0);
    struct raw_dice d = {.key = size};
    struct raw_proof p = {0};
    MUST(raw_prove(&p, rules, &code, &d, 30) == 0);
    for (size_t n = 0; n <= size && n < 100; n++) {
        MUST(raw_prove_frame(&p, rules, &code, data, n) == 0);
    }
    raw_code_free(&code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct raw_rules rules;
    char error[RAW_ERROR] = "";
    if (raw_rules_parse(&rules, "input", (const char *)data, size, error) == 0) {
        try_table(&rules, data, size);
    } else {
        MUST(strncmp(error, "input:", 6) == 0);
    }
    return 0;
}
