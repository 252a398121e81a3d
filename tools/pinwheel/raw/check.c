/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel raw check`: reads rules, says what they have become, and compares their executions on
 * random frames: the reference, the instructions in the interpreter, and the kernel, if this
 * process may ask it.
 */
#include "commands.h"
#include "pinwheel/util/args.h"
#include "raw/rules/prove.h"
#include "raw/source/bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_FRAMES = 100, TABLE_SETS = 6 }; /* of a random table */

struct check {
    const char *path;
    uint64_t prove, seed;
    bool numbers, code, no_kernel;
};

#define AT(member) ARGS_AT(struct check, member)

static const struct args_option options[] = {
    {"--prove", "N", "compare the executions on N random frames; without RULES of random tables",
     ARGS_UNSIGNED, AT(prove)},
    {"--seed", "N", "another sequence of random frames (default 1)", ARGS_UNSIGNED, AT(seed)},
    {"--numbers", NULL, "print the rules in their numbers", ARGS_FLAG, AT(numbers)},
    {"--code", NULL, "print the instructions of the XDP program", ARGS_FLAG, AT(code)},
    {"--no-kernel", NULL, "do not ask the kernel", ARGS_FLAG, AT(no_kernel)},
};

/* What the kernel needs to run a program: its map of sockets, which stays empty. */
struct kernel {
    int sockets, counters, program;
    bool is_there;
};

static int run_in_kernel(void *context, const uint8_t *frame, size_t length, int *action,
                         int *verdict)
{
    const struct kernel *k = context;
    return raw_bpf_try(k->program, frame, length, action, verdict);
}

static void open_kernel(struct kernel *k, bool wanted)
{
    *k = (struct kernel){.sockets = -1, .counters = -1, .program = -1};
    if (!wanted) {
        return;
    }
    k->sockets = raw_bpf_map(BPF_MAP_TYPE_XSKMAP, "sockets", 4, RAW_SETS);
    k->counters = raw_bpf_map(BPF_MAP_TYPE_ARRAY, "counters", sizeof(struct raw_counter), RAW_SETS);
    k->is_there = k->sockets >= 0 && k->counters >= 0;
    if (!k->is_there) {
        fprintf(stderr,
                "pinwheel raw check: the kernel is not asked, it needs CAP_BPF and "
                "CAP_NET_ADMIN: %s\n",
                strerror(-(k->sockets < 0 ? k->sockets : k->counters)));
    }
}

static void close_kernel(const struct kernel *k)
{
    for (int i = 0; i < 3; i++) {
        int fd = (const int[]){k->sockets, k->counters, k->program}[i];
        if (fd >= 0) {
            close(fd);
        }
    }
}

/* Compiles a table, loads it into the kernel if that is there, and tries `count` frames. */
static int prove_table(struct raw_proof *p, const struct raw_rules *rules, struct kernel *k,
                       struct raw_dice *dice, uint64_t count)
{
    char log[1000];
    struct raw_code code;
    struct raw_code_maps maps = {.sockets = k->is_there ? k->sockets : 0,
                                 .counters = k->is_there ? k->counters : 0,
                                 .contexts = 1};
    int rc = raw_code_make(&code, rules, &maps);
    p->counts = true;
    if (rc == 0 && k->is_there) {
        k->program = raw_bpf_load(&code, 0, log, sizeof(log));
        rc = k->program < 0 ? k->program : 0;
        if (rc != 0) {
            fprintf(stderr, "pinwheel raw check: the kernel refuses the program: %s\n%s\n",
                    strerror(-rc), log);
        }
        p->kernel = run_in_kernel;
        p->context = k;
    }
    if (rc == 0) {
        rc = raw_prove(p, rules, &code, dice, count);
    }
    if (k->program >= 0) {
        close(k->program);
        k->program = -1;
    }
    raw_code_free(&code);
    return rc;
}

static int prove(const struct check *c, struct raw_rules *rules)
{
    struct raw_proof p = {0};
    struct raw_dice dice = {.key = c->seed};
    struct kernel k;
    uint64_t tables = 0;
    int rc = 0;
    open_kernel(&k, !c->no_kernel);
    if (c->path != NULL) {
        rc = prove_table(&p, rules, &k, &dice, c->prove);
        tables = 1;
    }
    for (; c->path == NULL && rc == 0 && p.frames < c->prove; tables++) {
        uint64_t left = c->prove - p.frames;
        raw_random_table(&dice, rules, TABLE_SETS);
        rc = prove_table(&p, rules, &k, &dice, left < TABLE_FRAMES ? left : TABLE_FRAMES);
    }
    close_kernel(&k);
    printf("%llu frames, %llu tables: %llu matched, %llu of these ended a message; %llu also in "
           "the kernel; %s\n",
           (unsigned long long)p.frames, (unsigned long long)tables, (unsigned long long)p.matched,
           (unsigned long long)p.ended, (unsigned long long)p.in_kernel,
           rc == 0  ? "no difference"
           : rc > 0 ? "a difference"
                    : "given up");
    if (rc != 0) {
        fprintf(stderr, "pinwheel raw check: %s\n", rc > 0 ? p.difference : strerror(-rc));
    }
    return rc == 0 ? 0 : 1;
}

static void print_code(const struct raw_code *code)
{
    for (size_t i = 0; i < code->count; i++) {
        const struct bpf_insn *n = &code->insn[i];
        printf("%4zu  %02x dst r%u src r%u off %d imm %d\n", i, n->code, n->dst_reg, n->src_reg,
               n->off, n->imm);
    }
}

/* Says what each set has become. */
static int describe(const struct check *c, const struct raw_rules *rules)
{
    struct raw_code code;
    struct raw_code_maps maps = {.sockets = 0, .counters = -1, .contexts = 1};
    int rc = raw_code_make(&code, rules, &maps);
    if (rc != 0) {
        fprintf(stderr, "pinwheel raw check: %s: %s\n", c->path,
                rc == -E2BIG ? "the program would be too long" : strerror(-rc));
        return 1;
    }
    for (unsigned s = 0; s < rules->count; s++) {
        const struct raw_set *set = &rules->set[s];
        printf("%2u %s: priority %u, %u conditions; ", s, set->name, set->priority, set->count);
        if (set->action != RAW_HANDLERS) {
            printf("%s\n", set->action == RAW_DISCARD ? "drops" : "passes to the kernel");
        } else if (set->ends == 0) {
            printf("each frame is a message\n");
        } else {
            printf("%u conditions end a message, %u words are its id\n", set->ends, set->ids);
        }
    }
    printf("%zu instructions\n", code.count);
    if (c->numbers) {
        size_t length = raw_rules_print(rules, NULL, 0);
        char *text = malloc(length + 1);
        if (text != NULL) {
            raw_rules_print(rules, text, length + 1);
            fputs(text, stdout);
        }
        free(text);
    }
    if (c->code) {
        print_code(&code);
    }
    raw_code_free(&code);
    return 0;
}

static int check(const struct check *c)
{
    char error[RAW_ERROR];
    struct raw_rules *rules = malloc(sizeof(*rules));
    int status = rules == NULL;
    if (rules != NULL && c->path != NULL) {
        if (raw_rules_load(rules, c->path, error) != 0) {
            fprintf(stderr, "pinwheel raw check: %s\n", error);
            status = 1;
        } else {
            status = describe(c, rules);
        }
    }
    if (status == 0 && c->prove > 0) {
        status = prove(c, rules);
    }
    free(rules);
    return status;
}

int raw_command_check(int argc, char **argv)
{
    struct check c = {.seed = 1};
    struct args a = {
        .command = "raw check",
        .operands = "[RULES]",
        .summary = "Reads rules, a file or one of the names icmp-echo, udp-echo, slmp, all.",
        ARGS_OPTIONS(options),
        .operand = &c.path,
    };
    int status = args_parse(&a, argc, argv, &c);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (c.path == NULL && c.prove == 0) {
        return args_error(&a, "name rules, or --prove N");
    }
    return check(&c);
}
