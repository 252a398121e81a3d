/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of TOML that a flat list of values needs, read strictly: `key = value` lines, comments,
 * strings of one line, numbers. Tables, lists, dates, escapes and keys with dots are refused by
 * name.
 */
#ifndef PINWHEEL_SIM_TOML_H
#define PINWHEEL_SIM_TOML_H

#include <stddef.h>

enum { TOML_KEY = 64, TOML_VALUE = 128 };

struct toml_line {
    unsigned number;        /* of the line, from 1 */
    char key[TOML_KEY];     /* as it stands there */
    char value[TOML_VALUE]; /* without quotation marks; of a number without underscores */
};

/* toml_next() reads from *at, before `end`, up to the next value, and moves *at behind its line;
 * the caller begins with line->number 0. 1: there is one, 0: there is none any more, -1: the line
 * is wrong, and *why says why. */
int toml_next(const char **at, const char *end, struct toml_line *line, const char **why);

#endif
