/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs in which some have ended and others have not: what `pinwheel run` says of ranks that still
 * run when it is interrupted, and how it ends processes that ranks leave behind, also where it
 * cannot see or cannot end them. Usage: stragglers PINWHEEL
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pinwheel;
static char folder[] = "/tmp/pinwheel-stragglers-XXXXXX"; /* its name is $0 of the ranks */
static struct outcome o;

#define start(...)                                                                                 \
    do {                                                                                           \
        const char *const argv_[] = {pinwheel, "run", __VA_ARGS__, folder, NULL};                  \
        outcome_start(&o, argv_);                                                                  \
    } while (0)

/* Shell: the numbered ranks end with `exit 0`, the others say "ready" when the kernel has told
 * that these have ended, and stay. A rank that has ended is a zombie until the job is over. */
#define ENDS(which, count)                                                                         \
    "for r in " which                                                                              \
    "; do if [ $PMI_RANK = $r ]; then echo $$ >$0/p$r; mv $0/p$r $0/$r; exit 0; "                  \
    "fi; done; for r in " which "; do until grep -qs '^State:.Z' /proc/$(cat $0/$r 2>/dev/null "   \
    "|| echo none)/status; do sleep .02; done; done; echo ready; " count

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

/* What a command of the shell makes of the notes. */
static void forget(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -f %s/*", folder);
    assert_int_equal(system(command), 0);
}

/* The text before the first and behind the second of two numbers that depend on time is known. */
static void assert_said(const char *before, const char *behind)
{
    size_t n = strlen(before);
    assert_contains(o.err, before);
    const char *at = strstr(o.err, before) + n;
    size_t digits = strspn(at, "0123456789");
    assert_true(digits > 0);
    assert_memory_equal(at + digits, behind, strlen(behind));
    assert_null(strstr(at, before)); /* once */
}

static void interrupt(int signal_number, int ready)
{
    assert_true(outcome_await(&o, "ready\n", ready));
    kill(o.pid, signal_number);
    outcome_end(&o);
    forget();
    assert_int_equal(o.status, 128 + signal_number);
}

static void an_interrupted_job_tells_who_has_ended(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        start("-n", "3", "sh", "-c", ENDS("0", "exec sleep 1000"));
        interrupt(signals[i], 2);
        assert_said("pinwheel run: rank 0 ended with status 0 ", " s ago; ranks 1-2 still run\n");
    }
    start("-n", "2", "sh", "-c", ENDS("1", "exec sleep 1000"));
    interrupt(SIGINT, 1);
    assert_said("pinwheel run: rank 1 ended with status 0 ", " s ago; rank 0 still runs\n");
}

/* Of many ranks the first few and their number, neighbours as a range. */
static void a_line_stays_short(void **state)
{
    start("-n", "20", "sh", "-c", ENDS("0 4 5 6 8", "exec sleep 1000"));
    interrupt(SIGINT, 15);
    assert_said("pinwheel run: ranks 0, 4-6, 8 ended with status 0, the last ",
                " s ago; ranks 1-3, 7, 9-19 still run\n");
    start("-n", "24", "sh", "-c", ENDS("0 2 4 6 8 10 12 14 16 18 20 22", "exec sleep 1000"));
    interrupt(SIGINT, 12);
    assert_said("pinwheel run: ranks 0, 2, 4, 6, 8, 10, 12, 14 and 4 more ended with status 0, the "
                "last ",
                " s ago; ranks 1, 3, 5, 7, 9, 11, 13, 15 and 4 more still run\n");
}

/* A second signal finds the job ending, and it was said. */
static void it_is_said_once(void **state)
{
    start("-n", "2", "sh", "-c",
          "trap 'echo caught' INT; " ENDS("0", "while :; do sleep .1; done"));
    assert_true(outcome_await(&o, "ready\n", 1));
    kill(o.pid, SIGINT);
    assert_true(outcome_await(&o, "caught\n", 1));
    kill(o.pid, SIGINT);
    outcome_end(&o);
    forget();
    assert_int_equal(o.status, 130);
    assert_said("pinwheel run: rank 0 ended with status 0 ", " s ago; rank 1 still runs\n");
}

