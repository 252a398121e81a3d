/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that do not end well, under any launcher: a rank that aborts, a launcher
 * that is killed. Usage: ends CLIENT LAUNCHER [OPTION]...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outcome.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 32, RANKS = 3 };

static const char *client, **launcher;
static bool is_pmix;
static struct outcome o;

/* Starts LAUNCHER OPTION... -n RANKS CLIENT mode argument. */
static void start(const char *mode, const char *argument, const char *const before[])
{
    const char *argv[WORDS_MAX + 16];
    int n = 0;
    for (int i = 0; before != NULL && before[i] != NULL; i++) {
        argv[n++] = before[i];
    }
    for (int i = 0; launcher[i] != NULL && i < WORDS_MAX; i++) {
        argv[n++] = launcher[i];
    }
    const char *const rest[] = {"-n", "3", client, mode, argument, NULL};
    memcpy(argv + n, rest, sizeof(rest));
    outcome_start(&o, argv);
}

/* Open MPI 4.1's mpirun itself sometimes hangs or crashes in PMIx_server_finalize() of
 * libpmix 4.2 when all ranks have ended; what is asked here is that they have. */
static bool launcher_failed(void)
{
    int by = o.status > 1000 ? o.status - 1000 : o.status - 128; /* it; timeout, which tells it */
    return is_pmix &&
           (by == SIGKILL || (by == SIGSEGV && strstr(o.err, "PMIx_server_finalize") != NULL));
}

static void an_abort_ends_all_ranks_with_its_code(void **state)
{
    static const char *const limit[] = {"timeout", "-s", "KILL", "10", NULL};
    int ended = 0;
    start("abort", "7", is_pmix ? limit : NULL);
    outcome_end(&o);
    if (o.status != 7 && !launcher_failed()) {
        fail_msg("status %d, it said:\n%s%s", o.status, o.out, o.err);
    }
    char *rest = o.out, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *end;
        long pid = strtol(line, &end, 10);
        if (end != line && *end == '\0') {
            assert_true(process_ended((pid_t)pid));
            ended++;
        }
    }
    assert_int_equal(ended, RANKS);
}

/* Reads the note FOLDER/rank+suffix; false if there is none. */
static bool read_note(const char *folder, int rank, const char *suffix, char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%d%s", folder, rank, suffix);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    size_t n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    return true;
}

static pid_t await_pid(const char *folder, int rank)
{
    char text[32];
    for (int i = 0; i < 2000; i++) {
        if (read_note(folder, rank, "", text, sizeof(text))) {
            return (pid_t)atoi(text);
        }
        usleep(10000);
    }
    fail_msg("rank %d did not get as far as its note in %s", rank, folder);
    return -1;
}

/* What a killed launcher leaves (Open MPI's mpirun: its folder of the session)
 * is removed with the test's own folder. */
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        char name[1024];
        struct stat st;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            lstat(name, &st) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            remove_folder(name);
        } else {
            unlink(name);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    rmdir(path);
}

/* A rank that waits in a barrier is ended, or gets an error; it does not hang. */
static void a_killed_launcher_leaves_no_rank_waiting(void **state)
{
    char folder[] = "/tmp/pinwheel-ends-XXXXXX", text[2048];
    pid_t pids[RANKS];
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    start("lost", folder, NULL);
    for (int r = 0; r < RANKS; r++) {
        pids[r] = await_pid(folder, r);
    }
    usleep(100000); /* into the barrier; too early would be right as well */
    kill(o.pid, SIGKILL);
    for (int r = 1; r < RANKS; r++) {
        assert_true(process_ended(pids[r]));
        bool told = read_note(folder, r, ".end", text, sizeof(text));
        assert_true(told || !is_pmix); /* no other way out there */
        if (told && strncmp(text, "barrier -32 get ", 16) != 0) {
            fail_msg("rank %d: %s", r, text);
        }
        if (is_pmix && strcmp(text, "barrier -32 get 0 -32 finalize -32: the launcher went away: "
                                    "PMIx gave UNREACHABLE (-25) for PMIx_Fence") != 0) {
            fail_msg("rank %d: %s", r, text);
        }
    }
    kill(pids[0], SIGKILL);
    outcome_end(&o);
    unsetenv("TMPDIR");
    remove_folder(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_ends_all_ranks_with_its_code),
        cmocka_unit_test(a_killed_launcher_leaves_no_rank_waiting),
    };
    if (argc < 3 || argc > WORDS_MAX) {
        fprintf(stderr, "usage: ends CLIENT LAUNCHER [OPTION]...\n");
        return 2;
    }
    client = argv[1];
    launcher = (const char **)argv + 2;
    is_pmix = strstr(argv[2], "openmpi") != NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
