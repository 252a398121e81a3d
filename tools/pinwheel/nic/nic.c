/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel nic`: looks into the NICs of running processes from outside. A look copies the stats
 * page of each NIC (nic/stats.h). All output is made from looks: a table, one NIC in full, JSON, or
 * the changes from second to second.
 */
#include "base/array.h"
#include "base/number.h"
#include "base/options.h"
#include "base/sys.h"
#include "fabric/shm/inspect.h"
#include "frames.h"
#include "handlers.h"
#include "nic/stats.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"
#include "print.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void see(void *arg, const struct segment_view *view)
{
    struct nic_look *l = arg;
    const struct nic_stats *stats = view->stats;
    if (l->process != 0 && view->process != l->process) {
        return;
    }
    if (__atomic_load_n(&stats->version, __ATOMIC_ACQUIRE) != STATS_VERSION) {
        return; /* the process is still opening it */
    }
    if (!ARRAY_ROOM(l->of, l->count, l->room, 16)) {
        l->failed = true;
        return;
    }
    struct nic_seen *s = &l->of[l->count++];
    s->view = *view;
    s->view.stats = NULL;
    memcpy(&s->stats, stats, sizeof(s->stats));
    s->stats.program[sizeof(s->stats.program) - 1] = '\0';
}

static void skipped(void *arg, const char *why)
{
    const struct nic_look *l = arg;
    if (!l->quiet) {
        fprintf(stderr, "pinwheel nic: left out: %s\n", why);
    }
}

/* Looks at all NICs; returns 0, or 1 after it has printed what went wrong. */
static int look(const struct options *o, struct nic_look *l)
{
    l->count = 0;
    l->at = clock_ns();
    l->cycles = __builtin_ia32_rdtsc();
    int rc = inspect_segments(o, see, skipped, l);
    if (rc != 0 || l->failed) {
        fprintf(stderr, "pinwheel nic: cannot look into PINWHEEL_SHM_DIR=%s: %s\n",
                o->text[OPT_SHM_DIR], strerror(rc != 0 ? -rc : ENOMEM));
        return 1;
    }
    return 0;
}

/* ---- Changes from look to look ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = 1;
}

static const struct nic_seen *find(const struct nic_look *l, const struct segment_view *v)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->of[i].view.incarnation == v->incarnation) {
            return &l->of[i];
        }
    }
    return NULL;
}

static void print_rates(const struct nic_look *before, const struct nic_look *now, bool terminal)
{
    char address[32], sent[16], received[16], out[16], in[16];
    double seconds = (double)(now->at - before->at) / 1e9;
    if (terminal) {
        printf("\033[H\033[J");
    }
    printf("%-22s %8s  %-16s %10s %10s %12s %12s %9s %8s\n", "NIC", "process", "program", "sent/s",
           "received/s", "bytes out/s", "bytes in/s", "dropped", "waited");
    for (size_t i = 0; i < now->count; i++) {
        static const struct nic_stats none;
        const struct nic_stats *b = &now->of[i].stats;
        const struct nic_seen *old = find(before, &now->of[i].view);
        const struct nic_stats *a = old != NULL ? &old->stats : &none;
        double sends =
            (double)(nic_sum(b->sent, STATS_MOVEMENTS) - nic_sum(a->sent, STATS_MOVEMENTS)) /
            seconds;
        double receipts = (double)(nic_sum(b->received, STATS_MOVEMENTS) -
                                   nic_sum(a->received, STATS_MOVEMENTS)) /
                          seconds;
        printf("%-22s %8d  %-16.16s %10s %10s %12s %12s %9" PRIu64 " %8" PRIu64 "\n",
               nic_address(&now->of[i].view, address), now->of[i].view.process, b->program,
               nic_number(sends, sent), nic_number(receipts, received),
               nic_number((double)(b->sent_bytes - a->sent_bytes) / seconds, out),
               nic_number((double)(b->received_bytes - a->received_bytes) / seconds, in),
               nic_dropped(b), b->waited);
        nic_handlers_rates(a, b, seconds, now->cycles - before->cycles);
    }
    if (now->count == 0) {
        printf("no NIC of yours is open on this host\n");
    }
    fflush(stdout);
}

static int top(const struct options *o, long interval_ms, long count)
{
    struct nic_look looks[2] = {0};
    bool terminal = isatty(STDOUT_FILENO);
    struct timespec pause = {interval_ms / 1000, interval_ms % 1000 * 1000000};
    /* without SA_RESTART, so that the signal ends the pause */
    struct sigaction end = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &end, NULL);
    int rc = look(o, &looks[0]);
    for (long n = 0; rc == 0 && (count == 0 || n < count); n++) {
        nanosleep(&pause, NULL);
        if (interrupted) {
            break;
        }
        struct nic_look *before = &looks[n % 2], *now = &looks[(n + 1) % 2];
        now->quiet = true;
        rc = look(o, now);
        if (rc == 0) {
            print_rates(before, now, terminal);
        }
    }
    free(looks[0].of);
    free(looks[1].of);
    return rc;
}

/* ---- The command ---- */

/* What is shown, and in which form. */
struct manner {
    const char *what; /* a process, or "top" */
    bool json, text;
    long memory; /* number of the context whose memory is dumped; 0: none */
    long interval, count;
};

#define AT(member) ARGS_AT(struct manner, member)

static const struct args_option nic_options[] = {
    {"--json", NULL, "print JSON", ARGS_FLAG, AT(json)},
    {"--text", NULL, "of a process: what its handlers have printed, HPU by HPU", ARGS_FLAG,
     AT(text)},
    {"--memory", "CONTEXT", "of a process: dump the HPU memory of that context", ARGS_NUMBER,
     AT(memory), 1, INT32_MAX},
    {"--interval", "MS", "top: time between two looks (default 1000)", ARGS_NUMBER, AT(interval), 1,
     3600000},
    {"--count", "N", "top: end after so many (default: go on)", ARGS_NUMBER, AT(count), 1,
     1000000000},
};

static int show_process(const struct nic_look *l, const struct manner *m)
{
    int rc = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (m->memory != 0) {
            rc |= nic_handlers_memory(l->process, &l->of[i].stats, (uint64_t)m->memory);
        } else if (m->text) {
            nic_handlers_text(&l->of[i].stats);
        } else {
            nic_print_full(&l->of[i]);
        }
    }
    return rc;
}

static int show(const struct options *o, int32_t process, const struct manner *m)
{
    struct nic_look l = {.process = process};
    const char *folder = o->text[OPT_SHM_DIR];
    int rc = look(o, &l);
    if (rc == 0 && process != 0 && l.count == 0 && !m->json &&
        nic_frames_print(folder, process) > 0) {
        free(l.of);
        return 0;
    }
    if (rc == 0 && process != 0 && l.count == 0 && !m->json) {
        fprintf(stderr,
                "pinwheel nic: process %d has no NIC open that we may look at; `pinwheel nic` "
                "lists those that have\n",
                process);
        rc = 1;
    } else if (rc == 0 && m->json) {
        rc = nic_print_json(&l, folder);
    } else if (rc == 0 && process != 0) {
        rc = show_process(&l, m);
    } else if (rc == 0) {
        nic_print_table(&l);
        (void)nic_frames_print(folder, 0);
    }
    free(l.of);
    return rc;
}

static int take_operand(struct args *a, void *into)
{
    struct manner *m = into;
    if (m->what != NULL) {
        return args_error(a, "one process, or top, and nothing behind it: what is \"%s\"?",
                          a->value);
    }
    m->what = a->value;
    return ARGS_GO_ON;
}

int command_nic(int argc, char **argv)
{
    struct args a = {.command = "nic",
                     .operands = "[PROCESS | top]",
                     .summary = "Looks into the NICs of running processes: of all of them in a "
                                "line each, of one process\n"
                                "in full, or at what passes through them, again and again.",
                     .take_operand = take_operand,
                     ARGS_OPTIONS(nic_options)};
    struct manner manner = {.interval = 1000};
    int64_t process = 0;
    int status = args_parse(&a, argc, argv, &manner);
    if (status != ARGS_GO_ON) {
        return status;
    }
    const char *what = manner.what;
    bool is_top = what != NULL && strcmp(what, "top") == 0;
    if (what != NULL && !is_top && !number_read(what, 1, INT32_MAX, &process)) {
        return args_error(&a, "\"%s\" is neither the number of a process nor top", what);
    }
    if ((manner.text || manner.memory != 0) && process == 0) {
        return args_error(&a, "--text and --memory go with the number of a process");
    }
    if (manner.json + manner.text + (manner.memory != 0) > 1) {
        return args_error(&a, "one of --json, --text and --memory at a time");
    }
    if (is_top && manner.json) {
        return args_error(&a, "top is for people; --json goes without it");
    }
    if ((args_given(&a, "--interval") || args_given(&a, "--count")) && !is_top) {
        return args_error(&a, "--interval and --count belong to top");
    }
    args_environment(a.command, environ);
    static struct options o; /* static because it is large */
    char error[512];
    if (options_load(&o, error, sizeof(error)) != 0) {
        fprintf(stderr, "pinwheel nic: %s\n", error);
        return 1;
    }
    return is_top ? top(&o, manner.interval, manner.count) : show(&o, (int32_t)process, &manner);
}
