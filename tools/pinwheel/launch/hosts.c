/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's side of the connections to other hosts; see hosts.h. */
#include "hosts.h"

#include "boot/pmi_server.h"
#include "launch.h"
#include "service.h"
#include "shell.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MS = 60000, /* time for a shell to reach its host */
    ALIVE_MS = 5000,   /* interval at which each side tells that it is alive */
    SILENCE_MS = 60000 /* a side that is silent for longer is taken for dead */,
    REAP_MS = 200, /* time for a shell to exit after it has closed its pipe */
    INPUT_ROOM = 65536,
};

int hosts_open(struct hosts *h, const struct hosts_job *job)
{
    struct spawn spawn = {0};
    static char here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    h->command = job->command != NULL ? job->command : length > 0 ? here : "pinwheel";
    h->count = job->list->count;
    h->input_room = INPUT_ROOM;
    h->alive_at = now_ms() + ALIVE_MS;
    h->at = calloc((size_t)h->count, sizeof(*h->at));
    if (h->at == NULL || children_open(&h->shells, h->count, &spawn) != 0) {
        return -1;
    }
    for (int i = 0, first = 0; i < h->count; i++) {
        const struct host_place *p = &job->list->at[i];
        h->at[i] = (struct host){.name = p->name,
                                 .first = first,
                                 .count = p->ranks,
                                 .running = p->ranks,
                                 .to = -1,
                                 .from = -1};
        first += p->ranks;
    }
    for (int i = 0; i < h->count; i++) {
        if (host_start_shell(h, &h->at[i], job, &spawn) != 0) {
            return -1;
        }
        if (!host_tell_job(&h->at[i], job)) {
            fprintf(stderr, "pinwheel run: host %s: cannot be told of the job\n", h->at[i].name);
            return -1;
        }
    }
    return 0;
}

/* ---- The end of a host ---- */

static void close_pipes(struct host *host)
{
    if (host->to >= 0) {
        close(host->to);
    }
    if (host->from >= 0) {
        close(host->from);
    }
    host->to = host->from = -1;
    frames_free(&host->in);
    frames_free(&host->out);
}

static void lose(struct hosts *h, struct host *host, const char *why)
{
    char text[512];
    bool done = host->ended && host->running == 0;
    if (host->state == HOST_OVER) {
        return;
    }
    close_pipes(host);
    host->state = HOST_OVER;
    host->running = 0;
    for (int r = host->first; r < host->first + host->count; r++) {
        pmi_rank_gone(h->pmi->server, r);
    }
    if (!done) {
        snprintf(text, sizeof(text), "host %s: %s", host->name, why);
        h->up.lost(h->up.arg, text);
    }
}

/* Ends a host whose connection has ended, with an error that says why, as far as the shell's exit
 * status tells. */
static void lose_connection(struct hosts *h, struct host *host)
{
    char why[400];
    bool code = host->shell_code == CLD_EXITED;
    int status = host->shell_status;
    if (host->state == HOST_UP) {
        snprintf(why, sizeof(why), "the connection was lost; its ranks end by themselves");
    } else if (code && status == LAUNCH_NOT_FOUND) {
        snprintf(why, sizeof(why),
                 "there is no %s; install Pinwheel there, or say with --remote where it is",
                 h->command);
    } else if (code && status == 2) {
        snprintf(why, sizeof(why), "its %s does not know --agent: it is an older one", h->command);
    } else {
        snprintf(why, sizeof(why),
                 "cannot be reached: the command that goes there ended with %s %d; "
                 "`ssh %s true` must work without a question, or --ssh name another command",
                 code ? "status" : "signal", status, host->name);
    }
    lose(h, host, why);
}

void hosts_look(struct hosts *h)
{
    siginfo_t how;
    int64_t now = now_ms();
    for (int i; (i = children_exited(&h->shells, &how)) >= 0;) {
        h->at[i].shell_code = how.si_code;
        h->at[i].shell_status = how.si_status;
        h->at[i].since = now;
    }
    for (int i = 0; i < h->count; i++) {
        struct host *host = &h->at[i];
        if (host->state == HOST_OVER) {
            continue;
        }
        if (host->from < 0 && (host->shell_code != 0 || now - host->since > REAP_MS)) {
            lose_connection(h, host);
        } else if (host->state == HOST_STARTING && now - host->since > ANSWER_MS) {
            lose(h, host, "has not answered for a minute; look whether it is up");
        } else if (host->state == HOST_UP && host->from >= 0 && now - host->since > SILENCE_MS) {
            lose(h, host, "has said nothing for a minute; look whether it is up");
        }
    }
    if (now >= h->alive_at) {
        h->alive_at = now + ALIVE_MS;
        for (int i = 0; i < h->count; i++) {
            if (h->at[i].state == HOST_UP) {
                frames_put(&h->at[i].out, FRAME_ALIVE, 0, NULL, 0);
            }
        }
    }
}

