/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the program of one value of a figure: under `pinwheel sim`, on the machine of the row, or
 * alone. HPUs that are to count cycles have a machine of their own, which `pinwheel sim` reads from
 * memory of this process.
 */
#include "value.h"

#include "pinwheel/util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WORDS = 24, WORD = PATH_MAX + 64 };
enum { MESSAGES = 64 }; /* of a sender, side by side */

/* A command, and what is besides in its environment. */
struct command {
    char text[WORDS][WORD];
    char *argv[WORDS + 1], **environment;
    char rv32[32], packet[40];
    int count, machine; /* the machine's memory; -1 */
};

bool value_find_programs(const char *given, const struct figure *f, char folder[PATH_MAX])
{
    char name[PATH_MAX];
    if (given != NULL) {
        return realpath(given, folder) != NULL;
    }
    bool found =
        program_beside(f->folder != NULL ? f->folder : "bench", f->program, name, sizeof(name));
    if (found) {
        *strrchr(name, '/') = '\0';
        snprintf(folder, PATH_MAX, "%s", name);
    }
    return found;
}

/* Reads the number before the last unit of what a program has printed. */
static bool read_value(FILE *from, const struct figure *f, uint64_t *ps)
{
    char line[512], last[32];
    bool found = false;
    snprintf(last, sizeof(last), " %s\n", f->unit != NULL ? f->unit : "ps");
    while (fgets(line, sizeof(line), from) != NULL) {
        char *end = strstr(line, last);
        if (f->alone && strcmp(line, "fails\n") == 0) {
            *ps = FIGURE_FAILS;
            found = true;
        }
        while (end != NULL && end > line && end[-1] >= '0' && end[-1] <= '9') {
            end--;
        }
        if (end != NULL && *end >= '0' && *end <= '9') {
            *ps = strtoull(end, NULL, 10);
            found = true;
        }
    }
    return found;
}

/* ---- the command ---- */

__attribute__((format(printf, 2, 3))) static void add(struct command *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->text[c->count], WORD, format, arguments);
    va_end(arguments);
    c->argv[c->count] = c->text[c->count];
    c->argv[++c->count] = NULL;
}

/* A machine as `base`, whose HPUs have another clock, or messages side by side, for other processes
 * to read; -1: errno is set. */
