/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, of the words that are valid, the one most like the word that the user wrote. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; /* the user's word: `length` bytes, with no NUL behind them */
    size_t length;
    const char *found; /* the valid word that is nearest so far; NULL: none is near enough */
    /* edits from `word` to `found`: letters changed, left out, added, or two neighbours swapped */
    size_t distance;
};

/* nearest_to() begins a search for the user's word; nearest_try() compares it with one valid
 * word. */
struct nearest nearest_to(const char *word, size_t length);
void nearest_try(struct nearest *n, const char *right);

/* nearest_text() writes "; did you mean RIGHT?", or nothing if no valid word is near. A word is not
 * near if more than two letters, and more than a third of its letters, differ. */
const char *nearest_text(const struct nearest *n, char text[80]);

#endif
