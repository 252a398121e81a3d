/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel run --agent`: the ranks of one host of a job whose launcher is elsewhere, and
 * has started this through a remote shell (hosts.h). Standard input and output are the
 * connection, in frames (frames.h).
 *
 *     CONFIGURED --FRAME_START--> RUNNING --FRAME_END--> ENDING --no process left--> over
 *     any --end of input, silence, a signal to us--> ENDING, of ranks that still run as well
 *
 * The launcher judges; here nothing is decided but that no rank outlives the connection: a
 * launcher that is silent for SILENCE_MS, unless it has stopped the ranks, is taken for dead.
 */
#include "agent.h"

#include "base/log.h"
#include "boot/pmi_server.h"
#include "children.h"
#include "cores.h"
#include "frames.h"
#include "groups.h"
#include "launch.h"
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE_MS = 60000, CHUNK = 16384, INPUT_MOST = 65536 };

enum { FD_IN, FD_OUT, FD_SIGNALS, FD_INPUT, FD_RANKS };

enum source { SOURCE_PMI, SOURCE_OUT, SOURCE_ERR, SOURCES };

static const enum frame_type frame_of[SOURCES] = {FRAME_PMI, FRAME_OUT, FRAME_ERR};

struct rank {
    int fd[SOURCES];      /* -1: closed */
    struct frames answer; /* bytes that its PMI connection is to get */
};

/* Entries for wait_some() and as many again for its use. */
static size_t fds_room(int ranks)
{
    return 2 * (FD_RANKS + SOURCES * (size_t)ranks);
}

struct texts {
    char **at; /* ends with NULL */
    int count;
};

struct agent {
    struct frames in, out;
    struct texts words, environment;
    char *folder, *key, *id;
    struct spawn spawn;
    cpu_set_t cores;
    struct cores homes;
    int count; /* ranks of this host */
    struct rank *ranks;
    struct children children;
    int input; /* to rank 0; -1 */
    struct frames input_bytes;
    bool input_ends; /* behind them */
    bool gone;       /* the launcher */
    bool stopped;    /* it has stopped the ranks, and may be stopped itself */
    int64_t heard;   /* ms: when it last said something */
    bool ending;     /* and in which step: */
    int step;        /* 0: what is left may go, 1: it got SIGTERM, 2: SIGKILL */
    int64_t next;    /* ms: when the next one is due */
    bool over;
    struct pollfd *fds; /* fds_room() of them */
};

static void say(struct agent *a, enum frame_type type, int rank, const void *bytes, size_t length)
{
    if (!a->gone && !frames_put(&a->out, type, a->spawn.first + rank, bytes, length)) {
        a->gone = true; /* no memory to say it */
    }
}

static void say_numbers(struct agent *a, enum frame_type type, int rank, int first, int second,
                        int count)
{
    if (!a->gone && !frames_put_numbers(&a->out, type, a->spawn.first + rank, (uint32_t)first,
                                        (uint32_t)second, count)) {
        a->gone = true;
    }
}

/* The step of its start that failed, and errno. */
static void say_failed(struct agent *a, int rank, int error, const char *what)
{
    uint8_t bytes[68];
    uint32_t number = htonl((uint32_t)error);
    size_t length = strnlen(what, sizeof(bytes) - sizeof(number));
    memcpy(bytes, &number, sizeof(number));
    memcpy(bytes + sizeof(number), what, length);
    say(a, FRAME_FAILED, rank, bytes, sizeof(number) + length);
}

static void end(struct agent *a, int64_t wait)
{
    if (!a->ending) {
        a->ending = true;
        a->next = now_ms() + wait;
    }
}

static void launcher_gone(struct agent *a)
{
    a->gone = true;
    a->next = now_ms();
    end(a, 0);
}

/* ---- Starting ranks ---- */

static bool add_text(struct texts *t, const struct frame *f)
{
    char **at = reallocarray(t->at, (size_t)t->count + 2, sizeof(*at));
    if (at == NULL) {
        return false;
    }
    t->at = at;
    at[t->count] = strndup((const char *)f->bytes, f->length);
    at[t->count + 1] = NULL;
    return at[t->count++] != NULL;
}

static bool set_text(char **text, const struct frame *f)
{
    free(*text);
    *text = strndup((const char *)f->bytes, f->length);
    return *text != NULL;
}

static void free_texts(struct texts *t)
{
    for (int i = 0; i < t->count; i++) {
        free(t->at[i]);
    }
    free(t->at);
}

static void close_end(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void start_rank(struct agent *a, int i, int null)
{
    int pmi[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, in[2] = {-1, -1};
    struct rank *r = &a->ranks[i];
    bool first = a->spawn.first + i == 0;
    const char *what = "making its pipes";
    int rc = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0 ||
        pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        (first && pipe2(in, O_CLOEXEC) != 0)) {
        rc = -errno;
    } else {
        struct spawn_ends ends = {first ? in[0] : null, out[1], err[1], pmi[1]};
        rc = children_start(&a->children, &a->spawn, a->spawn.first + i, &ends, &what);
    }
    const int ours[SOURCES] = {pmi[0], out[0], err[0]}, theirs[] = {pmi[1], out[1], err[1], in[0]};
    memcpy(r->fd, ours, sizeof(ours));
    for (int s = 0; s < SOURCES; s++) {
        fcntl(r->fd[s], F_SETFL, O_NONBLOCK);
    }
    for (int s = 0; s < 4; s++) {
        close_end(theirs[s]);
    }
    if (first) {
        a->input = in[1];
        fcntl(a->input, F_SETFL, O_NONBLOCK);
    }
    if (rc == 0) {
        say(a, FRAME_STARTED, i, NULL, 0);
    } else {
        say_failed(a, i, -rc, what);
    }
}

/* All ranks are started, or none further when one fails; the launcher then ends them. */
static void start_ranks(struct agent *a)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < a->count; i++) {
        for (int s = 0; s < SOURCES; s++) {
            a->ranks[i].fd[s] = -1;
        }
    }
    for (int i = 0; i < a->count; i++) {
        start_rank(a, i, null);
    }
    close(null);
}

static void fail_folder(struct agent *a, int error)
{
    for (int i = 0; i < a->count; i++) {
        say_failed(a, i, error, "chdir");
    }
    a->count = 0;
}

/* False: a launcher does not ask for that, or there is no memory for it. */
static bool start(struct agent *a, const struct frame *f)
{
    uint32_t size = frames_number(f, 0), flags = frames_number(f, 1);
    uint32_t count = flags & ~(FRAME_BIND_CORES | FRAME_BIND_HOMES);
    if (a->ranks != NULL || a->words.count == 0 || a->key == NULL || a->id == NULL || count < 1 ||
        size > PMI_RANKS_MAX || count > size || (uint32_t)f->rank > size - count) {
        return false;
    }
    a->count = (int)count;
    a->ranks = calloc(count, sizeof(*a->ranks));
    struct pollfd *fds = reallocarray(a->fds, fds_room((int)count), sizeof(*fds));
    if (fds != NULL) {
        a->fds = fds;
    }
    struct spawn *s = &a->spawn;
    s->argv = a->words.at;
    s->environment = a->environment.at;
    s->environment_count = a->environment.count;
    s->size = (int)size;
    s->first = f->rank;
    s->job_key = a->key;
    s->job_id = a->id;
    if ((flags & FRAME_BIND_CORES) != 0 && sched_getaffinity(0, sizeof(a->cores), &a->cores) == 0) {
        s->cores = &a->cores;
    } else if ((flags & FRAME_BIND_HOMES) != 0) {
        cores_claim(&a->homes, a->count);
        s->home = a->homes.home;
    }
    if (a->ranks == NULL || fds == NULL || children_open(&a->children, a->count, s) != 0) {
        return false;
    }
    if (a->folder != NULL && chdir(a->folder) != 0) {
        fail_folder(a, errno);
        return true;
    }
    start_ranks(a);
    return true;
}

/* ---- What the launcher says ---- */

static bool of_ours(const struct agent *a, const struct frame *f)
{
    return f->rank >= a->spawn.first && f->rank < a->spawn.first + a->count;
}

static void close_source(struct agent *a, int i, enum source s)
{
    struct rank *r = &a->ranks[i];
    if (r->fd[s] >= 0) {
        close(r->fd[s]);
        r->fd[s] = -1;
        if (s == SOURCE_PMI) {
            frames_free(&r->answer);
            say(a, FRAME_PMI_END, i, NULL, 0);
        }
    }
}

static void close_input(struct agent *a)
{
    close_end(a->input);
    a->input = -1;
    frames_free(&a->input_bytes);
}

static void take_signal_frame(struct agent *a, int signal)
{
    a->stopped = signal == SIGSTOP;
    children_signal(&a->children, signal);
    if (signal == SIGKILL && a->ending) {
        a->next = now_ms();
        a->step = 1;
    }
}

/* False: it is no frame that a launcher sends now. */
static bool take_frame(struct agent *a, const struct frame *f)
{
    bool started = a->ranks != NULL;
    struct rank *r = started && of_ours(a, f) ? &a->ranks[f->rank - a->spawn.first] : NULL;
    switch (f->type) {
    case FRAME_ALIVE:
        if (frames_queued(&a->out) < FRAMES_QUEUE) {
            say(a, FRAME_ALIVE, 0, NULL, 0);
        }
        return true;
    case FRAME_KEY:
        return !started && set_text(&a->key, f);
    case FRAME_ID:
        return !started && set_text(&a->id, f);
    case FRAME_FOLDER:
        return !started && set_text(&a->folder, f);
    case FRAME_ARGUMENT:
        return !started && add_text(&a->words, f);
    case FRAME_ENVIRONMENT:
        return !started && add_text(&a->environment, f);
    case FRAME_START:
        return start(a, f);
    case FRAME_PMI:
        return r == NULL || r->fd[SOURCE_PMI] < 0 || frames_append(&r->answer, f->bytes, f->length);
    case FRAME_PMI_END:
        if (r != NULL) {
            close_source(a, f->rank - a->spawn.first, SOURCE_PMI);
        }
        return started;
    case FRAME_INPUT:
        if (a->input >= 0 && f->length > 0) {
            return frames_queued(&a->input_bytes) <= INPUT_MOST &&
                   frames_append(&a->input_bytes, f->bytes, f->length);
        }
        a->input_ends = true;
        return started;
    case FRAME_SIGNAL:
        if (started && f->length == 1 && f->bytes[0] < NSIG) {
            take_signal_frame(a, f->bytes[0]);
        }
        return started;
    case FRAME_END:
        end(a, LEAVE_MS);
        return started;
    default:
        return false;
    }
}

static void read_launcher(struct agent *a)
{
    struct frame f;
    int rc;
    ssize_t n = frames_read(&a->in, STDIN_FILENO);
    a->heard = now_ms();
    while ((rc = frames_get(&a->in, &f)) > 0) {
        if (!take_frame(a, &f)) {
            rc = -EPROTO;
            break;
        }
    }
    if (rc < 0) {
        fprintf(stderr, "pinwheel run --agent: this is no launcher's; `pinwheel run --hosts` "
                        "starts agents\n");
    }
    if (rc < 0 || n == 0 || (n < 0 && n != -EAGAIN)) {
        launcher_gone(a);
    }
}

/* ---- What ranks say ---- */

/* Passes on what one read gives; false when there is nothing now. */
static bool read_source(struct agent *a, int i, enum source s)
{
    char bytes[CHUNK];
    int fd = a->ranks[i].fd[s];
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));
    if (n > 0) {
        say(a, frame_of[s], i, bytes, (size_t)n);
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_source(a, i, s);
    }
    return false;
}

static void write_input(struct agent *a)
{
    size_t queued = frames_queued(&a->input_bytes);
    bool broken = frames_write(&a->input_bytes, a->input) != 0;
    size_t taken = queued - frames_queued(&a->input_bytes);
    if (taken > 0) {
        say_numbers(a, FRAME_INPUT_TAKEN, 0, (int)taken, 0, 1);
    }
    if (broken) { /* rank 0 reads no more */
        say_numbers(a, FRAME_INPUT_TAKEN, 0, 0, 0, 1);
        close_input(a);
    } else if (a->input_ends && frames_queued(&a->input_bytes) == 0) {
        close_input(a);
    }
}

/* What a rank said before it exited is passed on before its exit is. */
static void look_for_exits(struct agent *a)
{
    siginfo_t how;
    for (int i; (i = children_exited(&a->children, &how)) >= 0;) {
        for (int s = 0; s < SOURCES; s++) {
            while (read_source(a, i, (enum source)s)) {
            }
        }
        close_source(a, i, SOURCE_PMI);
        say_numbers(a, FRAME_EXITED, i, how.si_code, how.si_status, 2);
    }
}

static void take_signals(struct agent *a)
{
    struct signalfd_siginfo s;
    while (read(a->children.signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
        children_took(&a->children, (int)s.ssi_signo, (pid_t)s.ssi_pid);
        if (s.ssi_signo == SIGCHLD) {
            look_for_exits(a);
        } else if (s.ssi_signo != SIGUSR1 && s.ssi_signo != SIGUSR2 && s.ssi_signo != SIGTSTP) {
            launcher_gone(a); /* the shell on this host was ended */
        }
    }
}

/* ---- The loop ---- */

static void wait_for_work(struct agent *a, int timeout)
{
    struct pollfd *f = a->fds;
    bool room = frames_queued(&a->out) < FRAMES_QUEUE;
    bool started = a->ranks != NULL;
    bool input = a->input >= 0 && (frames_queued(&a->input_bytes) > 0 || a->input_ends);
    f[FD_IN] = (struct pollfd){.fd = a->gone ? -1 : STDIN_FILENO, .events = POLLIN};
    f[FD_OUT] = (struct pollfd){.fd = a->gone || frames_queued(&a->out) == 0 ? -1 : STDOUT_FILENO,
                                .events = POLLOUT};
    f[FD_SIGNALS] = (struct pollfd){.fd = started ? a->children.signals : -1, .events = POLLIN};
    f[FD_INPUT] = (struct pollfd){.fd = input ? a->input : -1, .events = POLLOUT};
    for (int i = 0; started && i < a->count; i++) {
        for (int s = 0; s < SOURCES; s++) {
            bool answer = s == SOURCE_PMI && frames_queued(&a->ranks[i].answer) > 0;
            f[FD_RANKS + SOURCES * i + s] =
                (struct pollfd){.fd = room || answer ? a->ranks[i].fd[s] : -1,
                                .events = (short)((room ? POLLIN : 0) | (answer ? POLLOUT : 0))};
        }
    }
    nfds_t count = (nfds_t)(FD_RANKS + (started ? SOURCES * a->count : 0));
    int rc = wait_some(f, f + count, count, timeout);
    if (rc != 0 && !a->gone) {
        fprintf(stderr, "pinwheel run --agent: cannot wait for the ranks: poll: %s%s\n",
                strerror(-rc), log_remedy(-rc));
        launcher_gone(a);
    }
    f[FD_SIGNALS].revents |= rc != 0 && started ? POLLIN : 0;
}

static void serve_ranks(struct agent *a)
{
    for (int i = 0; i < a->count; i++) {
        for (int s = 0; s < SOURCES; s++) {
            const struct pollfd *f = &a->fds[FD_RANKS + SOURCES * i + s];
            if ((f->revents & POLLOUT) != 0 && a->ranks[i].fd[s] >= 0 &&
                frames_write(&a->ranks[i].answer, a->ranks[i].fd[s]) != 0) {
                close_source(a, i, (enum source)s);
            }
            if ((f->revents & ~POLLOUT) != 0) {
                read_source(a, i, (enum source)s);
            }
        }
    }
}

static void do_work(struct agent *a)
{
    const struct pollfd *f = a->fds;
    serve_ranks(a);
    if (f[FD_INPUT].revents != 0) {
        write_input(a);
    }
    if (f[FD_OUT].revents != 0 && frames_write(&a->out, STDOUT_FILENO) != 0) {
        launcher_gone(a);
    }
    if (f[FD_SIGNALS].revents != 0) {
        take_signals(a);
    }
    if (f[FD_IN].revents != 0) {
        read_launcher(a); /* the last: it may start ranks, and change the descriptors */
    }
}

/* Ends what is left in the ranks' groups: first it may go by itself, then SIGTERM, then
 * SIGKILL. */
static void sweep(struct agent *a)
{
    int left =
        a->ranks != NULL ? groups_alive(a->children.groups, a->children.started) : GROUPS_NONE;
    if (left < 0 && left != GROUPS_LATER) {
        if (left == GROUPS_UNTOLD) {
            children_signal(&a->children, SIGKILL);
        }
        a->over = true;
        return;
    }
    if (now_ms() < a->next) {
        return;
    }
    uint8_t stays = a->step == 2;
    if (a->step != 1 && left == GROUPS_LATER) {
        fprintf(stderr, "pinwheel run --agent: " GROUPS_LATER_TEXT "%s\n",
                stays ? ", giving up" : "; ending what there is");
    } else if (a->step != 1) {
        say(a, FRAME_LEFT, left, &stays, 1);
    }
    if (a->step == 2) {
        a->over = true;
        return;
    }
    children_signal(&a->children, a->step == 0 ? SIGTERM : SIGKILL);
    children_signal(&a->children, SIGCONT); /* a stopped process acts on no SIGTERM */
    a->next = now_ms() + (a->step == 0 ? GRACE_MS : STUCK_MS);
    a->step++;
}

static void finish(struct agent *a)
{
    for (int i = 0; i < a->count; i++) {
        for (int s = 0; s < SOURCES; s++) {
            while (!a->gone && read_source(a, i, (enum source)s)) {
            }
            close_source(a, i, (enum source)s);
        }
    }
    if (a->ranks != NULL) {
        say(a, FRAME_DONE, 0, NULL, 0);
    }
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    while (!a->gone && frames_queued(&a->out) > 0 && poll(&out, 1, SILENCE_MS) == 1) {
        a->gone = frames_write(&a->out, STDOUT_FILENO) != 0;
    }
}

static void destroy(struct agent *a)
{
    if (a->ranks != NULL) {
        children_close(&a->children);
    }
    for (int i = 0; i < a->count; i++) {
        frames_free(&a->ranks[i].answer);
    }
    cores_release(&a->homes);
    close_input(a);
    frames_free(&a->in);
    frames_free(&a->out);
    free_texts(&a->words);
    free_texts(&a->environment);
    free(a->folder);
    free(a->key);
    free(a->id);
    free(a->ranks);
    free(a->fds);
}

int agent_run(void)
{
    struct agent a = {.input = -1,
                      .homes = {.lock = -1},
                      .heard = now_ms(),
                      .fds = calloc(fds_room(0), sizeof(struct pollfd))};
    static const char greeting[] = FRAMES_GREETING PINWHEEL_VERSION "\n";
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
    if (a.fds == NULL || !frames_append(&a.out, greeting, sizeof(greeting) - 1)) {
        fprintf(stderr, "pinwheel run --agent: no memory\n");
        return 1;
    }
    while (!a.over) {
        int64_t silent = a.stopped ? SILENCE_MS : a.heard + SILENCE_MS - now_ms();
        wait_for_work(&a, a.ending ? SCAN_MS : silent > 0 ? (int)silent : 0);
        do_work(&a);
        if (!a.gone && !a.stopped && now_ms() - a.heard >= SILENCE_MS) {
            launcher_gone(&a);
        }
        if (a.ending) {
            sweep(&a);
        }
    }
    finish(&a);
    destroy(&a);
    return 0;
}
