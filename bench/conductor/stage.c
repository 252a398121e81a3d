/* SPDX-License-Identifier: BSD-3-Clause */
/* A subject on the stage; see stage.h. */
#include "stage.h"

#include "pinwheel/util/keeper.h"
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE_MS = 50, GOODBYE_MS = 2000 };

static int fail(struct stage *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct stage *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->why, sizeof(s->why), format, args);
    va_end(args);
    return -1;
}

/* ---- Its processes ---- */

static int leaders(const struct stage *s)
{
    return s->subject->launch == LAUNCH_PAIR ? s->subject->ranks : 1;
}

static void reap(struct stage *s)
{
    for (int i = 0; i < TURN_RANKS; i++) {
        if (s->leader[i] > 0) {
            waitpid(s->leader[i], NULL, 0);
        }
        s->leader[i] = 0;
    }
}

static void leave(struct stage *s)
{
    for (int i = 0; i < 100 && sessions_signal(s->leader, TURN_RANKS, SIGKILL) > 0; i++) {
        usleep(10000);
    }
    reap(s);
    munmap(s->page, sizeof(*s->page));
    close(s->page_fd);
    close(s->output_fd);
    s->on = false;
}

/* ---- What it said last ---- */

/* The last line with something on it that the processes printed; of more than
 * fits, its start. */
static void last_words(const struct stage *s, char *words, size_t size)
{
    char text[4096];
    off_t end = lseek(s->output_fd, 0, SEEK_END);
    off_t from = end > (off_t)sizeof(text) - 1 ? end - ((off_t)sizeof(text) - 1) : 0;
    ssize_t n = pread(s->output_fd, text, sizeof(text) - 1, from);
    text[n > 0 ? n : 0] = '\0';
    words[0] = '\0';
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " \t-=*");
        if (strlen(line) > 3) {
            snprintf(words, size, "%s", line);
        }
    }
}

static void add_last_words(struct stage *s)
{
    char words[160];
    last_words(s, words, sizeof(words));
    size_t used = strlen(s->why);
    if (words[0] != '\0') {
        snprintf(s->why + used, sizeof(s->why) - used, "; last line: %s", words);
    }
}

/* How a leader that is gone ended; false while all live. */
static bool gone(struct stage *s)
{
    for (int i = 0; i < leaders(s); i++) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)s->leader[i], &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            continue;
        }
        if (info.si_code == CLD_EXITED) {
            fail(s, "exited with status %d", info.si_status);
        } else {
            fail(s, "was killed by signal %d (%s)", info.si_status, strsignal(info.si_status));
        }
        return true;
    }
    return false;
}

/* ---- Starting ---- */

/* The session's place among others, and the standard descriptors. */
static void set_up_process(const struct stage *s, const struct stage_settings *settings)
{
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(s->output_fd, 1);
    dup2(s->output_fd, 2);
    int group = settings->prefer ? open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC) : -1;
    if (group >= 0 && write(group, "-20", 3) != 3) {
        close(group); /* the conductor could: then this session is not preferred, that is all */
    }
}

static void set_environment(const struct stage *s, int rank, pid_t conductor)
{
    char path[64], plugins[8192], number[16];
    for (int i = 0; i < SUBJECT_SETTINGS && s->subject->environment[i] != NULL; i++) {
        putenv((char *)(uintptr_t)s->subject->environment[i]);
    }
    if (s->subject->kind == SUBJECT_CLIENT && subject_plugins(plugins, sizeof(plugins)) == 0) {
        setenv("OMPI_MCA_mca_base_component_path", plugins, 1);
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", conductor, s->page_fd);
    setenv("BENCH_PAGE", path, 1);
    setenv("BENCH_SUBJECT", s->subject->name, 1);
    unsetenv("BENCH_RANK");
    if (s->subject->launch == LAUNCH_PAIR) {
        snprintf(number, sizeof(number), "%d", rank);
        setenv("BENCH_RANK", number, 1);
    }
}

static void __attribute__((noreturn)) execute(const struct subject *s)
{
    static char paths[SUBJECT_WORDS][1024];
    static char *argv[SUBJECT_WORDS + 1];
    for (int i = 0; i < SUBJECT_WORDS && s->command[i] != NULL; i++) {
        bool program = s->command[i][0] == '@' &&
                       subject_program(s->command[i] + 1, paths[i], sizeof(paths[i])) == 0;
        argv[i] = program ? paths[i] : (char *)(uintptr_t)s->command[i];
    }
    if (argv[0] != NULL) {
        execvp(argv[0], argv);
        fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    }
    _exit(127);
}

static void __attribute__((noreturn))
run_child(const struct stage *s, const struct stage_settings *settings, int rank, pid_t conductor)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != conductor) {
        _exit(126);
    }
    keeper_tell(settings->keeper, getpid());
    set_up_process(s, settings);
    set_environment(s, rank, conductor);
    execute(s->subject);
}

