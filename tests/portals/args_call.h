/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function of portals4.h behind one signature, for the cases about arguments:
 * `struct args` has a field for each parameter that any of them takes, args_fill() makes all
 * of them good, and a case then spoils one.
 *
 * After a refused call args_nothing_done() checks that results were not written, no event
 * or count came, no memory changed, and that all objects are still there.
 */
#ifndef ARGS_CALL_H
#define ARGS_CALL_H

#include "suite.h"

/* What results are written to; filled with a pattern before each call. */
struct args_results {
    ptl_handle_any_t handle;
    ptl_pt_index_t index;
    ptl_event_t event;
    ptl_ct_event_t value;
    unsigned which;
    ptl_sr_value_t status;
    ptl_uid_t uid;
    ptl_process_t id;
    ptl_size_t map_size;
    ptl_process_t map[2];
    ptl_ni_limits_t limits;
};

struct args {
    /* handles */
    ptl_handle_ni_t ni;
    ptl_handle_any_t any, any2;
    ptl_handle_eq_t eq, eqs[2];
    ptl_handle_ct_t ct, cts[2];
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    /* structures */
    ptl_md_t md_desc;
    ptl_me_t me_desc;
    const ptl_md_t *md_at;
    const ptl_me_t *me_at;
    const ptl_handle_eq_t *eqs_at;
    const ptl_handle_ct_t *cts_at;
    const ptl_size_t *tests_at;
    const ptl_process_t *map_at;
    ptl_size_t tests[2];
    ptl_process_t map[3];
    ptl_iovec_t iovec[2];
    /* numbers */
    ptl_interface_t iface;
    unsigned options; /* of PtlNIInit, PtlPTAlloc */
    ptl_pid_t pid;
    unsigned reg;
    ptl_size_t count; /* of PtlEQAlloc, PtlSetMap, PtlGetMap */
    ptl_pt_index_t pt;
    ptl_list_t list;
    ptl_search_op_t search;
    unsigned size; /* of arrays that are polled */
    ptl_time_t timeout;
    ptl_size_t test;
    ptl_ct_event_t value;
    struct suite_move move;
    /* where results go */
    ptl_handle_any_t *handle_out;
    ptl_pt_index_t *index_out;
    ptl_event_t *event_out;
    ptl_ct_event_t *value_out;
    unsigned *which_out;
    ptl_sr_value_t *status_out;
    ptl_uid_t *uid_out;
    ptl_process_t *id_out, *map_out;
    ptl_size_t *map_size_out;
    ptl_ni_limits_t *limits_out;
    void *user_ptr;
};

struct args_call {
    const char *name;
    int (*go)(const struct args *a);
    unsigned kinds; /* where it can succeed */
    int good;       /* what it gives with good arguments; NO_CODE: it returns none */
};

enum { NO_CODE = -1 };
enum { FREE_PT = 9, UNUSED_PT = 10 }; /* an index without entries; one not allocated */

/* In the order of the header. */
extern const struct args_call args_calls[];
extern const int args_call_count;
const struct args_call *args_find(const char *name);

extern struct args_results args_results;
extern unsigned char args_from[4096], args_to[4096];

/* args_fill() makes objects and good arguments for a call; a SELF scene. */
void args_fill(struct scene *s, const struct args_call *call, struct args *a);

/* args_refused() makes the call, which must give `expected` and do nothing. */
void args_refused(struct scene *s, const struct args_call *call, const struct args *a,
                  int expected);

/* Objects of another interface of this process. */
struct args_other {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
};
const struct args_other *args_other(struct scene *s);

#endif
