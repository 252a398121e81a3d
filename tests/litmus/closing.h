/* SPDX-License-Identifier: BSD-3-Clause */
/* What the meetings of closing.c are made of: a scene, calls on it, and ways to close it. */
#ifndef CLOSING_H
#define CLOSING_H

#include "portals4.h"
#include "spin.h"

#include <stdbool.h>

/* An interface with one object of each kind; puts go to itself. */
struct scene {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct, counted; /* `counted`: puts that the entry took */
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_handle_hpu_mem_t memory;
    ptl_process_t self;
};

enum { IS_NI = 1, IS_EQ = 2, IS_CT = 4, IS_MD = 8, IS_ME = 16, IS_HPU = 32, IS_WAIT = 64 };

/* A call, held up at a label. */
struct act {
    const char *name, *label;
    unsigned needs; /* IS_...: what it has found by then */
    int (*call)(struct scene *s);
    void (*before)(struct scene *s); /* what the thread does first, or NULL */
    int may; /* a code that it may give besides those of a bad handle, or one of these; of a wait
                that is to be aborted the only one */
};

/* A way to close what is named, and perhaps to open it again. */
struct way {
    const char *name;
    unsigned what; /* IS_...: what is gone then */
    bool again;    /* a scene is there then, as fresh as before */
    void (*close)(struct scene *s);
};

extern const struct act acts[]; /* each ends with one without a name */
extern const struct way ways[];

void scene_open(struct scene *s);
/* scene_entry() is an entry that takes everything, and counts puts in `counted`. */
ptl_me_t scene_entry(const struct scene *s);
/* scene_check() sees that nothing was done to a scene, and that it works. */
void scene_check(const struct scene *s, const struct scene *old);
_Noreturn void scene_fail(const char *what, int got);

#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != PTL_OK) {                                                                     \
            scene_fail(#call, code_);                                                              \
        }                                                                                          \
    } while (0)

#endif
