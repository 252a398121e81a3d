/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel hpu run`: runs a handler once, and writes its memory afterwards. */
#include "commands.h"

#include <errno.h>
#include <string.h>

/* Indices in hpu_job.own of the files that --packet-out and its like name. */
enum { PACKET_OUT, STATE_OUT, HOST_OUT, HANDLER_HOST_OUT, PEERS_OUT, MESSAGE_OUT, OUTS };

static const struct args_option run_options[] = {
    HPU_SETUP_OPTION_ROWS,
    HPU_JSON_ROW,
    {"--packet-out", "FILE", "write there what the packet holds afterwards", ARGS_TEXT,
     HPU_AT(own[PACKET_OUT])},
    {"--state-out", "FILE", "write there what HPU memory holds afterwards", ARGS_TEXT,
     HPU_AT(own[STATE_OUT])},
    {"--host-out", "FILE", "write there what the entry's memory holds afterwards", ARGS_TEXT,
     HPU_AT(own[HOST_OUT])},
    {"--handler-host-out", "FILE", "write there what handler_host_mem holds afterwards", ARGS_TEXT,
     HPU_AT(own[HANDLER_HOST_OUT])},
    {"--peers-out", "FILE", "write there what the peers hold afterwards", ARGS_TEXT,
     HPU_AT(own[PEERS_OUT])},
    {"--message-state-out", "FILE", "write there what the message's own memory holds afterwards",
     ARGS_TEXT, HPU_AT(own[MESSAGE_OUT])},
};

/* Returns the name of such an option; these options are the last ones of the table. */
static const char *out_name(int out)
{
    return run_options[sizeof(run_options) / sizeof(run_options[0]) - OUTS + (size_t)out].name;
}

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

/* Writes the memories for which files were named; returns 0 or 1. */
static int write_memories(const struct hpu_job *j)
{
    const struct hpu_host *host = &j->handler.host;
    const struct {
        const uint8_t *bytes;
        size_t size;
    } memory[] = {{j->packet, j->packet_size},           {j->state, j->state_size},
                  {host->entry.bytes, host->entry.size}, {host->handler.bytes, host->handler.size},
                  {host->peers.bytes, host->peers.size}, {host->message.bytes, host->message.size}};
    int rc = 0;
    for (int i = 0; i < OUTS; i++) {
        if (j->own[i] != NULL && write_memory(j->own[i], memory[i].bytes, memory[i].size) != 0) {
            rc = 1;
        }
    }
    return rc;
}

static int run(struct hpu_job *j, struct args *a)
{
    for (int i = HOST_OUT; i < OUTS && j->handler.name == NULL; i++) {
        if (j->own[i] != NULL) {
            return args_error(a, "%s: is for --handler NAME", out_name(i));
        }
    }
    if (hpu_job_open(j, "run") != 0) {
        return 1;
    }
    const struct rv32_result *r = hpu_job_run(j, "run", hpu_run_core, NULL);
    if (r == NULL) {
        return 1;
    }
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
    return write_memories(j) != 0 ? 1 : rc;
}

int hpu_command_run(int argc, char **argv)
{
    struct args a = {.command = "hpu run",
                     .operands = "IMAGE",
                     .summary =
                         "Runs one handler, or function, of an image for RV32 and says what it "
                         "returned, how many\ninstructions and cycles it took, and which calls it "
                         "made.",
                     ARGS_OPTIONS(run_options)};
    return hpu_job_command(&a, argc, argv, run);
}
