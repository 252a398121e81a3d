/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel run --agent`: runs the ranks of one host, for a launcher on another host that has
 * started it through a remote shell (hosts.h). Standard input and output are its connection to the
 * launcher, in frames (frames.h).
 *
 *     CONFIGURED --FRAME_START--> RUNNING --FRAME_END--> ENDING --no process left--> over
 *     any --end of input, silence, a signal to us--> ENDING, of ranks that still run as well
 *
 * The launcher judges how the job ends. The agent only makes sure that no rank outlives the
 * connection: it takes a launcher that is silent for SILENCE_MS for dead, unless that has stopped
 * the ranks.
 */
#include "agent.h"
#include "agent_start.h"

#include "base/log.h"
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
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE_MS = 60000, CHUNK = 16384, INPUT_MOST = 65536 };

static const enum frame_type frame_of[SOURCES] = {FRAME_PMI, FRAME_OUT, FRAME_ERR};

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

/* ---- Frames of the launcher ---- */

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
            agent_say(a, FRAME_PMI_END, i, NULL, 0);
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

/* Handles a frame; false if a launcher does not send such a frame now. */
static bool take_frame(struct agent *a, const struct frame *f)
{
    bool started = a->ranks != NULL;
    struct rank *r = started && of_ours(a, f) ? &a->ranks[f->rank - a->spawn.first] : NULL;
    switch (f->type) {
    case FRAME_ALIVE:
        if (frames_queued(&a->out) < FRAMES_QUEUE) {
            agent_say(a, FRAME_ALIVE, 0, NULL, 0);
        }
        return true;
    case FRAME_KEY:
        return !started && texts_set(&a->key, f);
    case FRAME_ID:
        return !started && texts_set(&a->id, f);
    case FRAME_FOLDER:
        return !started && texts_set(&a->folder, f);
    case FRAME_ARGUMENT:
        return !started && texts_add(&a->words, f);
    case FRAME_ENVIRONMENT:
        return !started && texts_add(&a->environment, f);
    case FRAME_START:
        return agent_start(a, f);
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

/* ---- Data of ranks ---- */

/* Passes the bytes of one read() from a rank on to the launcher; false when there are none now. */
static bool read_source(struct agent *a, int i, enum source s)
{
    char bytes[CHUNK];
    int fd = a->ranks[i].fd[s];
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));
    if (n > 0) {
        agent_say(a, frame_of[s], i, bytes, (size_t)n);
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
        agent_say_numbers(a, FRAME_INPUT_TAKEN, 0, (int)taken, 0, 1);
    }
    if (broken) { /* rank 0 has closed its input */
        agent_say_numbers(a, FRAME_INPUT_TAKEN, 0, 0, 0, 1);
        close_input(a);
    } else if (a->input_ends && frames_queued(&a->input_bytes) == 0) {
        close_input(a);
    }
}

/* Looks for ranks that have exited. It first passes on all that the rank has written, then its
 * exit. */
static void look_for_exits(struct agent *a)
{
    siginfo_t how;
    for (int i; (i = children_exited(&a->children, &how)) >= 0;) {
        for (int s = 0; s < SOURCES; s++) {
            while (read_source(a, i, (enum source)s)) {
            }
        }
        close_source(a, i, SOURCE_PMI);
        agent_say_numbers(a, FRAME_EXITED, i, how.si_code, how.si_status, 2);
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
            launcher_gone(a); /* a signal to the agent: somebody ends the shell on this host */
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
        read_launcher(a); /* last, since it may start ranks and so change the descriptors */
    }
}

/* Ends processes that ranks have left in their process groups: it lets them end by themselves for a
 * while, then sends SIGTERM, then SIGKILL. */
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
        agent_say(a, FRAME_LEFT, left, &stays, 1);
    }
    if (a->step == 2) {
        a->over = true;
        return;
    }
    children_signal(&a->children, a->step == 0 ? SIGTERM : SIGKILL);
    children_signal(&a->children, SIGCONT); /* a stopped process does not act on SIGTERM */
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
        agent_say(a, FRAME_DONE, 0, NULL, 0);
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
    texts_free(&a->words);
    texts_free(&a->environment);
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
