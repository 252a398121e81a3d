/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the valid word most like one that the user wrote; see nearest.h. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 48 };

struct nearest nearest_to(const char *word, size_t length)
{
    return (struct nearest){.word = word, .length = length};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein distance of two words, computed row by row; only the last three rows are
 * kept. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

void nearest_try(struct nearest *n, const char *right)
{
    size_t length = strlen(right);
    if (n->length > LONGEST || length > LONGEST) {
        return;
    }
    size_t d = distance(n->word, n->length, right, length);
    size_t most = length / 3 > 2 ? length / 3 : 2;
    if (d <= most && d < length && (n->found == NULL || d < n->distance)) {
        n->found = right;
        n->distance = d;
    }
}

const char *nearest_text(const struct nearest *n, char text[80])
{
    text[0] = '\0';
    if (n->found != NULL) {
        snprintf(text, 80, "; did you mean %s?", n->found);
    }
    return text;
}
