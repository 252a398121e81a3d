/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of the conformance suite, its middle part: crews; see suite.h.
 *
 * The program makes no call of the library. It keeps one crew for each kind and
 * setting, and one more for cases that ask for limits of their own:
 *
 *     program --- order pipe: the case to run, or null: close -->  process of a crew
 *             <-- answer pipe: one byte, how it ended ---
 *
 * A process that cannot answer has died or hangs: a pidfd tells of the first, the clock of the
 * second. Then the whole crew is killed. Cases are found in the children at the same
 * addresses, because all are registered before main(). In TWIN a crew is one process, with a
 * thread and a pair of pipes for each rank, and each has its own copy of the cases.
 */
#include "runner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
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
    pid_t pid[CREW]; /* in TWIN all the same */
    int pidfd[CREW], order[CREW], answer[CREW];
};

/* One crew for each setting and kind, then the special one. */
enum { SPECIAL = 8, CREWS };
static struct crew crews[CREWS];

struct suite_count suite_count;
void (*suite_spread)(int ranks, void *life);

/* ---- A crew ---------------------------------------------------------------- */

static bool answer(int fd, unsigned char value)
{
    return write(fd, &value, 1) == 1;
}

/* This rank's copy of a case. */
static const struct suite_case *own_case(const struct crew_life *life, const struct suite_case *c)
{
    const struct suite_case *own = life->twin ? suite_first() : c;
    while (own->index != c->index) {
        own = own->next;
    }
    return own;
}

void suite_life(const struct crew_life *life, int rank)
{
    static struct scene s;
    const struct suite_case *c = life->first;
    bool bare = c->setting == BARE;
    suite_page = life->page;
    suite_rank = rank;
    if (!bare) {
        scene_open(&s, own_case(life, c), rank, life->size);
    }
    while (read(life->order[rank], &c, sizeof(c)) == (ssize_t)sizeof(c) && c != NULL) {
        c = own_case(life, c);
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
        if (!answer(life->answer[rank], ANSWER_OK)) {
            _exit(ANSWER_FAILED);
        }
    }
    if (!bare) {
        scene_close(&s);
    }
}

/* Makes the process of a rank; in TWIN that of all, called for the first one. exit, not _exit: leak
 * checkers report there. */
static void crew_fork(struct crew *crew, int rank, struct crew_life *life)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (int r = 0; r < crew->size; r++) {
            close(crew->order[r]);
            close(crew->answer[r]);
            if (!life->twin && r != rank) {
                close(life->order[r]);
                close(life->answer[r]);
            }
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (life->twin) {
            suite_spread(crew->size, life);
        } else {
            suite_life(life, rank);
        }
        exit(0);
    }
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    for (int r = rank; r < (life->twin ? crew->size : rank + 1); r++) {
        crew->pid[r] = pid;
        crew->pidfd[r] = pidfd_open(pid, 0);
        if (crew->pidfd[r] < 0) {
            perror("pidfd_open");
            exit(2);
        }
    }
}

static void crew_start(struct crew *crew)
{
    struct crew_life life = {crew->first, crew->page, crew->size, .twin = suite_spread != NULL};
    for (int r = 0; r < crew->size; r++) {
        int order[2], back[2];
        if (pipe(order) != 0 || pipe(back) != 0) {
            perror("pipe");
            exit(2);
        }
        life.order[r] = order[0];
        life.answer[r] = back[1];
        crew->order[r] = order[1];
        crew->answer[r] = back[0];
    }
    for (int r = 0; r < (life.twin ? 1 : crew->size); r++) {
        crew_fork(crew, r, &life);
    }
    for (int r = 0; r < crew->size; r++) {
        close(life.order[r]);
        close(life.answer[r]);
    }
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
    crew_start(crew);
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

/* Says what a process that has ended says of the case. */
static void crew_tell(const struct crew *crew, int rank, bool hangs, int status)
{
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
                if (normal &&
                    (info.si_status == ANSWER_SKIPPED || info.si_status == ANSWER_REFUSED)) {
                    result = info.si_status;
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
    int status = 0;
    for (int r = 0; r < crew->size; r++) {
        if (!ended[r] || crew->page->process[r].message[0] != '\0') {
            kill(crew->pid[r], SIGKILL);
        }
    }
    for (int r = 0; r < crew->size; r++) {
        if (r == 0 || suite_spread == NULL) {
            waitpid(crew->pid[r], &status, 0);
        }
        close(crew->pidfd[r]);
        close(crew->order[r]);
        close(crew->answer[r]);
        if (tell) {
            crew_tell(crew, r, !ended[r], status);
        }
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

int suite_numbered(void)
{
    return suite_count.ok + suite_count.failed + suite_count.skipped;
}

/* What an answer means for a case, in TWIN: only those that say so act on their process. */
static int judge(struct crew *crew, const struct suite_case *c, int result)
{
    const char *says = suite_spread != NULL ? c->own_process : NULL;
    char *message = crew->page->process[0].message;
    if (says != NULL && result == ANSWER_REFUSED) {
        snprintf(message, MESSAGE, "it %s", says);
        return ANSWER_SKIPPED;
    }
    if (says != NULL && result == ANSWER_OK) {
        snprintf(message, MESSAGE, "its row says that it %s, but it calls nothing of that kind",
                 says);
        return ANSWER_FAILED;
    }
    return result == ANSWER_REFUSED ? ANSWER_FAILED : result;
}

/* Says how a case ended, and ends the crew if it cannot go on. */
static void conclude(struct crew *crew, const char *name, const char *rule, int result,
                     const bool ended[CREW])
{
    struct suite_count *n = &suite_count;
    bool failed = result == ANSWER_FAILED || result == ANSWER_LATE;
    (*(failed ? &n->failed : result == ANSWER_SKIPPED ? &n->skipped : &n->ok))++;
    printf("%s %d %s: %s%s%s\n", failed ? "not ok" : "ok", suite_numbered(), name, rule,
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

/* In TWIN one case of those that share a body shows that it acts on its process. */
static bool shown_before(const struct suite_case *c)
{
    static void (*shown[64])(struct scene *);
    static unsigned count;
    for (unsigned i = 0; i < count; i++) {
        if (shown[i] == c->body) {
            return true;
        }
    }
    if (count < sizeof(shown) / sizeof(shown[0])) {
        shown[count++] = c->body;
    }
    return false;
}

void suite_run_case(const struct suite_case *c)
{
    bool ended[CREW] = {false};
    if (suite_spread != NULL && c->own_process != NULL && shown_before(c)) {
        suite_count.skipped++;
        printf("ok %d %s: %s # SKIP it %s\n", suite_numbered(), c->name, c->rule, c->own_process);
        return;
    }
    struct crew *crew = crew_for(c);
    crew->last = c;
    crew_order(crew, c);
    int result = judge(crew, c, crew_wait(crew, false, ended));
    conclude(crew, c->name, c->rule, result, ended);
    if (c->alone || c->setting == BARE) {
        crew_close(crew);
    }
}

void suite_close_crews(void)
{
    for (int i = 0; i < CREWS; i++) {
        crew_close(&crews[i]);
    }
}
