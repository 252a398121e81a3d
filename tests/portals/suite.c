/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of the conformance suite, its upper half; see suite.h.
 *
 * This program makes no call of the library. It keeps one crew for each kind and
 * setting, and one more for cases that ask for limits of their own:
 *
 *     program --- order pipe: the case to run, or null: close -->  process of a crew
 *             <-- answer pipe: one byte, how it ended ---
 *
 * A process that cannot answer has died or hangs: a pidfd tells of the first, the clock of the
 * second. Then the whole crew is killed. Cases are found in the children at the same
 * addresses, because all are registered before main().
 */
#include "runner.h"

#include "../own_network.h"

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct crew {
    const struct suite_case *first; /* what it was opened for; null: there is none */
    const struct suite_case *last;  /* what it ran last */
    struct crew_page *page;
    int size;
    pid_t pid[CREW];
    int pidfd[CREW], order[CREW], answer[CREW];
};

/* One crew for each setting and kind, then the special one. */
enum { SPECIAL = 8, CREWS };
static struct crew crews[CREWS];

static struct suite_case *first, **last = &first;
static int number, count_ok, count_failed, count_skipped;

/* ---- Registration ---------------------------------------------------------- */

static void add(const struct suite_case *c, char *name)
{
    struct suite_case *copy = malloc(sizeof(*copy));
    if (copy == NULL || name == NULL) {
        abort();
    }
    *copy = *c;
    copy->name = name;
    copy->next = NULL;
    *last = copy;
    last = &copy->next;
}

void suite_add(struct suite_case c, const char *name, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, name);
    add(&c, vasprintf(&text, name, arguments) < 0 ? NULL : text);
    va_end(arguments);
}

const char *suite_kind_name(unsigned kind)
{
    return kind == ML ? "ml" : kind == MP ? "mp" : kind == NL ? "nl" : kind == NP ? "np" : "";
}

unsigned suite_ni_options(unsigned kind)
{
    return (kind & PLAIN_KINDS ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) |
           (kind & PHYSICAL_KINDS ? PTL_NI_PHYSICAL : PTL_NI_LOGICAL);
}

static const char *setting_name(unsigned setting)
{
    return setting == SELF ? ".self" : setting == PAIR ? ".pair" : "";
}

void suite_add_each(struct suite_case c, unsigned kinds, unsigned settings, const char *name, ...)
{
    char stem[256];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(stem, sizeof(stem), name, arguments);
    va_end(arguments);
    for (c.setting = SELF; c.setting <= BARE; c.setting *= 2) {
        if ((settings & c.setting) == 0) {
            continue;
        }
        c.kind = NO_KIND;
        if (kinds == NO_KIND) {
            suite_add(c, "%s%s", stem, setting_name(c.setting));
        }
        for (c.kind = ML; c.kind <= NP; c.kind *= 2) {
            if (kinds & c.kind) {
                suite_add(c, "%s.%s%s", stem, suite_kind_name(c.kind), setting_name(c.setting));
            }
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names are unique, rules begin with a section of chapter 3, kinds fit settings. */
static int check_cases(void)
{
    size_t n = 0;
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        n++;
        bool kind_due = c->setting == SELF || c->setting == PAIR;
        if (c->rule == NULL || strncmp(c->rule, "3.", 2) != 0 || strchr(c->rule, ':') == NULL ||
            c->body == NULL || (kind_due && *suite_kind_name(c->kind) == '\0')) {
            fprintf(stderr, "%s: badly registered: rule, body, setting or kind\n", c->name);
            return -1;
        }
    }
    const char **names = calloc(n + 1, sizeof(*names));
    if (names == NULL) {
        return -1;
    }
    n = 0;
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        names[n++] = c->name;
    }
    qsort(names, n, sizeof(*names), by_name);
    int result = 0;
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            fprintf(stderr, "%s: two cases of this name\n", names[i]);
            result = -1;
        }
    }
    free(names);
    return result;
}

/* ---- A crew ---------------------------------------------------------------- */

static bool answer(int fd, unsigned char value)
{
    return write(fd, &value, 1) == 1;
}

/* The life of a process of a crew. exit, not _exit: leak checkers report there. */
_Noreturn static void crew_life(const struct crew *crew, int rank, int order, int out)
{
    static struct scene s;
    const struct suite_case *c = crew->first;
    bool bare = c->setting == BARE;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    suite_page = crew->page;
    suite_rank = rank;
    if (!bare) {
        scene_open(&s, c, rank, crew->size);
    }
    while (read(order, &c, sizeof(c)) == (ssize_t)sizeof(c) && c != NULL) {
        if (bare) {
            s = (struct scene){.c = c, .options = suite_ni_options(c->kind), .size = 1};
            s.matching = (c->kind & MATCHING_KINDS) != 0;
            s.logical = (c->kind & LOGICAL_KINDS) != 0;
        } else {
            scene_begin(&s, c);
        }
        suite_seen(NULL, 0);
        c->body(&s);
        if (!bare) {
            scene_end(&s);
        }
        if (!answer(out, ANSWER_OK)) {
            _exit(ANSWER_FAILED);
        }
    }
    if (!bare) {
        scene_close(&s);
    }
    exit(0);
}

