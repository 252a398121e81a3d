/* SPDX-License-Identifier: BSD-3-Clause */
/* The fixture of fabric_fixture.h with a folder of its own for segments; one that a test leaves in
 * it is a failure. */
#ifndef FABRIC_FOLDER_H
#define FABRIC_FOLDER_H

#include "fabric_fixture.h"

#include <unistd.h>

static char directory[] = "/dev/shm/pinwheel-test-XXXXXX";

static int set_up_folder(void **state)
{
    char error[512] = "";
    if (set_up(state) != 0 || mkdtemp(directory) == NULL) {
        return -1;
    }
    setenv("PINWHEEL_SHM_DIR", directory, 1);
    return options_load(&options, error, sizeof(error));
}

static int tear_down_folder(void **state)
{
    return tear_down(state) | rmdir(directory);
}

#endif