int64_t hosts_deadline(const struct hosts *h)
{
    int64_t at = h->alive_at;
    for (int i = 0; i < h->count; i++) {
        const struct host *host = &h->at[i];
        int64_t mine = host->state == HOST_OVER       ? INT64_MAX
                       : host->from < 0               ? host->since + REAP_MS + 1
                       : host->state == HOST_STARTING ? host->since + ANSWER_MS + 1
                                                      : INT64_MAX;
        at = mine < at ? mine : at;
    }
    return at;
}

/* ---- Frames of an agent ---- */

static void take_pmi(struct hosts *h, struct host *host, const struct frame *f)
{
    if (f->type == FRAME_PMI_END) {
        pmi_rank_gone(h->pmi->server, f->rank);
    } else if (!service_feed(h->pmi, f->rank, f->bytes, f->length)) {
        frames_put(&host->out, FRAME_PMI_END, f->rank, NULL, 0);
    }
}

/* Notes that rank 0 has taken so many bytes of its input; 0: it takes no more. */
static bool take_input_room(struct hosts *h, uint32_t taken)
{
    if (taken == 0 || h->input_room < 0) {
        h->input_room = -1;
        return true;
    }
    if (taken > (uint32_t)(INPUT_ROOM - h->input_room)) {
        return false;
    }
    h->input_room += (int)taken;
    return true;
}

/* Handles a frame; false if an agent does not send such a frame. */
static bool take_frame(struct hosts *h, struct host *host, const struct frame *f)
{
    struct hosts_upcalls *up = &h->up;
    char step[64];
    switch (f->type) {
    case FRAME_STARTED:
    case FRAME_ALIVE:
        return true;
    case FRAME_PMI:
    case FRAME_PMI_END:
        take_pmi(h, host, f);
        return true;
    case FRAME_OUT:
    case FRAME_ERR:
        up->output(up->arg, f->rank, f->type == FRAME_ERR, f->bytes, f->length);
        return true;
    case FRAME_INPUT_TAKEN:
        return host->first == 0 && take_input_room(h, frames_number(f, 0));
    case FRAME_FAILED:
        snprintf(step, sizeof(step), "%.*s", f->length > 4 ? (int)(f->length - 4) : 0,
                 (const char *)f->bytes + 4);
        host->running--;
        pmi_rank_gone(h->pmi->server, f->rank);
        up->failed(up->arg, f->rank, (int)frames_number(f, 0), step);
        return host->running >= 0;
    case FRAME_EXITED:
        host->running--;
        up->exited(up->arg, f->rank, (int)frames_number(f, 0), (int)frames_number(f, 1));
        pmi_rank_gone(h->pmi->server, f->rank);
        return host->running >= 0;
    case FRAME_LEFT:
        up->left(up->arg, f->rank, f->length > 0 && f->bytes[0] != 0);
        return true;
    case FRAME_DONE:
        host->state = HOST_OVER;
        close_pipes(host);
        return true;
    default:
        return false;
    }
}

static void take_greeting(struct hosts *h, struct host *host)
{
    const uint8_t *noise;
    size_t length;
    char version[64], why[256];
    int rc = frames_greeting(&host->in, &noise, &length, version);
    if (rc == 0) {
        return;
    }
    if (rc < 0) {
        lose(h, host, "its shell says a lot, but no agent of Pinwheel's answers");
        return;
    }
    if (length > 0) { /* text that the start-up files of the shell on that host have printed */
        fwrite(noise, 1, length, stderr);
    }
    if (strcmp(version, PINWHEEL_VERSION) != 0) {
        snprintf(why, sizeof(why), "has Pinwheel %s, this host %s; all need the same", version,
                 PINWHEEL_VERSION);
        lose(h, host, why);
        return;
    }
    host->state = HOST_UP;
}