static void crew_fork(struct crew *crew, int rank)
{
    int order[2], back[2];
    if (pipe(order) != 0 || pipe(back) != 0) {
        perror("pipe");
        exit(2);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(order[1]);
        close(back[0]);
        crew_life(crew, rank, order[0], back[1]);
    }
    if (pid < 0 || (crew->pidfd[rank] = pidfd_open(pid, 0)) < 0) {
        perror(pid < 0 ? "fork" : "pidfd_open");
        exit(2);
    }
    close(order[0]);
    close(back[1]);
    crew->pid[rank] = pid;
    crew->order[rank] = order[1];
    crew->answer[rank] = back[0];
}

static void crew_open(struct crew *crew, const struct suite_case *c)
{
    if (crew->page == NULL) {
        crew->page = mmap(NULL, sizeof(*crew->page), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (crew->page == MAP_FAILED) {
            perror("mmap of the page of a crew");
            exit(2);
        }
    }
    memset(crew->page, 0, sizeof(*crew->page));
    crew->first = crew->last = c;
    crew->size = c->setting == PAIR ? 2 : 1;
    for (int r = 0; r < crew->size; r++) {
        crew_fork(crew, r);
    }
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

static void report(const struct crew *crew, int rank, const char *what)
{
    const char *file = crew->page->process[rank].file;
    printf("    rank %d %s, last seen at %s:%d\n", rank, what,
           file != NULL ? base_name(file) : "the start", crew->page->process[rank].line);
}

/* Takes one process's end, and says what it says of the case. */
static void crew_reap(struct crew *crew, int rank, bool hangs, bool tell)
{
    int status;
    if (hangs || crew->page->process[rank].message[0] != '\0') {
        kill(crew->pid[rank], SIGKILL);
    }
    waitpid(crew->pid[rank], &status, 0);
    close(crew->pidfd[rank]);
    close(crew->order[rank]);
    close(crew->answer[rank]);
    if (!tell) {
        return;
    }
    if (crew->page->process[rank].message[0] != '\0') {
        printf("    %s\n", crew->page->process[rank].message);
    } else if (hangs) {
        report(crew, rank, "was still at work");
    } else if (WIFSIGNALED(status)) {
        char text[64];
        snprintf(text, sizeof(text), "died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        report(crew, rank, text);
    } else {
        char text[64];
        snprintf(text, sizeof(text), "left in the middle, with exit status %d",
                 WEXITSTATUS(status));
        report(crew, rank, text);
    }
}

/* Waits until each process has answered (want_end: has ended), one has ended badly, or the
 * time is over. Gives the worst answer. */
static int crew_wait(struct crew *crew, bool want_end, bool ended[CREW])
{
    uint64_t end = suite_now_ms() + suite_limit_ms();
    bool done[CREW] = {false};
    int result = ANSWER_OK;
    for (int left = crew->size; left > 0 && result == ANSWER_OK;) {
        struct pollfd fds[2 * CREW];
        for (int r = 0; r < crew->size; r++) {
            int answer = done[r] || want_end ? -1 : crew->answer[r];
            fds[2 * r] = (struct pollfd){.fd = answer, .events = POLLIN};
            fds[2 * r + 1] = (struct pollfd){.fd = done[r] ? -1 : crew->pidfd[r], .events = POLLIN};
        }
        uint64_t now = suite_now_ms();
        int n = now >= end ? 0 : poll(fds, (nfds_t)(2 * crew->size), (int)(end - now));
        if (n == 0) {
            return ANSWER_LATE;
        }
        for (int r = 0; r < crew->size && n > 0; r++) {
            unsigned char value;
            if ((fds[2 * r].revents & POLLIN) && read(crew->answer[r], &value, 1) == 1) {
                done[r] = true;
                left--;
            } else if (fds[2 * r + 1].revents & POLLIN) {
                siginfo_t info = {0};
                waitid(P_PID, (id_t)crew->pid[r], &info, WEXITED | WNOWAIT);
                bool normal = info.si_code == CLD_EXITED;
                ended[r] = done[r] = true;
                left--;
                if (normal && info.si_status == ANSWER_SKIPPED) {
                    result = ANSWER_SKIPPED;
                } else if (!want_end || !normal || info.si_status != 0) {
                    result = ANSWER_FAILED;
                }
            }
        }
    }
    return result;
}

/* Ends a crew, with or without a word about how its processes were found. */
static void crew_gone(struct crew *crew, const bool ended[CREW], bool tell)
{
    for (int r = 0; r < crew->size; r++) {
        crew_reap(crew, r, !ended[r], tell);
    }
    crew->first = NULL;
}

/* Gives all of a crew a case to run, or null: to end. To one that has just died it cannot be
 * written; crew_wait() finds it. */
static void crew_order(struct crew *crew, const struct suite_case *c)
{
    for (int r = 0; r < crew->size; r++) {
        if (write(crew->order[r], &c, sizeof(c)) < 0 && errno != EPIPE) {
            perror("write of an order");
        }
    }
}

static const char *skip_reason(const struct crew *crew)
{
    const char *first_message = crew->page->process[0].message;
    return first_message[0] != '\0' ? first_message : crew->page->process[1].message;
}

/* Says how a case ended, and ends the crew if it cannot go on. */
static void conclude(struct crew *crew, const char *name, const char *rule, int result,
                     const bool ended[CREW])
{
    bool failed = result == ANSWER_FAILED || result == ANSWER_LATE;
    (*(failed ? &count_failed : result == ANSWER_SKIPPED ? &count_skipped : &count_ok))++;
    printf("%s %d %s: %s%s%s\n", failed ? "not ok" : "ok", ++number, name, rule,
           result == ANSWER_SKIPPED ? " # SKIP " : "",
           result == ANSWER_SKIPPED ? skip_reason(crew) : "");
    if (result == ANSWER_LATE) {
        printf("    not finished after %llu ms\n", (unsigned long long)suite_limit_ms());
    }
    if (result != ANSWER_OK) {
        crew_gone(crew, ended, failed);
    }
    fflush(stdout);
}

/* A crew that closes badly counts as a failure of its own. */
static void crew_close(struct crew *crew)
{
    char name[300];
    bool ended[CREW] = {false};
    if (crew->first == NULL) {
        return;
    }
    crew_order(crew, NULL);
    int result = crew_wait(crew, true, ended);
    if (result == ANSWER_OK) {
        crew_gone(crew, ended, false);
        return;
    }
    snprintf(name, sizeof(name), "end_behind.%s", crew->last->name);
    conclude(crew, name, "3.6: the interface closes behind its last case", result, ended);
}

/* ---- Cases ----------------------------------------------------------------- */

/* The crew for a case, opened. */
static struct crew *crew_for(const struct suite_case *c)
{
    bool alone = c->alone || c->setting == BARE;
    int kind = c->kind == ML ? 0 : c->kind == MP ? 1 : c->kind == NL ? 2 : 3;
    bool special = alone || c->desired != NULL;
    struct crew *crew = &crews[special ? SPECIAL : (c->setting == PAIR ? 4 : 0) + kind];
    const struct suite_case *was = crew->first;
    if (was != NULL && (alone || was->alone || was->setting != c->setting || was->kind != c->kind ||
                        was->desired != c->desired)) {
        crew_close(crew);
    }
    if (crew->first == NULL) {
        crew_open(crew, c);
    }
    return crew;
}

static void run_case(const struct suite_case *c)
{
    bool ended[CREW] = {false};
    struct crew *crew = crew_for(c);
    crew->last = c;
    crew_order(crew, c);
    conclude(crew, c->name, c->rule, crew_wait(crew, false, ended), ended);
    if (c->alone || c->setting == BARE) {
        crew_close(crew);
    }
}

static bool chosen(const struct suite_case *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (fnmatch(argv[i], c->name, 0) == 0) {
            return true;
        }
    }
    return argc <= 1;
}

int main(int argc, char **argv)
{
    if (check_cases() != 0) {
        return 2;
    }
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    if (!list && !own_network()) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    uint64_t start = suite_now_ms();
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        if (list) {
            printf("%s: %s\n", c->name, c->rule);
        } else if (chosen(c, argc, argv)) {
            run_case(c);
        }
    }
    if (list) {
        return 0;
    }
    for (int i = 0; i < CREWS; i++) {
        crew_close(&crews[i]);
    }
    if (number == 0) {
        fprintf(stderr, "%s: no such case; %s --list shows them\n", argc > 1 ? argv[1] : "none",
                argv[0]);
        return 2;
    }
    printf("1..%d\n%d ok, %d not ok, %d skipped, %llu ms\n", number, count_ok, count_failed,
           count_skipped, (unsigned long long)(suite_now_ms() - start));
    return count_failed != 0;
}
