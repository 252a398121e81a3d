/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal record`: runs a command that starts an MPI program, and loads the recorder into
 * the program, but not into its launcher:
 *
 *     mpirun -n 4 ./program      becomes
 *     mpirun -n 4 env LD_PRELOAD=.../libpinwheel-trace-openmpi.so PINWHEEL_TRACE=FOLDER ./program
 *
 * The program is found among the words of the command: it is an executable that needs an MPI
 * library, as the dynamic linker lists them for ldd. The library tells which recorder to load.
 */
#include "commands.h"
#include "pinwheel/util/program.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct args_option record_options[] = {
    {"-o", "FOLDER", "where to record; must be empty or new (needed)", ARGS_TEXT, .at = 0,
     .size = sizeof(const char *)},
};

static const struct recorder {
    const char *library; /* shared library that a program of this MPI needs */
    const char *file;
    const char *package;
} recorders[] = {
    {"libmpi.so.", "libpinwheel-trace-openmpi.so", "libopenmpi-dev"},
    {"libmpich.so.", "libpinwheel-trace-mpich.so", "libmpich-dev"},
};

enum { RECORDERS = sizeof(recorders) / sizeof(recorders[0]) };

/* ---- Which word is the program ---- */

/* Returns the recorder for the MPI that a program needs; NULL: it needs none. */
static const struct recorder *recorder_of(const char *path)
{
    const char *libraries[RECORDERS];
    for (size_t i = 0; i < RECORDERS; i++) {
        libraries[i] = recorders[i].library;
    }
    int found = program_needs(path, libraries, RECORDERS);
    return found >= 0 ? &recorders[found] : NULL;
}

/* ---- The command ---- */

/* True if a folder has no files: those of an older recording would be taken for ranks of this
 * one. */
static bool is_empty(const char *folder)
{
    DIR *d = opendir(folder);
    int entries = 0;
    while (d != NULL && readdir(d) != NULL) {
        entries++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return entries <= 2; /* "." and ".." */
}

static int make_folder(const struct args *a, const char *folder, char *path)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        args_error(a, "-o %s: %s", folder, strerror(errno));
        return -1;
    }
    if (realpath(folder, path) == NULL || access(path, R_OK | W_OK | X_OK) != 0) {
        args_error(a, "-o %s: %s", folder, strerror(errno));
        return -1;
    }
    if (!is_empty(path)) {
        args_error(a, "-o %s: is not empty; a recording needs a folder of its own", folder);
        return -1;
    }
    return 0;
}

/* The words of the new command; each program takes up to four words more. */
struct command {
    char **words;
    int count;
    int programs;
};

static int add_program(const struct args *a, struct command *c, const struct recorder *r,
                       const char *folder)
{
    char library[PATH_MAX], *preload, *where;
    const char *before = getenv("LD_PRELOAD");
    if (!program_beside("src/trace", r->file, library, sizeof(library))) {
        args_error(a, "%s: is not there; Pinwheel was built without the Debian package %s", r->file,
                   r->package);
        return -1;
    }
    bool others = before != NULL && *before != '\0';
    if (asprintf(&preload, "LD_PRELOAD=%s%s%s", library, others ? ":" : "", others ? before : "") <
            0 ||
        asprintf(&where, "PINWHEEL_TRACE=%s", folder) < 0) {
        args_error(a, "no memory");
        return -1;
    }
    c->words[c->count++] = "env";
    c->words[c->count++] = preload;
    c->words[c->count++] = where;
    c->programs++;
    return 0;
}

/* Builds the new command. Each part between ":" has one program: its first word that needs an
 * MPI. */
static int build(const struct args *a, struct command *c, const char *folder)
{
    bool sought = true;
    c->words = calloc((size_t)(a->argc - a->next) * 4 + 1, sizeof(*c->words));
    if (c->words == NULL) {
        args_error(a, "no memory");
        return -1;
    }
    for (int i = a->next; i < a->argc; i++) {
        char path[PATH_MAX];
        sought |= strcmp(a->argv[i], ":") == 0;
        const struct recorder *r =
            sought && program_find(a->argv[i], path, sizeof(path)) ? recorder_of(path) : NULL;
        if (r != NULL && add_program(a, c, r, folder) != 0) {
            return -1;
        }
        sought &= r == NULL;
        c->words[c->count++] = a->argv[i];
    }
    if (c->programs == 0) {
        args_error(a,
                   "no word of the command is a program that needs Open MPI (libmpi.so) or MPICH "
                   "(libmpich.so); a script's program must be named itself");
        return -1;
    }
    return 0;
}

int goal_command_record(int argc, char **argv)
{
    struct args a = {.command = "goal record",
                     .operands = "COMMAND [ARGUMENT]...",
                     .summary = "Runs a command that starts an MPI program, and records what the "
                                "program calls.\n`pinwheel goal trace` makes a schedule of it.",
                     ARGS_OPTIONS(record_options)};
    const char *folder = NULL;
    char path[PATH_MAX];
    struct command c = {0};
    int status = args_parse(&a, argc, argv, &folder);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (folder == NULL || a.next >= argc) {
        return args_error(&a, "%s",
                          folder == NULL ? "-o FOLDER is needed: where to record"
                                         : "which COMMAND? like mpirun -n 4 ./program");
    }
    if (make_folder(&a, folder, path) != 0 || build(&a, &c, path) != 0) {
        free(c.words);
        return 2;
    }
    execvp(c.words[0], c.words);
    fprintf(stderr, "pinwheel goal record: %s: %s\n", c.words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
