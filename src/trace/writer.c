/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the file of a rank. Lines are collected in a buffer, which is written when it is full, or
 * when it was last written more than a tenth of a second ago: so a program that is killed leaves
 * all lines but the last.
 *
 * One lock guards all of this; a thread holds it while it makes a line, and never during a call of
 * PMPI_ that might wait.
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, LINE_ROOM = 512, NAMES = 64 };
#define FLUSH_AFTER 100000000 /* ns */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static char *buffer;
static size_t used;      /* bytes in the buffer */
static size_t complete;  /* how many of these are whole lines */
static uint64_t flushed; /* when the buffer was last written */
static uint64_t origin;  /* time 0 of the recording; 0: it has not begun */
static uint64_t init_took;
static clockid_t timer = CLOCK_MONOTONIC; /* what lines count */
static unsigned threads;                  /* threads that have made a call so far */
static pid_t owner;                       /* the process that records; a forked child does not */

/* Calls of this thread since its last line that found no completion. */
static _Thread_local uint64_t poll_count, poll_start, poll_time;

/* Time 0 of this thread: of the processor's clock each thread has its own. Threads other than the
 * one of MPI_Init begin at its end. */
static _Thread_local uint64_t thread_origin;
static _Thread_local int depth;
static _Thread_local unsigned thread; /* number of the thread + 1; 0: it has none yet */

static uint64_t time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
    return time_of(timer);
}

/* Before the first call: PINWHEEL_TRACE_CLOCK says what lines count. */
__attribute__((constructor)) static void choose_clock(void)
{
    const char *clock = getenv("PINWHEEL_TRACE_CLOCK");
    if (clock != NULL && strcmp(clock, "cpu") == 0) {
        timer = CLOCK_THREAD_CPUTIME_ID;
    }
}

/* Sets `file` to -1 before it closes the file: so a thread that forks meanwhile leaves its child
 * either an open file or none. */
static int close_file(void)
{
    int last = file;
    file = -1;
    return last >= 0 ? close(last) : 0;
}

static void give_up(const char *what, const char *path, int code)
{
    fprintf(stderr, "pinwheel trace: %s %s: %s; the recording ends here\n", what, path,
            strerror(code));
    close_file();
}

void trace_lock(void)
{
    pthread_mutex_lock(&lock);
}

void trace_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- The buffer ---- */

