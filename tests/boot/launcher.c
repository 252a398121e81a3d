/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel run` as its users see it: exit statuses, messages, output, signals,
 * and that nothing is left running. Usage: launcher PINWHEEL PMI_CLIENT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outcome.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *pinwheel, *client;
static struct outcome o;

/* run(...) runs `pinwheel run` with these words to its end. */
#define run(...)                                                                                   \
    do {                                                                                           \
        const char *const argv_[] = {pinwheel, "run", __VA_ARGS__, NULL};                          \
        outcome_start(&o, argv_);                                                                  \
        outcome_end(&o);                                                                           \
    } while (0)

#define start(...)                                                                                 \
    do {                                                                                           \
        const char *const argv_[] = {pinwheel, "run", __VA_ARGS__, NULL};                          \
        outcome_start(&o, argv_);                                                                  \
    } while (0)

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

/* Every number that stands alone on a line of the output is a pid of a process
 * that must have ended; there must be `expected` of them. */
static void assert_all_ended(int expected)
{
    int found = 0;
    char *copy = strdup(o.out), *rest = copy, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *end;
        long pid = strtol(line, &end, 10);
        if (end != line && *end == '\0') {
            found++;
            assert_true(process_ended((pid_t)pid));
        }
    }
    free(copy);
    assert_int_equal(found, expected);
}

static void success_is_status_0(void **state)
{
    run("-n", "3", "sh", "-c", "echo $PMI_RANK of $PMI_SIZE");
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    assert_contains(o.out, "0 of 3\n");
    assert_contains(o.out, "1 of 3\n");
    assert_contains(o.out, "2 of 3\n");
    run("true"); /* one rank by default */
    assert_int_equal(o.status, 0);
}

static void the_first_failure_decides(void **state)
{
    run("-n", "3", "sh", "-c", "echo $$; [ $PMI_RANK = 1 ] || exec sleep 1000; sleep .2; exit 7");
    assert_int_equal(o.status, 7);
    assert_string_equal(o.err, "pinwheel run: rank 1 exited with status 7\n");
    assert_all_ended(3);
}

static void a_signal_is_named(void **state)
{
    run("-n", "2", "sh", "-c",
        "echo $$; [ $PMI_RANK = 0 ] || exec sleep 1000; sleep .2; kill -9 $$");
    assert_int_equal(o.status, 128 + SIGKILL);
    assert_string_equal(o.err, "pinwheel run: rank 0 was ended by signal 9 (SIGKILL, Killed)\n");
    assert_all_ended(2);
}

static void a_rank_that_ignores_sigterm_is_killed(void **state)
{
    run("-n", "2", "sh", "-c",
        "if [ $PMI_RANK = 1 ]; then trap '' TERM; echo $$; while :; do sleep 1; done; fi; "
        "sleep .3; exit 3");
    assert_int_equal(o.status, 3);
    assert_all_ended(1);
}

static void a_stopped_rank_is_ended(void **state)
{
    run("-n", "2", "sh", "-c", "echo $$; [ $PMI_RANK = 1 ] && kill -STOP $$; sleep .3; exit 3");
    assert_int_equal(o.status, 3);
    assert_all_ended(2);
}

static void grandchildren_end_with_a_failed_job(void **state)
{
    run("-n", "2", "sh", "-c", "sleep 1000 & echo $!; [ $PMI_RANK = 0 ] && wait; sleep .3; exit 4");
    assert_int_equal(o.status, 4);
    assert_all_ended(2);
}

static void what_ranks_leave_behind_is_ended(void **state)
{
    run("-n", "2", "sh", "-c", "sleep 1000 & echo $!; exit 0");
    assert_int_equal(o.status, 0);
    assert_contains(o.err, "has left processes behind, ending them\n");
    assert_all_ended(2);
}

static void programs_that_cannot_start_are_named(void **state)
{
    run("-n", "2", "no-such-program-anywhere");
    assert_int_equal(o.status, 127);
    assert_contains(o.err, "pinwheel run: no-such-program-anywhere: no such program");
    run("-n", "2", "./no-such-file");
    assert_int_equal(o.status, 127);
    assert_contains(o.err, "pinwheel run: ./no-such-file: no such program");
    run("/dev/null");
    assert_int_equal(o.status, 126);
    assert_string_equal(o.err, "pinwheel run: /dev/null: cannot be executed: Permission denied\n");
}

static void bad_usage_says_what_would_be_right(void **state)
{
    static const struct {
        const char *words[5], *error;
    } bad[] = {
        {{"-n", "0", "true"}, "-n 0: must be a whole number from 1 to 4096"},
        {{"-n", "-3", "true"}, "-n -3: must be a whole number from 1 to 4096"},
        {{"-n", "4097", "true"}, "-n 4097: must be a whole number from 1 to 4096"},
        {{"-n", "two", "true"}, "-n two: must be a whole number from 1 to 4096"},
        {{"-n", "2x", "true"}, "-n 2x: must be a whole number from 1 to 4096"},
        {{"-n", "", "true"}, "-n : must be a whole number from 1 to 4096"},
        {{"-n", "99999999999999999999", "true"}, "must be a whole number from 1 to 4096"},
        {{"-n"}, "-n needs a value: -n N"},
        {{"-n", "2"}, "no PROGRAM given"},
        {{"--frob", "true"},
         "unknown option --frob; it takes -n N, --bind home|core|none, --label"},
        {{"-np", "2", "true"}, "unknown option -np"},
        {{"--bind", "socket", "true"}, "--bind socket: must be home, core or none"},
        {{"--bind=", "true"}, "--bind : must be home, core or none"},
        {{"--label=yes", "true"}, "--label takes no value"},
        {{"--env", "NOVALUE", "true"}, "--env NOVALUE: must be NAME=VALUE"},
        {{"--env", "=x", "true"}, "--env =x: must be NAME=VALUE"},
        {{"--env", "PMI_RANK=1", "true"}, "--env PMI_RANK=1: `pinwheel run` itself sets"},
        {{"--timeout", "0", "true"}, "--timeout 0: must be a whole number from 1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *argv[8] = {pinwheel, "run"};
        memcpy(argv + 2, bad[i].words, sizeof(bad[i].words));
        outcome_start(&o, argv);
        outcome_end(&o);
        assert_int_equal(o.status, 2);
        assert_string_equal(o.out, "");
        assert_contains(o.err, bad[i].error);
    }
}

static void output_is_labelled_by_line(void **state)
{
    run("-n", "4", "--label", "sh", "-c",
        "i=0; while [ $i -lt 300 ]; do printf a$i; printf ' b\\n'; echo x >&2; i=$((i+1)); done; "
        "printf end");
    assert_int_equal(o.status, 0);
    int next[4] = {0}, ended = 0;
    char *rest = o.out, *line;
    while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
        int rank, i, used = 0;
        if (sscanf(line, "[%d] a%d b%n", &rank, &i, &used) == 2 && line[used] == '\0') {
            assert_true(rank >= 0 && rank < 4);
            assert_int_equal(i, next[rank]++);
        } else {
            assert_int_equal(sscanf(line, "[%d] end%n", &rank, &used), 1);
            assert_int_equal(line[used], '\0');
            assert_int_equal(next[rank], 300);
            ended++;
        }
    }
    assert_int_equal(ended, 4);
    assert_string_equal(line, "");
    assert_int_equal(o.err_length, 4 * 300 * strlen("[0] x\n"));
}

static void a_long_line_stays_one_line(void **state)
{
    run("-n", "2", "--label", "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' $PMI_RANK; echo");
    assert_int_equal(o.status, 0);
    assert_int_equal(o.out_length, 2 * (200000 + strlen("[0] \n")));
    size_t first = strcspn(o.out, "\n");
    assert_int_equal(first, 200004);
    assert_int_equal(strspn(o.out + 4, (char[]){o.out[1], '\0'}), 200000);
}

static void rank_0_reads_standard_input(void **state)
{
    start("-n", "3", "--label", "cat");
    assert_int_equal(write(o.to_in, "one\ntwo", 7), 7);
    outcome_end(&o);
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "[0] one\n[0] two\n");
}

static void the_environment_is_set(void **state)
{
    run("-n", "2", "--env", "A=1", "--env", "B=x=y z", "--env=C=", "sh", "-c",
        "echo \"$A,$B,${C-unset},${PMI_PORT-unset}\"");
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "1,x=y z,,unset\n1,x=y z,,unset\n");
    setenv("PMI_PORT", "elsewhere:1", 1); /* of another launcher round this one */
    run("sh", "-c", "echo ${PMI_PORT-unset}");
    unsetenv("PMI_PORT");
    assert_string_equal(o.out, "unset\n");
}

static void names_that_are_no_options_are_told(void **state)
{
    static const char told[] =
        "pinwheel run: warning: PINWHEEL_FABRC is no option; did you mean PINWHEEL_FABRIC?\n";
    setenv("PINWHEEL_FABRC", "udp", 1);
    run("-n", "2", "true");
    unsetenv("PINWHEEL_FABRC");
    assert_string_equal(o.err, told);
    run("-n", "2", "--env", "PINWHEEL_FABRC=udp", "true");
    assert_string_equal(o.err, told);
    run("-n", "2", "--env", "PINWHEEL_FABRIC=udp", "true");
    assert_string_equal(o.err, "");
}

static void every_job_has_a_key_of_its_own(void **state)
{
    char first[33];
    run("-n", "2", "sh", "-c", "echo $PINWHEEL_JOB_KEY");
    assert_int_equal(o.out_length, 66);
    assert_int_equal(strspn(o.out, "0123456789abcdef"), 32);
    assert_memory_equal(o.out, o.out + 33, 33);
    memcpy(first, o.out, 32);
    run("sh", "-c", "echo $PINWHEEL_JOB_KEY");
    assert_memory_not_equal(o.out, first, 32);
}

static void ranks_are_bound_to_cores(void **state)
{
    cpu_set_t allowed;
    char expected[64];
    assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    run("-n", "3", "--label", "--bind", "core", "grep", "Cpus_allowed_list", "/proc/self/status");
    assert_int_equal(o.status, 0);
    for (int rank = 0; rank < 3; rank++) {
        int wanted = rank % CPU_COUNT(&allowed), core = 0;
        while (!CPU_ISSET(core, &allowed) || wanted-- > 0) {
            core++;
        }
        snprintf(expected, sizeof(expected), "[%d] Cpus_allowed_list:\t%d\n", rank, core);
        assert_contains(o.out, expected);
    }
}

/* Ranks with homes have different ones, and may run anywhere, as a thread or child of theirs. A
 * second job finds no core free, one that was killed leaves none taken. */
static void ranks_have_homes(void **state)
{
    cpu_set_t allowed, before;
    char list[256], expected[320];
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    if (CPU_COUNT(&before) < 2) {
        skip();
    }
    char n[16], folder[] = "/dev/shm/pinwheel-test-XXXXXX"; /* other jobs have other locks */
    assert_non_null(mkdtemp(folder));
    setenv("PINWHEEL_SHM_DIR", folder, 1);
    snprintf(n, sizeof(n), "%d", CPU_COUNT(&before));
    run("--bind", "none", "sh", "-c",
        "grep Cpus_allowed_list /proc/self/status; echo c=$PINWHEEL_CORE");
    assert_non_null(strstr(o.out, "c=\n"));
    snprintf(list, sizeof(list), "%.*s", (int)strcspn(o.out, "\n"), o.out);
    run("-n", n, "--label", "sh", "-c",
        "grep Cpus_allowed_list /proc/self/status; echo c=$PINWHEEL_CORE.");
    assert_int_equal(o.status, 0);
    for (int core = 0, rank = 0; rank < CPU_COUNT(&before); rank++, core++) {
        while (!CPU_ISSET(core, &before)) {
            core++;
        }
        snprintf(expected, sizeof(expected), "[%d] %s\n", rank, list);
        assert_contains(o.out, expected);
        snprintf(expected, sizeof(expected), "c=%d.\n", core);
        assert_contains(o.out, expected); /* of some rank */
    }
    /* Within the first job the second one has none, and does not take over the first one's. */
    run("-n", n, "--label", "sh", "-c",
        "test $PMI_RANK != 0 || \"$0\" run -n 2 sh -c 'echo in=$PINWHEEL_CORE.'; "
        "test $PMI_RANK != 0 || { \"$0\" run --bind core -n 2 sh -c 'echo in=$PINWHEEL_CORE.'; }",
        pinwheel);
    assert_int_equal(o.status, 0);
    assert_contains(o.out, "[0] in=.\n");
    assert_null(strstr(o.out, "in=0"));
    /* A launcher that is killed, and then all cores again. */
    run("sh", "-c", "\"$0\" run -n 2 sh -c 'test $PMI_RANK = 0 && kill -9 $PPID; sleep 10'; true",
        pinwheel);
    run("-n", n, "sh", "-c", "echo c=$PINWHEEL_CORE.");
    assert_null(strstr(o.out, "c=.\n"));
    /* Somebody has said where to run. */
    allowed = before;
    for (int core = CPU_SETSIZE - 1; core >= 0 && CPU_COUNT(&allowed) == CPU_COUNT(&before);
         core--) {
        CPU_CLR(core, &allowed);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    run("-n", "1", "sh", "-c", "echo c=$PINWHEEL_CORE.");
    assert_string_equal(o.out, "c=.\n");
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    run("sh", "-c", "rm \"$0\"/pinwheel.cores-* && rmdir \"$0\"", folder);
    assert_int_equal(o.status, 0);
    unsetenv("PINWHEEL_SHM_DIR");
}

static void the_time_limit_ends_a_job(void **state)
{
    run("-n", "2", "--timeout", "1", "sh", "-c", "echo $$; exec sleep 1000");
    assert_int_equal(o.status, 124);
    assert_string_equal(o.err, "pinwheel run: the job has not ended within 1 s, ending it\n");
    assert_all_ended(2);
}

static void end_by_signal(int signal_number, const char *script)
{
    start("-n", "3", "sh", "-c", script);
    assert_true(outcome_await(&o, "ready\n", 3));
    kill(o.pid, signal_number);
    outcome_end(&o);
    assert_all_ended(6);
}

static void signals_end_the_whole_job(void **state)
{
    static const char script[] = "sleep 1000 & echo $$; echo $!; echo ready; wait; exit 5";
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        end_by_signal(signals[i], script);
        assert_int_equal(o.status, 128 + signals[i]);
        assert_string_equal(o.err, "");
    }
}

static void a_second_interrupt_does_not_wait(void **state)
{
    start("-n", "2", "sh", "-c",
          "trap 'echo caught' INT; echo $$; echo ready; while :; do sleep .1; done");
    assert_true(outcome_await(&o, "ready\n", 2));
    kill(o.pid, SIGINT);
    assert_true(outcome_await(&o, "caught\n", 2));
    kill(o.pid, SIGINT);
    outcome_end(&o);
    assert_int_equal(o.status, 130);
    assert_all_ended(2);
}

static void a_killed_launcher_leaves_nothing(void **state)
{
    end_by_signal(SIGKILL, "sleep 1000 & echo $$; echo $!; echo ready; wait");
    assert_int_equal(o.status, 1000 + SIGKILL);
}

static void an_output_nobody_reads_does_not_block_the_end(void **state)
{
    start("-n", "2", "--label", "sh", "-c", "echo $$; echo ready; exec yes");
    assert_true(outcome_await(&o, "ready\n", 2));
    usleep(300000); /* the pipe and the queue fill up */
    kill(o.pid, SIGINT);
    outcome_end(&o);
    assert_int_equal(o.status, 130);
}

static void pmi_ranks_find_each_other(void **state)
{
    run("-n", "5", client, "init", "exchange", "barrier", "barrier", "flood", "spawn", "finalize");
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
    run("-n", "1", client, "init", "exchange", "finalize");
    assert_int_equal(o.status, 0);
    run("-n", "2", "sh", "-c", "\"$0\" init barrier finalize && \"$0\" init exchange finalize",
        client); /* two programs, one after the other, in each rank */
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
}

static void a_pmi_abort_ends_the_job(void **state)
{
    run("-n", "3", client, "init", "barrier", "only=1", "abort=42", "barrier");
    assert_int_equal(o.status, 42);
    assert_string_equal(o.err, "pinwheel run: rank 1 aborted the job with code 42\n");
    run("-n", "2", client, "init", "only=0", "abort=256", "sleep");
    assert_int_equal(o.status, 1); /* 256 does not fit a status, and 0 would be success */
}

static void leaving_is_a_failure_only_if_others_wait(void **state)
{
    run("-n", "3", client, "init", "barrier");
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    run("-n", "3", client, "init", "barrier", "only=2", "exit=0", "barrier");
    assert_int_equal(o.status, 1);
    assert_contains(o.err, "pinwheel run: rank 2 left the job while rank ");
    assert_contains(o.err, " waits for it in a barrier");
    run("-n", "2", client, "only=0", "exit=0", "init", "barrier"); /* never said a word */
    assert_int_equal(o.status, 1);
    assert_contains(o.err, "pinwheel run: rank 0 left the job while rank 1 waits");
}

/* The kernel closes what a process has open before it says how the process ended. */
static void a_crash_is_no_leaving(void **state)
{
    for (int i = 0; i < 16; i++) {
        run("-n", "4", client, "init", "only=2", "crash=11", "barrier");
        assert_int_equal(o.status, 128 + SIGSEGV);
        assert_contains(o.err, "pinwheel run: rank 2 was ended by signal 11 (SIGSEGV");
    }
    char hangs[64], awaits[64];
    snprintf(hangs, sizeof(hangs), "hang_up=/tmp/boot-launcher-%d", (int)getpid());
    snprintf(awaits, sizeof(awaits), "await=/tmp/boot-launcher-%d", (int)getpid());
    run("-n", "3", client, "init", "only=1", hangs, "only=1", "nap", "only=1", "crash=6",
        "barrier");
    unlink(hangs + strlen("hang_up="));
    assert_int_equal(o.status, 128 + SIGABRT);
    assert_contains(o.err, "rank 1 was ended by signal 6");
    /* Nor is it what another rank did because of it. */
    run("-n", "3", client, "init", "only=0", awaits, "only=0", "exit=5", "only=1", hangs, "only=1",
        "nap", "only=1", "crash=9", "barrier");
    unlink(hangs + strlen("hang_up="));
    assert_int_equal(o.status, 128 + SIGKILL);
    assert_contains(o.err, "rank 1 was ended by signal 9");
}

static void a_rank_that_hangs_up_and_lives_leaves(void **state)
{
    char hangs[64];
    snprintf(hangs, sizeof(hangs), "hang_up=/tmp/boot-launcher-%d", (int)getpid());
    run("-n", "2", client, "init", "only=0", hangs, "only=0", "sleep", "barrier");
    unlink(hangs + strlen("hang_up="));
    assert_int_equal(o.status, 1);
    assert_contains(o.err, "pinwheel run: rank 0 left the job while rank 1 waits");
}

static void a_job_may_go_on_without_a_rank(void **state)
{
    run("--keep-going", "-n", "4", client, "init", "barrier", "only=1", "crash=11", "only=2",
        "exit=3", "barrier", "barrier", "finalize", "say");
    assert_int_equal(o.status == 3 || o.status == 128 + SIGSEGV, 1);
    assert_contains(o.err, "rank 1 was ended by signal 11");
    assert_contains(o.err, "rank 2 exited with status 3");
    assert_contains(o.err, "the others go on");
    assert_contains(o.out, "rank 0 goes on\n");
    assert_contains(o.out, "rank 3 goes on\n");
    run("--keep-going", "-n", "2", client, "only=0", "exit=0", "init", "barrier");
    assert_int_equal(o.status, 0); /* who leaves does not hold up a barrier either */
    assert_string_equal(o.err, "");
    run("--keep-going", "-n", "2", client, "init", "only=0", "abort=4", "sleep");
    assert_int_equal(o.status, 4);
}

static void a_rank_that_speaks_no_pmi_is_cut_off(void **state)
{
    run("-n", "2", client, "init", "barrier", "only=1", "garbage");
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "rank 1 was cut off\n");
    assert_string_equal(o.err, "pinwheel run: closed the PMI connection of rank 1: its line 7 "
                               "bytes long has byte 0x01 at 0\n");
    run("-n", "2", client, "init", "only=0", "long", "only=1", "barrier");
    assert_int_equal(o.status, 1);
    assert_contains(o.err, "rank 0: it sent a line longer than 2048 bytes\n");
    assert_contains(o.err, "rank 0 left the job while rank 1 waits");
}

static void many_ranks_work(void **state)
{
    run("-n", "64", "--label", client, "init", "exchange", "finalize");
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
}

static void other_words_of_the_command(void **state)
{
    static const struct {
        const char *words[4];
        int status;
        const char *out, *err;
    } cases[] = {
        {{NULL}, 2, "", "usage: pinwheel SUBCOMMAND"},
        {{"help"}, 0, "usage: pinwheel SUBCOMMAND", ""},
        {{"help", "run"}, 0, "usage: pinwheel run [OPTION]... PROGRAM", ""},
        {{"help", "rum"}, 2, "", "pinwheel: unknown subcommand rum; it is one of info,"},
        {{"run", "--help"}, 0, "--timeout SECONDS", ""},
        {{"--version"}, 0, "pinwheel ", ""},
        {{"rum"}, 2, "", "pinwheel: unknown subcommand rum; it is one of info,"},
        {{"--verbose"}, 2, "", "pinwheel: unknown option --verbose; it is one of"},
        {{"info", "--xml"}, 2, "", "pinwheel info: unknown option --xml; it takes --json"},
        {{"info", "all"}, 2, "", "pinwheel info: all: takes no operand, only --json"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *argv[8] = {pinwheel};
        memcpy(argv + 1, cases[i].words, sizeof(cases[i].words));
        outcome_start(&o, argv);
        outcome_end(&o);
        assert_int_equal(o.status, cases[i].status);
        assert_contains(o.out, cases[i].out);
        assert_contains(o.err, cases[i].err);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_status_0),
        cmocka_unit_test(the_first_failure_decides),
        cmocka_unit_test(a_signal_is_named),
        cmocka_unit_test(a_rank_that_ignores_sigterm_is_killed),
        cmocka_unit_test(a_stopped_rank_is_ended),
        cmocka_unit_test(grandchildren_end_with_a_failed_job),
        cmocka_unit_test(what_ranks_leave_behind_is_ended),
        cmocka_unit_test(programs_that_cannot_start_are_named),
        cmocka_unit_test(bad_usage_says_what_would_be_right),
        cmocka_unit_test(output_is_labelled_by_line),
        cmocka_unit_test(a_long_line_stays_one_line),
        cmocka_unit_test(rank_0_reads_standard_input),
        cmocka_unit_test(the_environment_is_set),
        cmocka_unit_test(every_job_has_a_key_of_its_own),
        cmocka_unit_test(names_that_are_no_options_are_told),
        cmocka_unit_test(ranks_are_bound_to_cores),
        cmocka_unit_test(ranks_have_homes),
        cmocka_unit_test(the_time_limit_ends_a_job),
        cmocka_unit_test(signals_end_the_whole_job),
        cmocka_unit_test(a_second_interrupt_does_not_wait),
        cmocka_unit_test(a_killed_launcher_leaves_nothing),
        cmocka_unit_test(an_output_nobody_reads_does_not_block_the_end),
        cmocka_unit_test(pmi_ranks_find_each_other),
        cmocka_unit_test(a_pmi_abort_ends_the_job),
        cmocka_unit_test(leaving_is_a_failure_only_if_others_wait),
        cmocka_unit_test(a_crash_is_no_leaving),
        cmocka_unit_test(a_rank_that_hangs_up_and_lives_leaves),
        cmocka_unit_test(a_job_may_go_on_without_a_rank),
        cmocka_unit_test(a_rank_that_speaks_no_pmi_is_cut_off),
        cmocka_unit_test(many_ranks_work),
        cmocka_unit_test(other_words_of_the_command),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: launcher PINWHEEL PMI_CLIENT\n");
        return 2;
    }
    pinwheel = argv[1];
    client = argv[2];
    static const int defaults[] = {SIGINT, SIGQUIT, SIGHUP}; /* ignored in background jobs */
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        signal(defaults[i], SIG_DFL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
