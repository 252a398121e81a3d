/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a command and looking at what it did: for the tests of this folder. */
#ifndef TESTS_BOOT_OUTCOME_H
#define TESTS_BOOT_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OUTCOME_TEXT = 1 << 20 };

/* A command under way, then what became of it. */
struct outcome {
    pid_t pid;
    int to_in, from_out, from_err;
    int status; /* exit status, or 1000 + signal */
    size_t out_length, err_length;
    char out[OUTCOME_TEXT], err[OUTCOME_TEXT];
};

/* outcome_start() starts argv (NULL-terminated) with pipes for its standard
 * descriptors. */
void outcome_start(struct outcome *o, const char *const *argv);

/* outcome_await() reads until `text` has appeared `times` times in its output;
 * false if the output ends before. */
bool outcome_await(struct outcome *o, const char *text, int times);

/* outcome_end() closes the command's standard input, reads its output to the
 * end, which comes only when nobody holds it open, and waits for it. */
void outcome_end(struct outcome *o);

/* process_ended() waits up to 10 s until there is no process `pid`, or only its
 * zombie. */
bool process_ended(pid_t pid);

#endif
