/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel hpu trace`: prints each instruction that a handler executes. */
#include "commands.h"

#include <inttypes.h>

static const struct args_option trace_options[] = {
    HPU_SETUP_OPTION_ROWS,
    HPU_JSON_ROW,
    {"--count", "N", "print the first N instructions only", ARGS_NUMBER, HPU_AT(most), 0,
     INT64_MAX},
};

struct tracer {
    const struct hpu_job *job;
    struct json *json; /* NULL: print lines */
    uint64_t seen, most;
};

static enum rv32_turn tell(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    struct tracer *t = context;
    if (t->seen++ >= t->most) {
        return RV32_GO_ON;
    }
    char text[RV32_TEXT], where[160];
    struct rv32_insn i = rv32_program_insn(&t->job->code.image.code, pc);
    rv32_disassemble(&i, pc, text);
    hpu_where(t->job, pc, where, sizeof(where));
    const struct rv32_traits *traits = &rv32_traits[i.op];
    uint32_t offset = traits->class == RV32_CLASS_AMO ? 0 : (uint32_t)i.imm;
    uint32_t address = core->x[i.rs1] + offset;
    if (t->json != NULL) {
        json_open_object(t->json, NULL);
        json_unsigned(t->json, "cycle", cycles);
        json_unsigned(t->json, "pc", pc);
        json_string(t->json, "instruction", text);
        json_string(t->json, "where", where);
        if (traits->bytes > 0) {
            json_unsigned(t->json, "address", address);
        }
        json_close_object(t->json);
        return RV32_GO_ON;
    }
    printf("%8" PRIu64 "  %08x  %0*x%*s  %-28s  %s", cycles, pc, 2 * i.length, i.bits,
           8 - 2 * i.length, "", text, where);
    if (traits->bytes > 0) {
        printf("  [%08x]", address);
    }
    putchar('\n');
    return RV32_GO_ON;
}

static const struct rv32_result *run_core(void *context, struct rv32_core *core,
                                          const struct rv32_call *call)
{
    return rv32_core_trace(core, call, tell, context);
}

static int trace(struct hpu_job *j, struct args *a)
{
    struct json to = {.to = stdout};
    struct tracer t = {.job = j, .json = j->json ? &to : NULL, .most = (uint64_t)j->most};
    if (hpu_job_open(j, "trace") != 0) {
        return 1;
    }
    if (!j->json) {
        const struct rv32_result *r = hpu_job_run(j, "trace", run_core, &t);
        return r != NULL ? hpu_result_print(j, r) : 1;
    }
    json_open_object(&to, NULL);
    json_open_array(&to, "trace");
    const struct rv32_result *r = hpu_job_run(j, "trace", run_core, &t);
    json_close_array(&to);
    int rc = r != NULL ? hpu_result_json(j, r, &to) : 1;
    json_close_object(&to);
    return json_end(&to) != 0 ? 1 : rc;
}

int hpu_command_trace(int argc, char **argv)
{
    struct args a = {.command = "hpu trace",
                     .operands = "IMAGE",
                     .summary =
                         "Runs one handler, or function, of an image for RV32 and prints each "
                         "instruction: the cycle in\nwhich it begins, where it stands, what it is, "
                         "what memory it "
                         "accesses.",
                     ARGS_OPTIONS(trace_options)};
    return hpu_job_command(&a, argc, argv, trace);
}