/* Those that failed were told when they did. */
static void a_job_that_goes_on_tells_it_too(void **state)
{
    start("--keep-going", "-n", "3", "sh", "-c",
          "if [ $PMI_RANK = 1 ]; then exit 3; fi; " ENDS("0", "exec sleep 1000"));
    interrupt(SIGINT, 1);
    assert_said("pinwheel run: rank 0 ended with status 0 ", " s ago; rank 2 still runs\n");
    assert_contains(o.err, "rank 1 exited with status 3; the others go on\n");
}

/* At the limit of time, too, here and with the ranks on other hosts. A limit that struck before the
 * rank had ended tells nothing; then it is a longer one's turn. */
static void at_the_limit_of_time(const char *option, const char *value)
{
    char limit[16], expected[64];
    for (int seconds = 1; seconds <= 32; seconds *= 2) {
        snprintf(limit, sizeof(limit), "%d", seconds);
        start("--timeout", limit, option, value, "sh", "-c", ENDS("0", "exec sleep 1000"));
        outcome_end(&o);
        forget();
        assert_int_equal(o.status, 124);
        if (strstr(o.err, "still runs") != NULL) {
            break;
        }
    }
    assert_said("pinwheel run: rank 0 ended with status 0 ", " s ago; rank 1 still runs\n");
    snprintf(expected, sizeof(expected), "has not ended within %s s, ending it\n", limit);
    assert_contains(o.err, expected);
}

static void the_limit_of_time_tells_who_has_ended(void **state)
{
    char shell[128], command[512];
    at_the_limit_of_time("-n", "2");
    snprintf(shell, sizeof(shell), "%s.sh", folder);
    snprintf(command, sizeof(command), "printf 'shift\\nexec sh -c \"$*\"\\n' >%s", shell);
    assert_int_equal(system(command), 0);
    char ssh[160];
    snprintf(ssh, sizeof(ssh), "--ssh=sh %s", shell); /* the "host" is this one */
    at_the_limit_of_time(ssh, "--hosts=a:2");
    unlink(shell);
}

static void nothing_is_said_of_a_job_that_ends_by_itself(void **state)
{
    start("-n", "3", "sh", "-c", ENDS("0", "exit 0"));
    outcome_end(&o);
    forget();
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    start("-n", "3", "sh", "-c", ENDS("0", "exit 5"));
    outcome_end(&o);
    forget();
    assert_int_equal(o.status, 5);
    assert_contains(o.err, "exited with status 5\n");
    assert_null(strstr(o.err, "still run"));
}

/* ---- What ranks leave behind ---- */

/* The one number that stands alone on a line of the output. */
static pid_t left_behind(void)
{
    for (const char *at = o.out; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end != at && *end == '\n') {
            return (pid_t)pid;
        }
    }
    fail_msg("no process was left behind: \"%s\"", o.out);
    return -1;
}

static void assert_left_one_has_ended(void)
{
    pid_t pid = left_behind();
    bool ended = process_ended(pid);
    if (!ended) {
        kill(pid, SIGKILL);
    }
    assert_true(ended);
}

/* Where no /proc tells who lives, groups are ended at once, and nothing is said. LeakSanitizer
 * works, and reads the options that would turn it off, through /proc alone. */