static int machine_of(const char *base, bool cycles, bool side_by_side)
{
    int fd = memfd_create("pinwheel reproduce", MFD_CLOEXEC);
    if (fd >= 0 && (dprintf(fd, "base = \"%s\"\n", base) < 0 ||
                    (cycles && dprintf(fd, "clock = \"%dMHz\"\n", FIGURE_HPU_MHZ) < 0) ||
                    (side_by_side && dprintf(fd, "entry_messages = %d\n", MESSAGES) < 0))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The environment, with up to two variables in front, of which the first of a name holds. */
static bool set_environment(struct command *c, bool cycles, bool packet)
{
    size_t n = 0, at = 0;
    while (environ[n] != NULL) {
        n++;
    }
    c->environment = calloc(n + 3, sizeof(*c->environment));
    if (c->environment == NULL) {
        return false;
    }
    if (cycles) {
        c->environment[at++] = c->rv32;
    }
    if (packet) {
        c->environment[at++] = c->packet;
    }
    for (size_t i = 0; i < n; i++) {
        bool ours = (cycles && strncmp(environ[i], "PINWHEEL_HPU=", 13) == 0) ||
                    (packet && strncmp(environ[i], "PINWHEEL_PACKET_SIZE=", 21) == 0);
        if (!ours) {
            c->environment[at++] = environ[i];
        }
    }
    return true;
}

/* What an `alone` figure runs. */
static void add_alone(struct command *c, const char *folder, const struct figure *f,
                      const struct figure_row *row, int way)
{
    char here[PATH_MAX] = "pinwheel";
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    here[length > 0 ? length : 0] = '\0';
    add(c, "%s/%s", folder, f->program);
    add(c, "%s", f->name);
    add(c, "%" PRIu32, row->ranks);
    if (f->trace != NULL) {
        add(c, "%s", f->trace[row->bytes]);
        add(c, "%s", f->way[way]);
        add(c, "%s", row->nic);
        add(c, "%s", here);
    } else {
        add(c, "%" PRIu32, row->bytes);
        add(c, "%s", f->way[way]);
    }
}

static bool make_command(struct command *c, const char *folder, const struct figure *f,
                         const struct figure_row *row, int way)
{
    bool cycles = !f->alone && (f->cycles >> way & 1) != 0;
    c->count = 0;
    bool own = cycles || f->side_by_side;
    c->machine = own ? machine_of(row->nic, cycles, f->side_by_side) : -1;
    snprintf(c->rv32, sizeof(c->rv32), "PINWHEEL_HPU=rv32");
    snprintf(c->packet, sizeof(c->packet), "PINWHEEL_PACKET_SIZE=%" PRIu32, row->bytes);
    if (f->alone) {
        add_alone(c, folder, f, row, way);
    } else {
        add(c, "pinwheel");
        add(c, "sim");
        add(c, "--quiet");
        add(c, "-n");
        add(c, "%" PRIu32, row->ranks);
        add(c, "--nic");
        if (own) {
            add(c, "/proc/%d/fd/%d", getpid(), c->machine);
        } else {
            add(c, "%s", row->nic);
        }
        if (f->hpus != 0) {
            add(c, "--hpus");
            add(c, "%" PRIu32, f->hpus);
        }
        add(c, "--handler");
        add(c, "%s", f->way_is_handler ? f->way[way] : "10ns");
        add(c, "%s/%s", folder, f->program);
        add(c, "%" PRIu32, row->bytes);
        add(c, "%s", f->way[way]);
    }
    return (!own || c->machine >= 0) && set_environment(c, cycles, !f->alone && f->size_is_packet);
}

static void say_none(const struct command *c, const struct figure *f, const struct figure_row *row,
                     int way, const char *what)
{
    char of[REPRODUCE_OF];
    fprintf(stderr, "pinwheel reproduce: no %s of figure %s, %s, %s, %u ranks: `",
            f->unit != NULL ? f->unit : "time", f->name, f->way[way],
            reproduce_of(f, row->bytes, true, of), row->ranks);
    for (int i = 0; i < c->count; i++) {
        fprintf(stderr, "%s%s", c->text[i], i + 1 < c->count ? " " : "` ");
    }
    fprintf(stderr, "%s\n", what);
}

/* Runs a command, and reads its value; NULL, or what went wrong: `not_here` if that is what it has
 * said. */
static const char not_here[] = "is not to be had here";

static const char *run(struct command *c, const struct figure *f, uint64_t *ps)
{
    int ends[2], status = -1;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return strerror(errno);
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int rc = posix_spawn(&child, f->alone ? c->argv[0] : "/proc/self/exe", &actions, NULL, c->argv,
                         c->environment);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "re");
    bool found = rc == 0 && from != NULL && read_value(from, f, ps);
    if (from != NULL) {
        fclose(from);
    } else {
        close(ends[0]);
    }
    while (rc == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (rc != 0) {
        return strerror(rc);
    }
    if (f->alone && WIFEXITED(status) && WEXITSTATUS(status) == FIGURE_NOT_HERE) {
        return not_here;
    }
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0 ? "fails" : found ? NULL : "prints none";
}

enum value_end value_run(const char *folder, const struct figure *f, const struct figure_row *row,
                         int way, uint64_t *ps)
{
    struct command *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        fprintf(stderr, "pinwheel reproduce: no memory for figure %s\n", f->name);
        return VALUE_NONE;
    }
    const char *wrong = make_command(c, folder, f, row, way) ? run(c, f, ps) : strerror(errno);
    if (wrong != NULL && wrong != not_here) {
        say_none(c, f, row, way, wrong);
    }
    if (c->machine >= 0) {
        close(c->machine);
    }
    free(c->environment);
    free(c);
    return wrong == NULL ? VALUE_FOUND : wrong == not_here ? VALUE_NOT_HERE : VALUE_NONE;
}
