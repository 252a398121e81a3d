/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and standard output that `pinwheel sim` writes; see outputs.h. */
#include "outputs.h"

#include "pinwheel/util/plot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool can(const char *option, const char *path)
{
    FILE *f = fopen(path, "ae");
    if (f == NULL || fclose(f) != 0) {
        fprintf(stderr, "pinwheel sim: %s %s: %s\n", option, path, strerror(errno));
        return false;
    }
    return true;
}

bool outputs_can(const char *option, const char *path, bool data)
{
    char beside[PATH_MAX];
    if (path == NULL) {
        return true;
    }
    if (data && !plot_data_path(path, beside, sizeof(beside))) {
        fprintf(stderr, "pinwheel sim: %s %s: the name is too long\n", option, path);
        return false;
    }
    return can(option, path) && (!data || can(option, beside));
}

int outputs_end(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    fprintf(stderr, "pinwheel sim: standard output cannot be written: %s\n", strerror(errno));
    return status != 0 ? status : 1;
}