static void without_proc_what_is_left_is_killed(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    const char *const probe[] = {"unshare", "-rm", "mount", "-t", "tmpfs", "none", "/proc", NULL};
    outcome_start(&o, probe);
    outcome_end(&o);
    if (o.status != 0) {
        skip(); /* no user namespaces here */
    }
    const char *const argv[] = {"unshare",
                                "-rm",
                                "sh",
                                "-c",
                                "mount -t tmpfs none /proc && exec \"$0\" run sh -c 'sleep 1000 "
                                ">/dev/null 2>&1 & echo $!; exit 0'",
                                pinwheel,
                                NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    assert_left_one_has_ended();
}

/* A launcher that has lost its descriptors does not know who is left: it says so, and ends what
 * there is. The process left behind gives them back when it hears of its end, so that the launcher
 * sees it go. `rest` is what that process does then. */
static void run_without_descriptors(const char *rest)
{
    char script[1024];
    snprintf(script, sizeof(script),
             "l=$PPID; before=$(ulimit -Sn); "
             /* until the launcher sleeps in its loop, and has no descriptor of the moment open */
             "s=; k=0; while [ $k -lt 5 ]; do t=$(ls /proc/$l/fd); "
             "if [ \"$t\" = \"$s\" ] && grep -q '^State:.S' /proc/$l/status; then k=$((k+1)); "
             "else k=0; fi; s=$t; sleep .02; done; "
             /* the lowest number that the launcher has free: all above are closed to it */
             "n=0; while [ -e /proc/$l/fd/$n ]; do n=$((n+1)); done; "
             "(trap \"%s\" TERM; prlimit --pid $l --nofile=$n: && echo set; "
             "sh -c 'echo $PPID'; echo ready >$0/ready; while :; do sleep .05; done) & "
             "until [ -e $0/ready ]; do sleep .02; done; exit 0",
             rest);
    start("sh", "-c", script);
    outcome_end(&o);
    forget();
    assert_contains(o.out, "set\n");
    assert_int_equal(o.status, 0);
    assert_contains(o.err, "pinwheel run: cannot look for processes that ranks have left behind, "
                           "for want of descriptors or memory (see ulimit -n); ending what there "
                           "is\n");
    assert_left_one_has_ended();
}

static void without_descriptors_what_is_left_is_ended(void **state)
{
    run_without_descriptors("prlimit --pid $l --nofile=$before:; exit 0");
    assert_null(strstr(o.err, "giving up"));
}

static void without_descriptors_for_good_it_gives_up(void **state)
{
    run_without_descriptors("exit 0");
    assert_contains(o.err, "(see ulimit -n), giving up\n");
}

/* A process that may not be signalled, as one of another user, stays: the launcher names the rank
 * and leaves. Only root can make one. */
static void what_cannot_be_ended_is_named(void **state)
{
    char command[512], root[64];
    if (geteuid() != 0) {
        skip();
    }
    snprintf(root, sizeof(root), "%s/root", folder); /* makes its caller root, as sudo does */
    snprintf(command, sizeof(command),
             "cp $(command -v setpriv) %s && chmod 4755 %s && chmod 755 %s", root, root, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command),
             "if [ $PMI_RANK = 1 ]; then %s --reuid=0 sleep 1000 >/dev/null 2>&1 & echo $!; "
             "until grep -qs '^Uid:.0.0.0' /proc/$!/status; do sleep .02; done; fi; exit 0",
             root);
    const char *const argv[] = {"setpriv",
                                "--reuid=65534",
                                "--clear-groups",
                                pinwheel,
                                "run",
                                "-n",
                                "2",
                                "sh",
                                "-c",
                                command,
                                NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
    pid_t pid = left_behind();
    bool stayed = kill(pid, SIGKILL) == 0; /* by us: it ran as root */
    forget();
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err,
                        "pinwheel run: rank 1 has left processes behind, ending them\n"
                        "pinwheel run: a process of rank 1 does not end even after SIGKILL, giving "
                        "up\n");
    assert_true(stayed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interrupted_job_tells_who_has_ended),
        cmocka_unit_test(a_line_stays_short),
        cmocka_unit_test(it_is_said_once),
        cmocka_unit_test(a_job_that_goes_on_tells_it_too),
        cmocka_unit_test(the_limit_of_time_tells_who_has_ended),
        cmocka_unit_test(nothing_is_said_of_a_job_that_ends_by_itself),
        cmocka_unit_test(without_proc_what_is_left_is_killed),
        cmocka_unit_test(without_descriptors_what_is_left_is_ended),
        cmocka_unit_test(without_descriptors_for_good_it_gives_up),
        cmocka_unit_test(what_cannot_be_ended_is_named),
    };
    if (argc != 2 || mkdtemp(folder) == NULL) {
        fprintf(stderr, "usage: stragglers PINWHEEL\n");
        return 2;
    }
    pinwheel = argv[1];
    static const int defaults[] = {SIGINT, SIGQUIT, SIGHUP}; /* ignored in background jobs */
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        signal(defaults[i], SIG_DFL);
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
