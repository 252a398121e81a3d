/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the words that would have been right, the one that is the most like what was written. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; /* as it was written, `length` bytes of it */
    size_t length;
    const char *found; /* NULL: none yet */
    size_t distance;   /* letters that are changed, left out, added, or stand the other way round */
};

/* nearest_to() begins a search, and nearest_try() looks at one more word that would be right. */
struct nearest nearest_to(const char *word, size_t length);
void nearest_try(struct nearest *n, const char *right);

/* nearest_text() writes "; did you mean RIGHT?", or nothing if no word is like it: more than a
 * third of the letters, and more than two, are others. */
const char *nearest_text(const struct nearest *n, char text[80]);

#endif
