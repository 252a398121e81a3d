/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel raw serve`: owns an interface, or a tap, for users without privilege, who have frames
 * of it as a policy allows. What needs privilege is done first; then it gives all capabilities up,
 * and only the process beside it that puts rules into the kernel keeps two.
 */
#include "commands.h"
#include "pinwheel/util/args.h"
#include "raw/serve/owner.h"
#include "raw/source/drop.h"
#include "raw/source/guard.h"
#include "raw/source/iface.h"
#include "raw/source/page.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_MS = 100, SHOW_TURNS = 1024 };

struct serve {
    const char *iface, *tap, *policy, *socket;
    char path[128];
    int mode;
    bool yes, spin;
    unsigned contexts;
    uint64_t patience;
    /* what is open */
    struct policy *who;
    struct raw_rules *rules;
    struct raw_source *source;
    struct installer installer;
    struct owner *owner;
    int listen;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static int say(const char *text)
{
    fprintf(stderr, "pinwheel raw serve: %s\n", text);
    return 1;
}

static void say_line(const char *line)
{
    (void)say(line);
}

#define AT(member) ARGS_AT(struct serve, member)

static const struct args_option options[] = {
    {"--iface", "NAME", "the interface", ARGS_TEXT, AT(iface)},
    {"--tap", "NAME", "an interface without a card instead, made for this", ARGS_TEXT, AT(tap)},
    {"--policy", "FILE", "which users may have which frames", ARGS_TEXT, AT(policy)},
    {"--socket", "PATH", "where users connect (default /run/pinwheel-raw-NAME.sock)", ARGS_TEXT,
     AT(socket)},
    {"--mode", "auto|native|skb", "where the program runs (default auto: in the driver if it can)",
     ARGS_CHOICE, AT(mode)},
    {"--contexts", "N", "contexts of all users together (default 8)", ARGS_UNSIGNED, AT(contexts),
     1, RAW_CONTEXTS},
    {"--patience", "MS",
     "who takes none of the frames that are there for so long loses his rules (default 5000)",
     ARGS_UNSIGNED, AT(patience), 1, 1000000000},
    {"--yes", NULL, "also what may cut off the default route", ARGS_FLAG, AT(yes)},
    {"--spin", NULL, "poll without sleeping", ARGS_FLAG, AT(spin)},
};

/* ---- Beginning ---- */

static const char *name_of(const struct serve *s)
{
    return s->iface != NULL ? s->iface : s->tap;
}

/* What no user may ask for is said before the first comes. */
static int check_policy(struct serve *s, char error[RAW_ERROR])
{
    char why[RAW_ERROR];
    for (unsigned i = 0; i < s->who->count && s->iface != NULL; i++) {
        s->rules->count = 1;
        s->rules->set[0] = s->who->of[i].take;
        if (raw_guard(s->iface, s->rules, s->yes, why) != 0) {
            snprintf(error, RAW_ERROR, "%.60s:%u: %.180s", s->policy, s->who->of[i].line, why);
            return -1;
        }
    }
    s->rules->count = 0;
    return 0;
}

static int open_source(struct serve *s, char error[RAW_ERROR])
{
    char said[RAW_ERROR];
    const struct raw_wanted none = {.rules = s->rules, .contexts = s->contexts};
    const struct raw_iface_options o = {
        .iface = name_of(s), .mode = (enum raw_mode)s->mode, .yes = s->yes};
    int rc = (s->tap != NULL ? raw_tap_open : raw_xdp_open)(&s->source, &o, &none, said, error);
    if (rc == 0) {
        fprintf(stderr, "pinwheel raw serve: %s; %u contexts, %u lines of %s\n", said, s->contexts,
                s->who->count, s->policy);
    }
    return rc;
}

static int fail(char error[RAW_ERROR], const char *what, int rc)
{
    snprintf(error, RAW_ERROR, "%.120s: %s%s", what, strerror(-rc),
             rc == -EADDRINUSE ? "; another owner has this socket: --socket PATH" : "");
    return -1;
}

static int open_all(struct serve *s, char error[RAW_ERROR])
{
    struct owner_options o = {.policy = s->who,
                              .contexts = s->contexts,
                              .patience = (int64_t)s->patience * 1000000,
                              .iface = name_of(s),
                              .spin = s->spin,
                              .say = say_line};
    if (policy_load(s->who, s->policy, error) != 0 || check_policy(s, error) != 0 ||
        open_source(s, error) != 0) {
        return -1;
    }
    /* a tap's rules are kept by this process, which has no other end of the wire either */
    int rc = s->tap != NULL ? 0 : installer_start(&s->installer, s->source, s->who, s->contexts);
    if (rc != 0) {
        return fail(error, "the process that puts rules into the kernel", rc);
    }
    o.installer = s->tap != NULL ? NULL : &s->installer;
    o.own_source = s->tap == NULL;
    if (o.own_source && (rc = raw_iface_address(s->iface, o.address)) != 0) {
        return fail(error, s->iface, rc);
    }
    s->listen = serve_listen(s->socket);
    if (s->listen < 0) {
        return fail(error, s->socket, s->listen);
    }
    rc = raw_drop(0);
    if (rc != 0) {
        return fail(error, "capabilities are not given up", rc);
    }
    s->source->can_pass = false;
    o.source = s->source;
    o.listen = s->listen;
    rc = owner_open(&s->owner, &o);
    return rc == 0 ? 0 : fail(error, "the owner", rc);
}

/* ---- What others see ---- */

static void show(const struct owner *o, struct raw_page *page)
{
    for (unsigned i = 0; page != NULL && i < o->o.contexts; i++) {
        const struct owner_context *from = &o->context[i];
        const struct owner_counts *n = &from->counts;
        page->context[i] = (struct raw_page_context){
            .used = from->state == OWNER_LIVE,
            .sets = from->part.sets,
            .user = (uint32_t)from->peer.uid,
            .user_process = (int32_t)from->peer.pid,
            .matched = n->frames + n->full + n->lost + n->stray,
            .frames = n->frames,
            .sent = n->sent,
            .dropped = n->full + n->stray,
            .faults = n->refused + n->nonsense + n->no_room,
            .lost = n->lost,
        };
    }
    if (page != NULL) {
        page->contexts = o->o.contexts;
    }
}

/* ---- Running ---- */

static int loop(struct owner *o, struct raw_page *page)
{
    int n = 0;
    for (unsigned turns = 0; !stopped && n >= 0; turns++) {
        n = owner_turn(o);
        if ((n == 0 && !o->o.spin) || turns % SHOW_TURNS == 0) {
            show(o, page);
        }
        if (n == 0) {
            n = owner_wait(o, IDLE_MS);
        }
    }
    return n < 0 ? say(o->error) : 0;
}

static int serve(struct serve *s)
{
    char error[RAW_ERROR] = "no memory";
    s->listen = -1;
    s->installer = (struct installer){.pid = -1, .fd = -1};
    s->who = calloc(1, sizeof(*s->who));
    s->rules = calloc(1, sizeof(*s->rules));
    int status = s->who == NULL || s->rules == NULL || open_all(s, error) != 0 ? say(error) : 0;
    if (status == 0) {
        fprintf(stderr, "pinwheel raw serve: users connect to %s\n", s->socket);
        /* behind the process beside it, which has no part in the page's lock */
        struct raw_page *page = raw_page_show(raw_command_folder(), "serve", name_of(s), error);
        if (page == NULL) {
            say(error);
        }
        status = loop(s->owner, page);
        raw_page_hide(page, raw_command_folder());
        owner_close(s->owner, -ESHUTDOWN, "the owner of the interface ends");
    }
    if (s->listen >= 0) {
        unlink(s->socket);
        close(s->listen);
    }
    if (s->source != NULL) {
        s->source->ops->close(s->source);
    }
    installer_stop(&s->installer);
    free(s->rules);
    free(s->who);
    return status;
}

int raw_command_serve(int argc, char **argv)
{
    static struct serve s = {.contexts = 8, .patience = 5000};
    struct args a = {
        .command = "raw serve",
        .operands = "",
        .summary = "Owns an interface for users without privilege, who have frames of it as a\n"
                   "policy allows: `pinwheel raw run --serve PATH`.",
        ARGS_OPTIONS(options),
    };
    int status = args_parse(&a, argc, argv, &s);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (a.next < argc) {
        return args_error(&a, "%s: there are no operands", argv[a.next]);
    }
    if ((s.iface == NULL) == (s.tap == NULL) || s.policy == NULL) {
        return args_error(&a, "it needs --iface NAME or --tap NAME, and --policy FILE");
    }
    if (s.mode != 0 && s.tap != NULL) {
        return args_error(&a, "--mode is for --iface");
    }
    if (s.socket == NULL) {
        snprintf(s.path, sizeof(s.path), "/run/pinwheel-raw-%.40s.sock", name_of(&s));
        s.socket = s.path;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return serve(&s);
}
