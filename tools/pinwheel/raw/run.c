/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel raw run`: handlers on the frames of an interface, or of a capture file, until a signal,
 * a limit or the end of the file. SIGHUP reads the rules again, SIGUSR1 prints the counts.
 */
#include "base/sys.h"
#include "commands.h"
#include "pinwheel/util/args.h"
#include "raw/engine.h"
#include "raw/serve/served.h"
#include "raw/source/drop.h"
#include "raw/source/page.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_MS = 100, SHOW_TURNS = 1024 };

struct run {
    const char *iface, *tap, *pcap, *serve, *out, *rules, *image, *timing;
    int mode, by;
    bool yes, spin, quiet, observe, drop, again;
    unsigned ring;
    uint64_t seconds, frames;
    uint64_t state, age, budget, messages;
    unsigned contexts;
    struct raw_context_options context[RAW_CONTEXTS];
    char words[RAW_CONTEXTS][4096]; /* of --context, cut into its parts */
};

static volatile sig_atomic_t stopped, reload, report;

static void on_signal(int number)
{
    if (number == SIGHUP) {
        reload = 1;
    } else if (number == SIGUSR1) {
        report = 1;
    } else {
        stopped = 1;
    }
}

/* NAME=IMAGE[:PREFIX][,priority=N][,share=N] */
static int take_context(struct args *a, void *into)
{
    struct run *r = into;
    if (r->contexts == RAW_CONTEXTS) {
        return args_bad(a, "there are more than %d contexts", RAW_CONTEXTS);
    }
    char *text = r->words[r->contexts];
    struct raw_context_options *o = &r->context[r->contexts];
    *o = (struct raw_context_options){.prefix = "raw", .share = RAW_BATCH};
    if ((size_t)snprintf(text, sizeof(r->words[0]), "%s", a->value) >= sizeof(r->words[0])) {
        return args_bad(a, "is too long");
    }
    char *rest = text;
    o->name = strsep(&rest, "=");
    if (rest == NULL || o->name[0] == '\0' || strlen(o->name) >= RAW_NAME) {
        return args_bad(a, "is no NAME=IMAGE, with a name of %d letters at most", RAW_NAME - 1);
    }
    char *image = strsep(&rest, ",");
    o->image = strsep(&image, ":");
    o->prefix = image != NULL ? image : o->prefix;
    while (rest != NULL) {
        char *word = strsep(&rest, ","), end;
        unsigned n;
        if (sscanf(word, "priority=%5u%c", &n, &end) == 1) {
            o->priority = n;
        } else if (sscanf(word, "share=%5u%c", &n, &end) == 1 && n >= 1 && n <= RAW_BATCH) {
            o->share = n;
        } else {
            return args_bad(a, "%s is no priority=N, nor share=N from 1 to %d", word, RAW_BATCH);
        }
    }
    r->contexts++;
    return ARGS_GO_ON;
}

#define AT(member) ARGS_AT(struct run, member)

static const struct args_option options[] = {
    {"--iface", "NAME", "the interface whose frames run handlers", ARGS_TEXT, AT(iface)},
    {"--tap", "NAME", "an interface without a card instead, made for this", ARGS_TEXT, AT(tap)},
    {"--pcap", "FILE", "frames of a capture file instead", ARGS_TEXT, AT(pcap)},
    {"--serve", "PATH", "frames of an interface that `pinwheel raw serve` owns: its socket",
     ARGS_TEXT, AT(serve)},
    {"--ring", "SLOTS", "with --serve: of each context's ring (default: what the policy allows)",
     ARGS_UNSIGNED, AT(ring), 2, 4096},
    {"--again", NULL, "with --serve: when the owner has gone, wait for another one", ARGS_FLAG,
     AT(again)},
    {"--out", "FILE", "with --pcap: where frames that are sent go", ARGS_TEXT, AT(out)},
    {"--image", "FILE",
     "handlers raw_header, raw_payload, raw_completion: a shared object, or RV32", ARGS_TEXT,
     AT(image)},
    {"--context", "NAME=IMAGE[:PREFIX][,priority=N][,share=N]",
     "one of several contexts, which rules name; handlers PREFIX_header, ...",
     .take = take_context},
    {"--rules", "RULES", "which frames: a file, or icmp-echo, udp-echo, slmp, all", ARGS_TEXT,
     AT(rules)},
    {"--mode", "auto|native|skb", "where the program runs (default auto: in the driver if it can)",
     ARGS_CHOICE, AT(mode)},
    {"--by", "xdp|packet", "how frames come: AF_XDP (default), or packet sockets, which are slower",
     ARGS_CHOICE, AT(by)},
    {"--observe", NULL, "with --by packet: the kernel handles these frames as well", ARGS_FLAG,
     AT(observe)},
    {"--drop", NULL, "give up all capabilities once it has begun; rules then stay", ARGS_FLAG,
     AT(drop)},
    {"--yes", NULL, "also what may cut off the default route", ARGS_FLAG, AT(yes)},
    {"--spin", NULL, "poll without sleeping", ARGS_FLAG, AT(spin)},
    {"--state", "BYTES", "HPU memory of each context (default 65536)", ARGS_UNSIGNED, AT(state), 1,
     1u << 30},
    {"--budget", "US", "most time of a handler; 0: any (default 1000000)", ARGS_UNSIGNED,
     AT(budget), 0, 1000000000},
    {"--age", "MS", "messages without a frame for so long are ended (default 1000)", ARGS_UNSIGNED,
     AT(age), 1, 1000000000},
    {"--messages", "N", "unfinished messages of a context (default 4096)", ARGS_UNSIGNED,
     AT(messages), 1, 1u << 24},
    {"--timing", "TABLE", "of RV32 cores, as PINWHEEL_HPU_TIMING (default pspin)", ARGS_TEXT,
     AT(timing)},
    {"--seconds", "N", "end after so long", ARGS_UNSIGNED, AT(seconds), 1, 1000000000},
    {"--frames", "N", "end after so many frames", ARGS_UNSIGNED, AT(frames)},
    {"--quiet", NULL, "do not print counts at the end", ARGS_FLAG, AT(quiet)},
};

/* ---- Counts ---- */

/* The sets of a table that passes or drops frames. */
static void print_sets(const struct raw_engine *e, const struct raw_source_counts *counts)
{
    static const char *const what[] = {"to handlers", "passed to the kernel", "dropped"};
    bool any = false;
    for (unsigned s = 0; s < e->rules.count; s++) {
        any = any || e->rules.set[s].action != RAW_HANDLERS;
    }
    for (unsigned s = 0; s < e->rules.count && any; s++) {
        struct raw_counter n = raw_engine_matched(e, s, counts);
        printf("set %s: %s: frames %llu, bytes %llu\n", e->rules.set[s].name,
               what[e->rules.set[s].action], (unsigned long long)n.frames,
               (unsigned long long)n.bytes);
    }
}

static void print_counts(const struct raw_engine *e)
{
    struct raw_source_counts s;
    e->source->ops->counts(e->source, &s);
    print_sets(e, &s);
    for (unsigned i = 0; i < e->count; i++) {
        const struct raw_context *c = &e->context[i];
        const struct raw_counts *n = &c->counts;
        printf("context %s: %s\n", c->name[0] != '\0' ? c->name : "(the only one)",
               c->device ? "RV32" : "native");
        printf("  frames %llu: answered %llu, kept %llu, passed on %llu\n",
               (unsigned long long)n->frames, (unsigned long long)n->replied,
               (unsigned long long)n->consumed, (unsigned long long)n->passed);
        printf("  dropped: by handlers %llu, faults %llu, time-outs %llu, failures %llu, too many "
               "messages %llu, before they were read %llu\n",
               (unsigned long long)n->dropped, (unsigned long long)n->faults,
               (unsigned long long)n->timeouts, (unsigned long long)n->failed,
               (unsigned long long)n->no_room, (unsigned long long)raw_engine_lost(e, i, &s));
        printf("  messages %llu: ended %llu, aged out %llu; frames made by handlers %llu\n",
               (unsigned long long)n->messages, (unsigned long long)n->ended,
               (unsigned long long)n->aged, (unsigned long long)n->sent);
    }
    printf("%s: sent %llu, no room to send %llu, passed to the kernel %llu, not taken by it %llu, "
           "of a wrong length %llu",
           e->source->name, (unsigned long long)s.sent, (unsigned long long)s.send_full,
           (unsigned long long)s.passed, (unsigned long long)s.pass_failed,
           (unsigned long long)s.too_long);
    if (s.unmatched > 0) {
        printf(", not matched %llu", (unsigned long long)s.unmatched);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- What others see ---- */

static void show(const struct raw_engine *e, struct raw_page *page)
{
    struct raw_source_counts s;
    if (page == NULL || e->source == NULL) {
        return;
    }
    e->source->ops->counts(e->source, &s);
    for (unsigned i = 0; i < e->count; i++) {
        const struct raw_counts *n = &e->context[i].counts;
        uint64_t lost = raw_engine_lost(e, i, &s);
        struct raw_page_context *c = &page->context[i];
        c->used = 1;
        c->sets = 0;
        for (unsigned k = 0; k < e->rules.count; k++) {
            c->sets += e->wanted.context[k] == i;
        }
        c->matched = n->frames + lost;
        c->frames = n->frames;
        c->sent = n->replied + n->sent;
        c->passed = n->passed;
        c->dropped = n->dropped + n->no_room;
        c->faults = n->faults + n->timeouts + n->failed;
        c->lost = lost;
    }
    page->contexts = e->count;
}

/* ---- Running ---- */

static int say(const char *text)
{
    fprintf(stderr, "pinwheel raw run: %s\n", text);
    return 1;
}

static void read_rules_again(struct raw_engine *e, const struct run *r)
{
    char error[RAW_ERROR];
    struct raw_rules *rules = malloc(sizeof(*rules));
    reload = 0;
    if (r->drop) {
        say("the rules stay, since --drop has given the capabilities up that a swap needs");
    } else if (rules == NULL) {
        say("no memory for the rules; those before stay");
    } else if (raw_rules_load(rules, r->rules, error) != 0 ||
               raw_engine_rules(e, rules, error) != 0) {
        fprintf(stderr, "pinwheel raw run: %s; the rules before stay\n", error);
    } else {
        fprintf(stderr, "pinwheel raw run: %u sets of %s are in place\n", rules->count, r->rules);
    }
    free(rules);
}

static const char *name_of(const struct run *r)
{
    return r->iface != NULL   ? r->iface
           : r->tap != NULL   ? r->tap
           : r->serve != NULL ? r->serve
                              : r->pcap;
}

static int open_served(struct raw_engine *e, const struct run *r, char error[RAW_ERROR])
{
    char said[RAW_ERROR];
    struct raw_served_options o = {.path = r->serve, .ring = r->ring, .spin = r->spin};
    for (unsigned c = 0; c < e->count; c++) {
        o.share[c] = e->context[c].options.share;
        o.priority[c] = e->context[c].options.priority;
    }
    int rc = raw_served_open(&e->source, &o, &e->wanted, said, error);
    if (rc == 0) {
        fprintf(stderr, "pinwheel raw run: %s; %u sets\n", said, e->rules.count);
    }
    return rc;
}

/* The owner has gone: waits until another one takes us in. Contexts keep what they have. 0, or the
 * error at which it ends. */
static int find_owner(struct raw_engine *e, const struct run *r, int n)
{
    char error[RAW_ERROR] = "";
    int rc = -ECONNREFUSED;
    fprintf(stderr, "pinwheel raw run: %s\n", raw_served_why(e->source));
    if (!r->again) {
        return n;
    }
    e->source->ops->close(e->source);
    e->source = NULL;
    while (!stopped && (rc == -ECONNREFUSED || rc == -ENOENT || rc == -ECONNRESET ||
                        rc == -ESHUTDOWN || rc == -EBUSY || rc == -EAGAIN || rc == -ETIMEDOUT)) {
        sys_nap((int64_t)IDLE_MS * 1000000);
        rc = open_served(e, r, error);
    }
    return rc == 0 || stopped ? 0 : (say(error), rc);
}

static int loop(struct raw_engine *e, const struct run *r, struct raw_page *page)
{
    struct timespec t;
    unsigned turns = 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    time_t end = t.tv_sec + (time_t)r->seconds;
    int n = 0;
    while (!stopped && n >= 0 && (r->frames == 0 || e->frames < r->frames)) {
        n = raw_engine_turn(e);
        if (n == 0) {
            if (!r->spin || turns % SHOW_TURNS == 0) {
                show(e, page);
            }
            n = e->source->ops->wait(e->source, IDLE_MS);
        } else if (turns % SHOW_TURNS == 0) {
            show(e, page);
        }
        turns++;
        if (n < 0 && r->serve != NULL) {
            n = find_owner(e, r, n);
            if (n < 0 || e->source == NULL) {
                return n < 0;
            }
        }
        if (reload) {
            read_rules_again(e, r);
        }
        if (report) {
            report = 0;
            print_counts(e);
        }
        if (r->seconds > 0) {
            clock_gettime(CLOCK_MONOTONIC, &t);
            stopped |= t.tv_sec >= end;
        }
    }
    if (n < 0 && n != -ENODATA) {
        fprintf(stderr, "pinwheel raw run: %s: %s\n", name_of(r),
                n == -ENODEV ? "the interface is gone" : strerror(-n));
        return 1;
    }
    return 0;
}

static int open_source(struct raw_engine *e, const struct run *r)
{
    char error[RAW_ERROR], said[RAW_ERROR];
    if (r->pcap != NULL) {
        return raw_pcap_open(&e->source, r->pcap, r->out, &e->wanted, error) == 0 ? 0 : say(error);
    }
    if (r->serve != NULL) {
        return open_served(e, r, error) == 0 ? 0 : say(error);
    }
    struct raw_iface_options o = {.iface = name_of(r),
                                  .mode = (enum raw_mode)r->mode,
                                  .yes = r->yes,
                                  .spin = r->spin,
                                  .observe = r->observe};
    int (*open)(struct raw_source **, const struct raw_iface_options *, const struct raw_wanted *,
                char *, char *) = r->tap != NULL ? raw_tap_open
                                  : r->by != 0   ? raw_packet_open
                                                 : raw_xdp_open;
    if (open(&e->source, &o, &e->wanted, said, error) != 0) {
        return say(error);
    }
    int rc = r->drop ? raw_drop(0) : 0;
    if (rc != 0) {
        snprintf(error, sizeof(error), "capabilities are not given up: %s", strerror(-rc));
        return say(error);
    }
    e->source->can_pass &= !r->drop;
    fprintf(stderr, "pinwheel raw run: %s; %u sets\n", said, e->rules.count);
    return 0;
}

static int open_contexts(struct raw_engine *e, const struct run *r)
{
    char error[RAW_ERROR];
    for (unsigned c = 0; c < r->contexts; c++) {
        struct raw_context_options o = r->context[c];
        o.state = r->state;
        o.budget_us = (int64_t)r->budget;
        o.age_ns = r->age * 1000000;
        o.messages = (unsigned)r->messages;
        o.timing = r->timing;
        e->count = c + 1;
        if (raw_context_open(&e->context[c], &o, error) != 0) {
            return say(error);
        }
    }
    return 0;
}

static struct raw_page *begin_page(const struct raw_engine *e, const struct run *r)
{
    char error[RAW_ERROR];
    struct raw_page *page = raw_page_show(raw_command_folder(), "run", name_of(r), error);
    if (page == NULL) {
        fprintf(stderr, "pinwheel raw run: %s\n", error);
        return NULL;
    }
    for (unsigned i = 0; i < e->count; i++) {
        snprintf(page->context[i].name, RAW_NAME, "%s", e->context[i].name);
    }
    show(e, page);
    return page;
}

static int run(const struct run *r)
{
    char error[RAW_ERROR];
    struct raw_engine *e = calloc(1, sizeof(*e));
    struct raw_rules *rules = malloc(sizeof(*rules));
    int status = e == NULL || rules == NULL ? say("no memory") : 0;
    bool faults = status == 0 && pinwheel_hpu_shared.fault_install() == 0;
    if (status == 0 && raw_rules_load(rules, r->rules, error) != 0) {
        status = say(error);
    }
    status = status == 0 ? open_contexts(e, r) : status;
    if (status == 0 && raw_engine_rules(e, rules, error) != 0) {
        status = say(error);
    }
    status = status == 0 ? open_source(e, r) : status;
    struct raw_page *page = NULL;
    if (status == 0) {
        page = begin_page(e, r);
        status = loop(e, r, page);
        for (unsigned c = 0; c < e->count && e->source != NULL; c++) {
            raw_context_age(&e->context[c], e->source, 0, true);
        }
        if (e->source != NULL) {
            e->source->ops->flush(e->source);
        }
        if (e->source != NULL && !r->quiet) {
            print_counts(e);
        }
    }
    for (unsigned c = 0; e != NULL && c < e->count; c++) {
        raw_context_close(&e->context[c]);
    }
    if (e != NULL && e->source != NULL) {
        e->source->ops->close(e->source);
    }
    raw_page_hide(page, raw_command_folder());
    if (faults) {
        pinwheel_hpu_shared.fault_remove();
    }
    free(rules);
    free(e);
    return status;
}

int raw_command_run(int argc, char **argv)
{
    static struct run r = {
        .state = 65536, .budget = 1000000, .age = 1000, .messages = 4096, .timing = "pspin"};
    struct args a = {
        .command = "raw run",
        .operands = "",
        .summary = "Runs handlers on frames that match rules; all others are the kernel's.",
        ARGS_OPTIONS(options),
    };
    int status = args_parse(&a, argc, argv, &r);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (a.next < argc) {
        return args_error(&a, "%s: there are no operands", argv[a.next]);
    }
    if ((r.iface != NULL) + (r.tap != NULL) + (r.pcap != NULL) + (r.serve != NULL) != 1) {
        return args_error(&a, "--iface NAME, --serve PATH, --tap NAME or --pcap FILE says where "
                              "frames come from");
    }
    if ((r.again || r.ring != 0) && r.serve == NULL) {
        return args_error(&a, "--ring and --again are for --serve");
    }
    if ((r.by != 0 && r.iface == NULL) || (r.observe && r.by == 0) || (r.mode != 0 && r.by != 0)) {
        return args_error(&a, "--by is for --iface, --observe for --by packet, --mode for AF_XDP");
    }
    if (r.out != NULL && r.pcap == NULL) {
        return args_error(&a, "--out is for --pcap");
    }
    if (r.rules == NULL || (r.image != NULL && r.contexts > 0)) {
        return args_error(&a, "it needs --rules, and --image or --context, unless all sets of the "
                              "rules pass or drop");
    }
    if (r.image != NULL) {
        r.context[r.contexts++] = (struct raw_context_options){
            .name = "", .image = r.image, .prefix = "raw", .share = RAW_BATCH};
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    return run(&r);
}
