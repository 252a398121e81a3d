/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel hpu run`: one handler, once, and what became of its memory. */
#include "hpu_commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_PACKET_OUT = HPU_RUN_OPTIONS, RUN_STATE_OUT };

static const struct args_option run_options[] = {
    HPU_RUN_OPTION_ROWS,
    [RUN_PACKET_OUT] = {"--packet-out", "FILE", "write there what the packet holds afterwards"},
    [RUN_STATE_OUT] = {"--state-out", "FILE", "write there what HPU memory holds afterwards"},
};

static int write_memory(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    size_t n = f != NULL ? fwrite(bytes, 1, size, f) : 0;
    if (f == NULL || fclose(f) != 0 || n != size) {
        fprintf(stderr, "pinwheel hpu run: %s: %s\n", path, strerror(errno));
        return 1;
    }
    return 0;
}

static int run(struct hpu_job *j, struct args *a, const char **own)
{
    const char *packet_out = own[0], *state_out = own[1];
    if (hpu_job_open(j, "run") != 0) {
        return 1;
    }
    const struct rv32_result *r = rv32_core_call(&j->core, &j->call);
    int rc;
    if (j->json) {
        struct json to = {.to = stdout};
        json_open_object(&to, NULL);
        rc = hpu_result_json(j, r, &to);
        json_close_object(&to);
        rc = json_end(&to) != 0 ? 1 : rc;
    } else {
        rc = hpu_result_print(j, r);
    }
    if (packet_out != NULL && write_memory(packet_out, j->packet, j->packet_size) != 0) {
        rc = 1;
    }
    if (state_out != NULL && write_memory(state_out, j->state, j->state_size) != 0) {
        rc = 1;
    }
    return rc;
}

int hpu_command_run(int argc, char **argv)
{
    struct args a = {.command = "hpu run",
                     .operands = "IMAGE",
                     .summary =
                         "Runs one function of an image for RV32 and says what it returned, how "
                         "many\ninstructions and how many cycles it took.",
                     .options = run_options,
                     .count = sizeof(run_options) / sizeof(run_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    const char *out[2] = {NULL, NULL};
    return hpu_job_command(&a, HPU_RUN_OPTIONS, out, run);
}
