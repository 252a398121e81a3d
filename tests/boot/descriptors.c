/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel` where few descriptors may be open: what fits works, what does not is refused with
 * what helps, and nobody takes "none is left" for "it is not there".
 * Usage: descriptors PINWHEEL
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hpu/rv32/elfutils.h"
#include "outcome.h"
#include "pinwheel/launch/groups.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pinwheel;
static struct outcome o;

/* Runs `pinwheel` with these words where at most `most` descriptors may be open. One that hangs is
 * killed, as it may not listen to signals. */
static void limited(int most, const char *words)
{
    char script[512];
    snprintf(script, sizeof(script), "ulimit -n %d; exec timeout -s KILL 100 \"$0\" %s", most,
             words);
    const char *const argv[] = {"bash", "-c", script, pinwheel, NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

/* The launcher has room for three descriptors of a rank even where the ranks have one. */
static void places_that_are_empty_need_no_limit(void **state)
{
    limited(64, "run -n 20 true");
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
}

/* A job that does not fit is refused as a whole, and fits with the number that is named. */
static void refused(int most, const char *words, int ranks)
{
    char expected[128];
    int needs = 0;
    limited(most, words);
    assert_int_equal(o.status, 1);
    assert_string_equal(o.out, "");
    snprintf(expected, sizeof(expected), "pinwheel run: a job of %d ranks", ranks);
    assert_contains(o.err, expected);
    snprintf(expected, sizeof(expected), "the hard limit is %d: raise it (ulimit -Hn ", most);
    assert_contains(o.err, expected);
    const char *at = strstr(o.err, " needs ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, " needs %d", &needs), 1);
    assert_true(needs > most);
    assert_int_equal(strcspn(o.err, "\n"), strlen(o.err) - 1); /* one line */
    limited(needs, words);
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
    limited(needs - 1, words);
    assert_int_equal(o.status, 1);
}

static void jobs_that_do_not_fit_are_refused(void **state)
{
    refused(10, "run -n 2 true", 2);
    refused(64, "run -n 60 true", 60);
    refused(64, "run --label -n 20 echo x", 20);
}

/* Takes all descriptors but `left` from this process, and gives them back. */
static struct rlimit before;

static void leave(rlim_t left)
{
    int first = dup(0);
    close(first);
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit low = {(rlim_t)first + left, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static void give_back(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Of a group that lives, a process with no descriptor left says that it cannot tell. */
static void a_process_without_descriptors_cannot_tell_who_lives(void **state)
{
    pid_t group = fork();
    if (group == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(group, group);
    assert_int_equal(groups_alive(&group, 1), 0);
    for (rlim_t left = 0; left < 2; left++) { /* one: for /proc, and not for what is in it */
        leave(left);
        int told = groups_alive(&group, 1);
        give_back();
        assert_int_equal(told, GROUPS_LATER);
    }
    assert_int_equal(groups_alive(&group, 1), 0);
    kill(group, SIGKILL);
    waitpid(group, NULL, 0);
    assert_int_equal(groups_alive(&group, 1), GROUPS_NONE);
}

/* A library that cannot be opened now is there all the same, and can be opened later. */
static void a_library_that_cannot_be_opened_is_not_missing(void **state)
{
    struct rv32_error error;
    leave(0);
    int rc = elfutils_load(&error);
    give_back();
    assert_int_equal(rc, -1);
    assert_contains(error.text, "images cannot be read: ");
    assert_contains(error.text, "Too many open files");
    assert_null(strstr(error.text, "install"));
    assert_int_equal(elfutils_load(&error), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_that_are_empty_need_no_limit),
        cmocka_unit_test(jobs_that_do_not_fit_are_refused),
        cmocka_unit_test(a_process_without_descriptors_cannot_tell_who_lives),
        cmocka_unit_test(a_library_that_cannot_be_opened_is_not_missing),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: descriptors PINWHEEL\n");
        return 2;
    }
    pinwheel = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