static void write_lines(void)
{
    size_t done = 0;
    while (file >= 0 && done < complete) {
        ssize_t n = write(file, buffer + done, complete - done);
        if (n < 0 && errno != EINTR) {
            give_up("cannot write", "the recording", errno);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    memmove(buffer, buffer + complete, used - complete);
    used -= complete;
    complete = 0;
    flushed = time_of(CLOCK_MONOTONIC);
}

/* Appends text to the buffer. If a single line is longer than the buffer it goes to the file in
 * pieces; that happens only for a communicator or vector collective of many thousand ranks. */
static void put(const char *text, size_t length)
{
    if (used + length > BUFFER) {
        complete = used;
        write_lines();
    }
    memcpy(buffer + used, text, length);
    used += length;
}

static void put_number(int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        digits[--at] = '-';
    }
    put(digits + at, sizeof(digits) - at);
}

/* ---- Lines ---- */

static void begin(const char *name, uint64_t start, uint64_t took)
{
    put(name, strlen(name));
    if (thread > 1) {
        put("/", 1);
        put_number(thread - 1);
    }
    trace_number((int64_t)(start - (timer == CLOCK_MONOTONIC ? origin : thread_origin)));
    trace_number((int64_t)took);
}

static void end(void)
{
    put("\n", 1);
    complete = used;
}

static void end_polls(void)
{
    if (poll_count > 0) {
        begin("Poll", poll_start, poll_time);
        trace_number((int64_t)poll_count);
        end();
        poll_count = 0;
    }
}

void trace_begin(const struct trace_call *c, const char *name)
{
    uint64_t ended = now();
    trace_lock();
    if (file < 0) {
        return;
    }
    end_polls();
    begin(name, c->start, ended - c->start);
}

void trace_number(int64_t number)
{
    if (file >= 0) {
        put(" ", 1);
        put_number(number);
    }
}

void trace_end(void)
{
    if (file >= 0) {
        end();
        if (used > BUFFER - LINE_ROOM || time_of(CLOCK_MONOTONIC) - flushed > FLUSH_AFTER) {
            write_lines();
        }
    }
    trace_unlock();
}

void trace_line(const struct trace_call *c, const char *name, int count, const int64_t *numbers)
{
    trace_begin(c, name);
    for (int i = 0; i < count; i++) {
        trace_number(numbers[i]);
    }
    trace_end();
}

static void named_line(const struct trace_call *c, const char *kind)
{
    trace_begin(c, kind);
    if (file >= 0) {
        put(" ", 1);
        put(c->name, strlen(c->name));
    }
}

void trace_other(const struct trace_call *c)
{
    named_line(c, "Other");
    trace_end();
}

void trace_poll(const struct trace_call *c)
{
    if (poll_count++ == 0) {
        poll_start = c->start;
        poll_time = 0;
    }
    poll_time += now() - c->start;
}

/* ---- Calls ---- */

void trace_enter(struct trace_call *c)
{
    c->outermost = depth++ == 0;
    c->start = file >= 0 || origin == 0 ? now() : 0;
}

bool trace_leave(struct trace_call *c, int rc)
{
    depth--;
    if (!c->outermost || file < 0) {
        return false;
    }
    if (thread == 0) {
        thread_origin = (uint64_t)0 - init_took;
        thread = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    }
    if (rc != MPI_SUCCESS) {
        named_line(c, "Error");
        trace_number(rc);
        trace_end();
    }
    return rc == MPI_SUCCESS;
}

/* ---- The file ---- */

/* In a forked child: the recording stays the parent's, so the child closes the file; the lock may
 * have been taken by a thread that does not exist in the child. */
static void in_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    close_file();
}

/* Writes the rest of the buffer at exit(), but only in the process that records: a child made by a
 * raw clone() has the same buffer, and the parent will write it. */
static void at_exit(void)
{
    if (getpid() == owner) {
        trace_flush();
    }
}

void trace_open(const struct trace_call *c, int level)
{
    const char *folder = getenv("PINWHEEL_TRACE");
    char path[4096], head[NAMES];
    int rank, size;
    if (folder == NULL || *folder == '\0') {
        folder = "pinwheel-trace";
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    int length = snprintf(path, sizeof(path), "%s/rank-%d.trace", folder, rank);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        give_up("cannot make", folder, ENAMETOOLONG);
        return;
    }
    mkdir(folder, 0777);
    buffer = malloc(BUFFER + LINE_ROOM);
    file = buffer != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file < 0) {
        give_up("cannot make", path, buffer != NULL ? errno : ENOMEM);
        return;
    }
    origin = thread_origin = c->start;
    flushed = time_of(CLOCK_MONOTONIC);
    thread = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    snprintf(head, sizeof(head), "pinwheel-mpi-trace 1 %d %d\n", rank, size);
    put(head, strlen(head));
    trace_comms_open();
    trace_line(c, "Init", 1, (int64_t[]){level});
    init_took = now() - origin;
    pthread_atfork(NULL, NULL, in_child);
    owner = getpid();
    atexit(at_exit);
    trace_flush();
}

void trace_flush(void)
{
    trace_lock();
    if (file >= 0) {
        write_lines();
    }
    trace_unlock();
}

void trace_close(void)
{
    trace_flush();
    trace_lock();
    if (close_file() != 0) {
        fprintf(stderr, "pinwheel trace: cannot write the recording: %s\n", strerror(errno));
    }
    free(buffer);
    buffer = NULL;
    trace_unlock();
}

/* ---- Sizes ---- */

int64_t trace_bytes(int64_t count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || count <= 0) {
        return 0;
    }
    PMPI_Type_size_x(type, &size);
    return count * (int64_t)size;
}

int64_t trace_received(const MPI_Status *status)
{
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    return bytes > 0 ? (int64_t)bytes : 0;
}