static void read_host(struct hosts *h, struct host *host)
{
    ssize_t n = frames_read(&host->in, host->from);
    host->since = n > 0 ? now_ms() : host->since;
    if (host->state == HOST_STARTING) {
        take_greeting(h, host);
    }
    struct frame f;
    int rc = 0;
    while (host->state == HOST_UP && (rc = frames_get(&host->in, &f)) > 0) {
        bool known = f.rank >= host->first && f.rank < host->first + host->count;
        if (!known || !take_frame(h, host, &f)) {
            rc = -EPROTO;
            break;
        }
    }
    if (host->state == HOST_OVER) {
        return;
    }
    if (rc < 0) {
        lose(h, host, "sends what no agent of Pinwheel's sends");
    } else if (n == 0 || (n < 0 && n != -EAGAIN)) {
        close_pipes(host); /* hosts_look() reports why, when the shell has exited */
        host->since = now_ms();
        hosts_look(h);
    }
}

/* ---- Messages to agents ---- */

static void queue_answers(struct hosts *h, struct host *host)
{
    for (int r = host->first; r < host->first + host->count; r++) {
        size_t length;
        const char *bytes = pmi_output(h->pmi->server, r, &length);
        length = length < FRAME_MAX ? length : FRAME_MAX;
        if (length > 0 && frames_queued(&host->out) < FRAMES_QUEUE &&
            frames_put(&host->out, FRAME_PMI, r, bytes, length)) {
            pmi_output_sent(h->pmi->server, r, length);
        }
    }
}

void hosts_poll(struct hosts *h, struct pollfd *fds, bool reading)
{
    for (int i = 0; i < h->count; i++) {
        struct host *host = &h->at[i];
        if (host->state == HOST_UP) {
            queue_answers(h, host);
        }
        host->since = host->state == HOST_UP && !reading ? now_ms() : host->since;
        bool writing = host->state == HOST_UP && frames_queued(&host->out) > 0;
        fds[2 * i] = (struct pollfd){.fd = writing ? host->to : -1, .events = POLLOUT};
        fds[2 * i + 1] = (struct pollfd){.fd = reading ? host->from : -1, .events = POLLIN};
    }
}

void hosts_work(struct hosts *h, const struct pollfd *fds)
{
    for (int i = 0; i < h->count; i++) {
        struct host *host = &h->at[i];
        if (fds[2 * i].revents != 0 && host->to >= 0 && frames_write(&host->out, host->to) != 0) {
            close(host->to); /* the agent's last bytes may still be in the other pipe */
            host->to = -1;
            frames_free(&host->out);
        }
        if (fds[2 * i + 1].revents != 0 && host->from >= 0) {
            read_host(h, host);
        }
    }
}

void hosts_signal(struct hosts *h, int signal)
{
    uint8_t number = (uint8_t)signal;
    for (int i = 0; i < h->count; i++) {
        struct host *host = &h->at[i];
        if (host->state == HOST_UP) {
            host->since = now_ms(); /* the launcher may have been stopped since the last frame */
            frames_put(&host->out, FRAME_SIGNAL, host->first, &number, 1);
            /* at once, since the signal may stop the launcher next */
            frames_write(&host->out, host->to);
        } else if (host->state == HOST_STARTING && signal != SIGCONT && signal != SIGUSR1 &&
                   signal != SIGUSR2 && signal != SIGSTOP) {
            lose(h, host, "has not answered yet");
        }
    }
}

void hosts_input(struct hosts *h, const void *bytes, size_t length)
{
    if (h->at[0].state != HOST_OVER && h->input_room >= 0) {
        frames_put(&h->at[0].out, FRAME_INPUT, 0, bytes, length);
        h->input_room = length == 0 ? -1 : h->input_room - (int)length;
    }
}

void hosts_end(struct hosts *h)
{
    for (int i = 0; i < h->count; i++) {
        if (h->at[i].state == HOST_UP && !h->at[i].ended) {
            h->at[i].ended = true;
            frames_put(&h->at[i].out, FRAME_END, h->at[i].first, NULL, 0);
        }
    }
}

bool hosts_over(const struct hosts *h)
{
    for (int i = 0; i < h->count; i++) {
        if (h->at[i].state != HOST_OVER) {
            return false;
        }
    }
    return true;
}

int hosts_running(const struct hosts *h)
{
    int running = 0;
    for (int i = 0; i < h->count; i++) {
        running += h->at[i].running;
    }
    return running;
}

/* Ends shells that still run. One whose host has sent FRAME_DONE only needs time to exit. */
void hosts_close(struct hosts *h)
{
    int64_t end = now_ms() + GRACE_MS;
    siginfo_t how;
    for (int i = 0; i < h->count; i++) {
        close_pipes(&h->at[i]);
    }
    while (h->shells.running > 0 && now_ms() < end) {
        if (children_exited(&h->shells, &how) < 0) {
            poll(NULL, 0, SCAN_MS);
        }
    }
    children_signal(&h->shells, SIGKILL);
    children_close(&h->shells);
    free(h->at);
}
