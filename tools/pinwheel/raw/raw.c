/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel raw`: handlers on the frames of ordinary interfaces. A new subcommand needs a file, a
 * line of commands.h and a line of the table.
 */
#include "base/options.h"
#include "commands.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/family.h"

#include <stdio.h>

const char *raw_command_folder(void)
{
    static struct options o;
    char error[512];
    if (o.text[OPT_SHM_DIR][0] == '\0' && options_load(&o, error, sizeof(error)) != 0) {
        fprintf(stderr, "pinwheel raw: %s\n", error);
        return "/dev/shm";
    }
    return o.text[OPT_SHM_DIR];
}

static const struct family_member members[] = {
    {"run", raw_command_run, "run handlers on the frames of an interface or a capture file"},
    {"serve", raw_command_serve, "own an interface for users without privilege"},
    {"check", raw_command_check, "what rules match; the XDP program; a proof that both agree"},
};

int command_raw(int argc, char **argv)
{
    static const struct family family = {
        .name = "raw",
        .summary = "Handlers on the frames of ordinary network interfaces.",
        .members = members,
        .count = sizeof(members) / sizeof(members[0]),
    };
    return family_run(&family, argc, argv);
}
