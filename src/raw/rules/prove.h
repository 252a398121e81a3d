/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and tables of rules at random, and whether the executions of a table agree on a frame
 * (rules.h): the reference, the instructions in the interpreter, and in the kernel where that may
 * be asked.
 */
#ifndef RAW_PROVE_H
#define RAW_PROVE_H

#include "raw/rules/code.h"

/* A sequence of random numbers, the same on every machine. */
struct raw_dice {
    uint64_t key, count;
};

uint64_t raw_dice(struct raw_dice *d);
uint32_t raw_dice_below(struct raw_dice *d, uint32_t bound); /* 0 ... bound - 1; bound 0: 0 */

/* raw_random_table() makes a table of 1 to `sets` sets; raw_random_frame() a frame of
 * RAW_FRAME_LEAST to `most` bytes, most often one that a set of the table matches, or would but for
 * one bit or byte. It returns the length. */
void raw_random_table(struct raw_dice *d, struct raw_rules *rules, unsigned sets);
size_t raw_random_frame(struct raw_dice *d, const struct raw_rules *rules, uint8_t *frame,
                        size_t most);

struct raw_proof {
    /* kernel() runs the program on a frame, with no sockets to redirect to, and stores its action
     * and verdict; 1: it cannot run this frame; negative errno. NULL: the kernel is not asked. */
    int (*kernel)(void *context, const uint8_t *frame, size_t length, int *action, int *verdict);
    void *context;
    bool counts;                                /* the program counts, by the sets' indices */
    uint64_t frames, matched, ended, in_kernel; /* what was tried so far */
    char difference[RAW_ERROR];                 /* of the first frame that differs */
};

/* raw_prove_frame() compares the verdicts of all. 0; 1: they differ, and the text says how;
 * a negative errno of kernel(). */
int raw_prove_frame(struct raw_proof *p, const struct raw_rules *rules, const struct raw_code *code,
                    const uint8_t *frame, size_t length);

/* raw_prove() tries `count` random frames on a table, up to the first difference. */
int raw_prove(struct raw_proof *p, const struct raw_rules *rules, const struct raw_code *code,
              struct raw_dice *d, uint64_t count);

#endif
