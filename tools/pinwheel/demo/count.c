/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain count with which the handlers' count is compared: one pass over the file, byte by byte.
 * To be independent it shares no code with handlers/textscan.c.
 */
#include "demo.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The word that is being read. A word that is too long to be kept whole is in no list, so its end
 * need not be kept. */
struct current {
    char text[TEXTSCAN_WORD_MAX + 2];
    size_t length;
};

static void end_word(const struct demo_options *o, struct current *word,
                     struct textscan_totals *totals)
{
    word->text[word->length] = '\0';
    for (unsigned w = 0; word->length > 0 && w < o->filter.count; w++) {
        if (tolower((unsigned char)word->text[0]) == tolower((unsigned char)o->words[w][0]) &&
            strcasecmp(word->text, o->words[w]) == 0) {
            totals->words[w]++;
        }
    }
    word->length = 0;
}

int demo_count(const struct demo_options *o, struct textscan_totals *totals)
{
    struct current word = {.length = 0};
    memset(totals, 0, sizeof(*totals));
    FILE *f = fopen(o->file, "re");
    if (f == NULL) {
        fprintf(stderr, "pinwheel demo: --file %s: %s\n", o->file, strerror(errno));
        return -1;
    }
    int c;
    while ((c = getc_unlocked(f)) != EOF) {
        totals->bytes[c]++;
        if (isalnum(c) || c >= 128) { /* in the "C" locale isalnum() is true for ASCII only */
            if (word.length < sizeof(word.text) - 1) {
                word.text[word.length++] = (char)c;
            }
        } else if (word.length > 0) {
            end_word(o, &word, totals);
        }
    }
    end_word(o, &word, totals);
    int failed = ferror(f);
    if (failed) {
        fprintf(stderr, "pinwheel demo: --file %s: %s\n", o->file, strerror(errno));
    }
    fclose(f);
    return failed ? -1 : 0;
}
