/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules as eBPF instructions of an XDP program, which the kernel runs for each frame of an
 * interface; made at run time, without a compiler.
 *
 *      frame ──► sets in order, the first that matches
 *                   │ none: XDP_PASS, the frame goes on to the kernel untouched
 *                   ▼
 *                counter of the set: one frame more, and its bytes
 *                   │ the set passes or drops: XDP_PASS, XDP_DROP
 *                   ▼
 *                verdict, 4 bytes, before the frame (XDP metadata)
 *                redirect to the socket of the frame's queue and the set's context;
 *                   if there is none: XDP_PASS
 *
 * For packet sockets the same becomes a program at the ingress of an interface (tcx), which drops
 * what matches, unless its set passes.
 *
 * Sockets are entries of an XSKMAP: queue * contexts + context.
 */
#ifndef RAW_CODE_H
#define RAW_CODE_H

#include <linux/bpf.h>

#include "raw/rules/rules.h"

/* What the program refers to. */
struct raw_code_maps {
    int sockets;  /* descriptor of the XSKMAP */
    int counters; /* descriptor of an array of struct raw_counter; -1: nothing is counted */
    const uint16_t *counter; /* the counter of each set; NULL: that of the set's index */
    unsigned contexts;       /* sockets of a queue: 1 or more */
    const uint8_t *context;  /* the context of each set, by index; NULL: 0 for all */
    bool tc;                 /* a program of the ingress; `sockets` and `context` are not used */
};

struct raw_code {
    struct bpf_insn *insn;
    size_t count, capacity;
};

enum { RAW_META = 4 }; /* bytes of the verdict before a frame */

/* raw_code_make() compiles a table. -ENOMEM; -E2BIG: it has more instructions than a jump reaches.
 * raw_code_free() frees the instructions; those of a code of zeros, too. */
int raw_code_make(struct raw_code *code, const struct raw_rules *rules,
                  const struct raw_code_maps *maps);
void raw_code_free(struct raw_code *code);

#endif
