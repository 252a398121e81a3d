/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel nic`: looks into the NICs of running processes from outside. A look copies the
 * board of each (nic/board.h); what is printed, as a table, in full, as JSON or as what
 * changes from second to second, comes from looks alone.
 */
#include "base/options.h"
#include "base/sys.h"
#include "fabric/shm/inspect.h"
#include "handlers.h"
#include "nic/board.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NIC_JSON, NIC_TEXT, NIC_MEMORY, NIC_INTERVAL, NIC_COUNT };

static const struct args_option nic_options[] = {
    [NIC_JSON] = {"--json", NULL, "print JSON"},
    [NIC_TEXT] = {"--text", NULL, "of a process: what its handlers have printed, HPU by HPU"},
    [NIC_MEMORY] = {"--memory", "CONTEXT", "of a process: dump the HPU memory of that context"},
    [NIC_INTERVAL] = {"--interval", "MS", "top: time between two looks (default 1000)"},
    [NIC_COUNT] = {"--count", "N", "top: end after so many (default: go on)"},
};

static const char *const kind_names[BOARD_KINDS] = {"matching, logical", "non-matching, logical",
                                                    "matching, physical", "non-matching, physical"};
static const char *const movement_names[BOARD_MOVEMENTS] = {"puts", "gets", "atomics", "fetches"};
static const char *const register_names[PTL_SR_LAST] = {
    [PTL_SR_DROP_COUNT] = "dropped",
    [PTL_SR_PERMISSION_VIOLATIONS] = "permission_violations",
    [PTL_SR_OPERATION_VIOLATIONS] = "operation_violations"};

struct seen {
    struct segment_view view;
    struct nic_board board;
};

/* All NICs at one moment. */
struct look {
    struct seen *of;
    size_t count, room;
    int64_t at;      /* clock_ns(), */
    uint64_t cycles; /* and the time stamp counter */
    int32_t process; /* only this one's; 0: all */
    bool failed;     /* memory is short */
    bool quiet;      /* nobody is told again why one was left out */
};

static void see(void *arg, const struct segment_view *view)
{
    struct look *l = arg;
    const struct nic_board *board = view->board;
    if (l->process != 0 && view->process != l->process) {
        return;
    }
    if (__atomic_load_n(&board->version, __ATOMIC_ACQUIRE) != BOARD_VERSION) {
        return; /* it is being opened */
    }
    if (l->count == l->room) {
        size_t room = l->room == 0 ? 16 : 2 * l->room;
        struct seen *more = reallocarray(l->of, room, sizeof(*more));
        if (more == NULL) {
            l->failed = true;
            return;
        }
        l->of = more;
        l->room = room;
    }
    struct seen *s = &l->of[l->count++];
    s->view = *view;
    s->view.board = NULL;
    memcpy(&s->board, board, sizeof(s->board));
    s->board.program[sizeof(s->board.program) - 1] = '\0';
}

static void skipped(void *arg, const char *why)
{
    const struct look *l = arg;
    if (!l->quiet) {
        fprintf(stderr, "pinwheel nic: left out: %s\n", why);
    }
}

/* Looks anew; 0, or 1 after it has said what went wrong. */
static int look(const struct options *o, struct look *l)
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

static uint64_t sum(const uint64_t *numbers, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += numbers[i];
    }
    return total;
}

static uint64_t dropped(const struct nic_board *b)
{
    uint64_t total = 0;
    for (unsigned k = 0; k < BOARD_KINDS; k++) {
        total += sum(b->registers[k], PTL_SR_LAST);
    }
    return total;
}

/* ---- For people ---- */

static const char *id_text(uint32_t nid, uint32_t pid, char text[32])
{
    snprintf(text, 32, "%u.%u.%u.%u:%u", nid >> 24, nid >> 16 & 255, nid >> 8 & 255, nid & 255,
             pid);
    return text;
}

static const char *address_text(const struct segment_view *v, char text[32])
{
    return id_text(v->nid, v->pid, text);
}

static const char *kinds_text(uint32_t open, char text[16])
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned k = 0; k < BOARD_KINDS; k++) {
        if ((open >> k & 1) != 0) {
            at += (size_t)snprintf(text + at, 16 - at, "%s%s", at == 0 ? "" : ",", nic_kind(k));
        }
    }
    return at == 0 ? "-" : text;
}

static void print_table(const struct look *l)
{
    char address[32], kinds[16], sent[16], received[16], bytes[16];
    if (l->count == 0) {
        printf("no NIC of yours is open on this host\n");
        return;
    }
    printf("%-22s %8s  %-16s %-11s %7s %8s %8s %8s %8s %6s\n", "NIC", "process", "program",
           "interfaces", "senders", "sent", "received", "bytes in", "dropped", "closed");
    for (size_t i = 0; i < l->count; i++) {
        const struct seen *s = &l->of[i];
        printf("%-22s %8d  %-16.16s %-11s %7u %8s %8s %8s %8" PRIu64 " %6" PRIu64 "\n",
               address_text(&s->view, address), s->view.process, s->board.program,
               kinds_text(s->board.open, kinds), s->view.senders,
               nic_number((double)sum(s->board.sent, BOARD_MOVEMENTS), sent),
               nic_number((double)sum(s->board.received, BOARD_MOVEMENTS), received),
               nic_number((double)s->board.received_bytes, bytes), dropped(&s->board),
               s->board.closed);
    }
}

static void print_movements(const char *title, const uint64_t *movements, uint64_t bytes)
{
    printf("    %-24s", title);
    for (unsigned m = 0; m < BOARD_MOVEMENTS; m++) {
        printf("%" PRIu64 " %s, ", movements[m], movement_names[m]);
    }
    printf("%" PRIu64 " bytes\n", bytes);
}

/* Peers of which there are figures. */
static uint64_t listed_peers(const struct fabric_report *net)
{
    return net->peers < FABRIC_REPORT_PEERS ? net->peers : FABRIC_REPORT_PEERS;
}

static void print_net(const struct fabric_report *net)
{
    char address[32];
    if (net->packets_in == 0 && net->packets_out == 0) {
        return;
    }
    printf("    %-24s%" PRIu64 " packets sent, %" PRIu64 " again, %" PRIu64 " timeouts\n", "UDP",
           net->packets_out, net->resent, net->timeouts);
    printf("    %-24s%" PRIu64 " packets received, %" PRIu64 " twice, %" PRIu64 " dropped\n", "",
           net->packets_in, net->duplicates, net->dropped);
    printf("    %-24s%" PRIu64 " of these forged, %" PRIu64 " replayed; %" PRIu64
           " times packets were made shorter\n",
           "", net->forged, net->replayed, net->shortened);
    for (uint64_t i = 0; i < listed_peers(net); i++) {
        const struct fabric_peer_report *p = &net->peer[i];
        printf("    %-24sround trip %.1f us, window %u packets, %u under way, %" PRIu64
               " again, %" PRIu64 " dropped\n",
               id_text(p->nid, p->pid, address), (double)p->rtt / 1e3, p->window, p->flight,
               p->resent, p->dropped);
    }
    if (net->peers > listed_peers(net)) {
        printf("    %-24s%" PRIu64 "\n", "more peers", net->peers - listed_peers(net));
    }
}

static void print_full(const struct seen *s)
{
    const struct nic_board *b = &s->board;
    char address[32], opened[32] = "?";
    time_t at = (time_t)b->opened;
    struct tm tm;
    if (localtime_r(&at, &tm) != NULL) {
        strftime(opened, sizeof(opened), "%F %T", &tm);
    }
    printf("NIC %s of process %d (%s), interface number %u, open since %s\n",
           address_text(&s->view, address), s->view.process, b->program, b->index, opened);
    printf("    %-24s%u of %u\n", "senders", s->view.senders, s->view.most);
    print_movements("requests sent", b->sent, b->sent_bytes);
    print_movements("requests received", b->received, b->received_bytes);
    printf("    %-24s%" PRIu64 " messages waited, %" PRIu64 " entries closed\n", "flow control",
           b->waited, b->closed);
    printf("    %-24s%" PRIu64 "\n", "events lost", b->events_lost);
    printf("    %-24s%" PRIu64 "\n", "malformed messages", b->malformed);
    print_net(&b->net);
    for (unsigned k = 0; k < BOARD_KINDS; k++) {
        if ((b->open >> k & 1) != 0) {
            printf("    %-24s", kind_names[k]);
            for (unsigned r = 0; r < PTL_SR_LAST; r++) {
                printf("%s%s %" PRIu64, r == 0 ? "" : ", ", register_names[r], b->registers[k][r]);
            }
            putchar('\n');
        }
    }
    nic_handlers_print(b);
}

/* ---- JSON ---- */

static void json_movements(struct json *j, const char *name, const uint64_t *movements,
                           uint64_t bytes)
{
    json_open_object(j, name);
    for (unsigned m = 0; m < BOARD_MOVEMENTS; m++) {
        json_unsigned(j, movement_names[m], movements[m]);
    }
    json_unsigned(j, "bytes", bytes);
    json_close_object(j);
}

static void json_net(struct json *j, const struct fabric_report *net)
{
    json_open_object(j, "udp");
    json_unsigned(j, "packets_sent", net->packets_out);
    json_unsigned(j, "packets_received", net->packets_in);
    json_unsigned(j, "resent", net->resent);
    json_unsigned(j, "timeouts", net->timeouts);
    json_unsigned(j, "duplicates", net->duplicates);
    json_unsigned(j, "dropped", net->dropped);
    json_unsigned(j, "forged", net->forged);
    json_unsigned(j, "replayed", net->replayed);
    json_unsigned(j, "shortened", net->shortened);
    json_unsigned(j, "peer_count", net->peers);
    json_open_array(j, "peers");
    for (uint64_t i = 0; i < listed_peers(net); i++) {
        const struct fabric_peer_report *p = &net->peer[i];
        json_open_object(j, NULL);
        json_unsigned(j, "nid", p->nid);
        json_unsigned(j, "pid", p->pid);
        json_number(j, "rtt_ns", p->rtt);
        json_unsigned(j, "window", p->window);
        json_unsigned(j, "flight", p->flight);
        json_unsigned(j, "resent", p->resent);
        json_unsigned(j, "dropped", p->dropped);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void json_seen(struct json *j, const struct seen *s)
{
    char address[32];
    const struct nic_board *b = &s->board;
    json_open_object(j, NULL);
    json_unsigned(j, "nid", s->view.nid);
    json_unsigned(j, "pid", s->view.pid);
    json_number(j, "process", s->view.process);
    json_string(j, "address", address_text(&s->view, address));
    json_string(j, "program", b->program);
    json_unsigned(j, "index", b->index);
    json_number(j, "opened", b->opened);
    json_unsigned(j, "senders", s->view.senders);
    json_unsigned(j, "senders_most", s->view.most);
    json_movements(j, "sent", b->sent, b->sent_bytes);
    json_movements(j, "received", b->received, b->received_bytes);
    json_unsigned(j, "waited", b->waited);
    json_unsigned(j, "closed", b->closed);
    json_unsigned(j, "events_lost", b->events_lost);
    json_unsigned(j, "malformed", b->malformed);
    json_net(j, &b->net);
    json_open_array(j, "interfaces");
    for (unsigned k = 0; k < BOARD_KINDS; k++) {
        if ((b->open >> k & 1) != 0) {
            json_open_object(j, NULL);
            json_string(j, "kind", nic_kind(k));
            for (unsigned r = 0; r < PTL_SR_LAST; r++) {
                json_unsigned(j, register_names[r], b->registers[k][r]);
            }
            json_close_object(j);
        }
    }
    json_close_array(j);
    nic_handlers_json(j, b);
    json_close_object(j);
}

static int print_json(const struct look *l)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_open_array(&j, "nics");
    for (size_t i = 0; i < l->count; i++) {
        json_seen(&j, &l->of[i]);
    }
    json_close_array(&j);
    json_close_object(&j);
    return json_end(&j) == 0 ? 0 : 1;
}

/* ---- What changes ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = 1;
}

static const struct seen *find(const struct look *l, const struct segment_view *v)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->of[i].view.incarnation == v->incarnation) {
            return &l->of[i];
        }
    }
    return NULL;
}

static void print_rates(const struct look *before, const struct look *now, bool terminal)
{
    char address[32], sent[16], received[16], out[16], in[16];
    double seconds = (double)(now->at - before->at) / 1e9;
    if (terminal) {
        printf("\033[H\033[J");
    }
    printf("%-22s %8s  %-16s %10s %10s %12s %12s %9s %8s\n", "NIC", "process", "program", "sent/s",
           "received/s", "bytes out/s", "bytes in/s", "dropped", "waited");
    for (size_t i = 0; i < now->count; i++) {
        static const struct nic_board none;
        const struct nic_board *b = &now->of[i].board;
        const struct seen *old = find(before, &now->of[i].view);
        const struct nic_board *a = old != NULL ? &old->board : &none;
        double sends =
            (double)(sum(b->sent, BOARD_MOVEMENTS) - sum(a->sent, BOARD_MOVEMENTS)) / seconds;
        double receipts =
            (double)(sum(b->received, BOARD_MOVEMENTS) - sum(a->received, BOARD_MOVEMENTS)) /
            seconds;
        printf("%-22s %8d  %-16.16s %10s %10s %12s %12s %9" PRIu64 " %8" PRIu64 "\n",
               address_text(&now->of[i].view, address), now->of[i].view.process, b->program,
               nic_number(sends, sent), nic_number(receipts, received),
               nic_number((double)(b->sent_bytes - a->sent_bytes) / seconds, out),
               nic_number((double)(b->received_bytes - a->received_bytes) / seconds, in),
               dropped(b), b->waited);
        nic_handlers_rates(a, b, seconds, now->cycles - before->cycles);
    }
    if (now->count == 0) {
        printf("no NIC of yours is open on this host\n");
    }
    fflush(stdout);
}

static int top(const struct options *o, long interval_ms, long count)
{
    struct look looks[2] = {0};
    bool terminal = isatty(STDOUT_FILENO);
    struct timespec pause = {interval_ms / 1000, interval_ms % 1000 * 1000000};
    struct sigaction end = {.sa_handler = on_interrupt}; /* no SA_RESTART: it ends the pause */
    sigaction(SIGINT, &end, NULL);
    int rc = look(o, &looks[0]);
    for (long n = 0; rc == 0 && (count == 0 || n < count); n++) {
        nanosleep(&pause, NULL);
        if (interrupted) {
            break;
        }
        struct look *before = &looks[n % 2], *now = &looks[(n + 1) % 2];
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

/* How a process is to be shown. */
struct manner {
    bool json, text;
    long memory; /* of this context; 0: of none */
};

static int show_process(const struct look *l, const struct manner *m)
{
    int rc = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (m->memory != 0) {
            rc |= nic_handlers_memory(l->process, &l->of[i].board, (uint64_t)m->memory);
        } else if (m->text) {
            nic_handlers_text(&l->of[i].board);
        } else {
            print_full(&l->of[i]);
        }
    }
    return rc;
}

static int show(const struct options *o, int32_t process, const struct manner *m)
{
    struct look l = {.process = process};
    int rc = look(o, &l);
    if (rc == 0 && process != 0 && l.count == 0) {
        fprintf(stderr,
                "pinwheel nic: process %d has no NIC open that we may look at; `pinwheel nic` "
                "lists those that have\n",
                process);
        rc = 1;
    } else if (rc == 0 && m->json) {
        rc = print_json(&l);
    } else if (rc == 0 && process != 0) {
        rc = show_process(&l, m);
    } else if (rc == 0) {
        print_table(&l);
    }
    free(l.of);
    return rc;
}

int command_nic(int argc, char **argv)
{
    struct args a = {.command = "nic",
                     .operands = "[PROCESS | top]",
                     .summary = "Looks into the NICs of running processes: of all of them in a "
                                "line each, of one process\n"
                                "in full, or at what passes through them, again and again.",
                     .options = nic_options,
                     .count = sizeof(nic_options) / sizeof(nic_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    struct manner manner = {0};
    bool timed = false;
    long interval = 1000, count = 0, process = 0;
    const char *what = NULL;
    for (int option; (option = args_next(&a)) != ARGS_END || a.next < argc;) {
        if (option == ARGS_END && what != NULL) {
            return args_error(&a, "one process, or top, and nothing behind it: what is \"%s\"?",
                              argv[a.next]);
        }
        switch (option) {
        case ARGS_END: /* options may stand behind it, too */
            what = argv[a.next++];
            break;
        case NIC_JSON:
            manner.json = true;
            break;
        case NIC_TEXT:
            manner.text = true;
            break;
        case NIC_MEMORY:
            if (args_number(&a, "--memory", 1, INT32_MAX, &manner.memory) != 0) {
                return 2;
            }
            break;
        case NIC_INTERVAL:
            timed = true;
            if (args_number(&a, "--interval", 1, 3600000, &interval) != 0) {
                return 2;
            }
            break;
        case NIC_COUNT:
            timed = true;
            if (args_number(&a, "--count", 1, 1000000000, &count) != 0) {
                return 2;
            }
            break;
        default:
            return option == ARGS_HELP ? 0 : 2;
        }
    }
    bool is_top = what != NULL && strcmp(what, "top") == 0;
    if (what != NULL && !is_top) {
        char *end;
        errno = 0;
        process = strtol(what, &end, 10);
        if (errno != 0 || end == what || *end != '\0' || process < 1 || process > INT32_MAX) {
            return args_error(&a, "\"%s\" is neither the number of a process nor top", what);
        }
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
    if (timed && !is_top) {
        return args_error(&a, "--interval and --count belong to top");
    }
    static struct options o; /* large */
    char error[512];
    if (options_load(&o, error, sizeof(error)) != 0) {
        fprintf(stderr, "pinwheel nic: %s\n", error);
        return 1;
    }
    return is_top ? top(&o, interval, count) : show(&o, (int32_t)process, &manner);
}
