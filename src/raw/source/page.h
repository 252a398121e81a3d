/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process that has frames shows to `pinwheel nic`: a page in the folder of the segments
 * (PINWHEEL_SHM_DIR), a file that its user alone may read. The process holds a lock on it, by which
 * others know that it lives; who finds it without one removes it.
 */
#ifndef RAW_PAGE_H
#define RAW_PAGE_H

#include "raw/source/source.h"

enum { RAW_PAGE_VERSION = 1 };

struct raw_page_context {
    char name[RAW_NAME];
    uint32_t used, sets;
    /* of `raw serve`: whose it is */
    uint32_t user;
    int32_t user_process;
    uint64_t matched; /* frames that rules matched: those below, and those that were lost */
    uint64_t frames;  /* that handlers ran on, or that the user was handed */
    uint64_t sent, passed;
    uint64_t dropped; /* by handlers; or since the user's ring was full */
    uint64_t faults;  /* of handlers; or what the user may not send, or has written wrongly */
    uint64_t lost;    /* before they were read */
};

struct raw_page {
    uint32_t version;
    int32_t process;
    int64_t opened;   /* seconds since 1970 */
    char command[16]; /* "run", "serve" */
    char source[64];  /* "eth0" */
    uint32_t contexts;
    struct raw_page_context context[RAW_CONTEXTS];
};

/* raw_page_show() makes the page, whose head the caller has filled but for version, process and
 * time, and returns it; NULL, with the error set: it cannot. raw_page_hide() removes it. What the
 * caller changes in the page others see. */
struct raw_page *raw_page_show(const char *folder, const char *command, const char *source,
                               char error[RAW_ERROR]);
void raw_page_hide(struct raw_page *page, const char *folder);

/* raw_page_each() calls see() with a copy of each page of a living process. 0, or -errno of the
 * folder. */
int raw_page_each(const char *folder, void (*see)(void *arg, const struct raw_page *page),
                  void *arg);

#endif
