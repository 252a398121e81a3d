/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes, group and info of a window: what a genuine handle without memory would get wrong. */
#include "create.h"

#include <stdio.h>
#include <string.h>

#define OURS(name, ...)                                                                            \
    struct window *w = window_of(win);                                                             \
    if (w == NULL) {                                                                               \
        return real.name(__VA_ARGS__);                                                             \
    }

int PMPI_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag)
{
    OURS(Win_get_attr, win, keyval, value, flag)
    void *is = keyval == MPI_WIN_BASE            ? w->base
               : keyval == MPI_WIN_SIZE          ? (void *)&w->size
               : keyval == MPI_WIN_DISP_UNIT     ? (void *)&w->unit
               : keyval == MPI_WIN_CREATE_FLAVOR ? (void *)&w->flavor
               : keyval == MPI_WIN_MODEL         ? (void *)&w->model
                                                 : (void *)w;
    if (is == (void *)w) {
        return real.Win_get_attr(win, keyval, value, flag);
    }
    *(void **)value = is;
    *flag = 1;
    return MPI_SUCCESS;
}
ALSO_MPI(Win_get_attr);

int PMPI_Win_get_group(MPI_Win win, MPI_Group *group)
{
    OURS(Win_get_group, win, group)
    return PMPI_Group_union(w->group, MPI_GROUP_EMPTY, group);
}
ALSO_MPI(Win_get_group);

/* ---- Info ---- */

bool info_says(MPI_Info info, const char *key, const char *value)
{
    char text[64] = "";
    int flag = 0;
    return info != MPI_INFO_NULL &&
           PMPI_Info_get(info, key, sizeof(text) - 1, text, &flag) == MPI_SUCCESS && flag &&
           strcmp(text, value) == 0;
}

/* Hints that every window has. */
static const struct {
    const char *key, *value;
} hints[] = {
    {"no_locks", "false"},
    {"accumulate_ordering", "rar,raw,war,waw"},
    {"accumulate_ops", "same_op_no_op"},
    {"same_size", "false"},
    {"same_disp_unit", "false"},
};

/* Takes over the hints of another info. */
static int merge(MPI_Info to, MPI_Info from)
{
    int keys = 0, rc = PMPI_Info_get_nkeys(from, &keys);
    for (int i = 0; i < keys && rc == MPI_SUCCESS; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int flag = 0;
        rc = PMPI_Info_get_nthkey(from, i, key);
        rc = rc == MPI_SUCCESS ? PMPI_Info_get(from, key, MPI_MAX_INFO_VAL, value, &flag) : rc;
        if (rc == MPI_SUCCESS && flag) {
            rc = PMPI_Info_set(to, key, value);
        }
    }
    return rc;
}

void info_begin(struct window *w, MPI_Info info)
{
    if (PMPI_Info_create(&w->info) != MPI_SUCCESS) {
        w->info = MPI_INFO_NULL;
        return;
    }
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        PMPI_Info_set(w->info, hints[i].key, hints[i].value);
    }
    if (w->flavor == MPI_WIN_FLAVOR_ALLOCATE || w->flavor == MPI_WIN_FLAVOR_SHARED) {
        PMPI_Info_set(w->info, "alloc_shared_noncontig", "false");
    }
    if (info != MPI_INFO_NULL) {
        merge(w->info, info);
    }
}

int PMPI_Win_get_info(MPI_Win win, MPI_Info *info)
{
    OURS(Win_get_info, win, info)
    return PMPI_Info_dup(w->info, info);
}
ALSO_MPI(Win_get_info);

int PMPI_Win_set_info(MPI_Win win, MPI_Info info)
{
    OURS(Win_set_info, win, info)
    if (info == MPI_INFO_NULL) {
        return window_error(w, MPI_ERR_INFO, "MPI_Win_set_info: MPI_INFO_NULL");
    }
    return merge(w->info, info);
}
ALSO_MPI(Win_set_info);