static int open_page(struct stage *s, const struct stage_settings *settings)
{
    s->page_fd = memfd_create("bench-page", MFD_CLOEXEC);
    s->output_fd = memfd_create("bench-output", MFD_CLOEXEC);
    if (s->page_fd < 0 || s->output_fd < 0 || ftruncate(s->page_fd, sizeof(*s->page)) != 0 ||
        fcntl(s->output_fd, F_SETFL, O_APPEND) != 0) {
        return fail(s, "no memory for its page: %s", strerror(errno));
    }
    s->page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, s->page_fd, 0);
    if (s->page == MAP_FAILED) {
        return fail(s, "no memory for its page: %s", strerror(errno));
    }
    s->page->magic = PAGE_MAGIC;
    s->page->conductor = getpid();
    s->page->ranks = (uint32_t)s->subject->ranks;
    memcpy(s->page->core, settings->core, sizeof(s->page->core));
    return 0;
}

/* A rank that met an error leaves the other waiting. */
static bool tell_error(struct stage *s)
{
    for (int r = 0; r < s->subject->ranks; r++) {
        struct page_rank *rank = &s->page->rank[r];
        bool over = atomic_load(&rank->ready) == 0 || atomic_load(&rank->done) == s->number;
        if (over && rank->result.error) {
            rank->result.why[sizeof(rank->result.why) - 1] = '\0';
            fail(s, "rank %d: %s", r, rank->result.why);
            return true;
        }
    }
    return false;
}

/* Waits until *word of all ranks is `wanted`. */
static int await(struct stage *s, size_t word, uint32_t wanted, double limit)
{
    double until = turn_now() + limit;
    for (int r = 0; r < s->subject->ranks; r++) {
        _Atomic uint32_t *at = (_Atomic uint32_t *)((char *)&s->page->rank[r] + word);
        for (uint32_t seen; (seen = atomic_load(at)) != wanted;) {
            if (gone(s) && atomic_load(at) != wanted) {
                add_last_words(s);
                return -1;
            }
            if (turn_now() > until) {
                return tell_error(s) ? -1
                                     : fail(s, "rank %d hangs: no answer within %.3g s", r, limit);
            }
            page_sleep(at, seen, SLICE_MS);
        }
    }
    return 0;
}

static void tell_start(struct stage *s)
{
    char how[STAGE_WHY];
    tell_error(s); /* says more than how it ended */
    memcpy(how, s->why, sizeof(how));
    snprintf(s->why, sizeof(s->why), "does not start: %.380s", how);
}

int stage_start(struct stage *s, const struct stage_settings *settings)
{
    s->number = 0;
    s->why[0] = '\0';
    if (subject_missing(s->subject, s->why, sizeof(s->why)) != 0 || open_page(s, settings) != 0) {
        return -1;
    }
    fflush(NULL);
    pid_t conductor = getpid();
    for (int i = 0; i < leaders(s); i++) {
        s->leader[i] = fork();
        if (s->leader[i] == 0) {
            run_child(s, settings, i, conductor);
        }
        if (s->leader[i] < 0) {
            fail(s, "cannot be started: %s", strerror(errno));
            leave(s);
            return -1;
        }
    }
    s->on = true;
    if (await(s, offsetof(struct page_rank, ready), 1, settings->start_limit) != 0) {
        tell_start(s);
        leave(s);
        return -1;
    }
    return 0;
}

/* ---- Turns ---- */

static int command(struct stage *s, uint32_t what, const struct turn_work *work, double limit)
{
    s->page->what = what;
    s->page->work = *work;
    atomic_store(&s->page->number, ++s->number);
    page_wake(&s->page->number);
    if (await(s, offsetof(struct page_rank, done), s->number, limit) != 0) {
        leave(s);
        return -1;
    }
    return 0;
}

int stage_ask(struct stage *s, const struct stage_settings *settings, const struct turn_work *work)
{
    if (command(s, PAGE_ASK, work, settings->turn_limit) != 0) {
        return -1;
    }
    bool able = true;
    for (int r = 0; r < s->subject->ranks; r++) {
        able &= s->page->rank[r].result.extra != 0;
    }
    return able;
}

int stage_turn(struct stage *s, const struct stage_settings *settings, const struct turn_work *work,
               double limit, struct turn_result result[2])
{
    if (command(s, PAGE_TURN, work, settings->turn_limit + limit) != 0) {
        return -1;
    }
    for (int r = 0; r < 2; r++) {
        result[r] = s->page->rank[r].result;
    }
    if (tell_error(s)) {
        leave(s); /* the ranks no longer agree on what was sent */
        return -1;
    }
    return 0;
}

void stage_end(struct stage *s)
{
    if (!s->on) {
        return;
    }
    s->page->what = PAGE_END;
    atomic_store(&s->page->number, ++s->number);
    page_wake(&s->page->number);
    for (int ms = 0; ms < GOODBYE_MS && sessions_signal(s->leader, TURN_RANKS, 0) > 0; ms += 10) {
        usleep(10000);
    }
    leave(s);
}
