/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that are not ours must find what the program installed, as if we were not
 * there. Each case is a child process that ends in the way it tests.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/nic_copy.h"

#define PAGE ((size_t)4096)

/* What a child exits with. */
enum { GOOD = 40, BAD, IN_HANDLER };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(2, "line %d: %s\n", __LINE__, #condition);                                     \
            _exit(BAD);                                                                            \
        }                                                                                          \
    } while (0)

static void set_action(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

/* The status of a child that begins with the default actions and runs f. */
static int status_of(void (*f)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(30);
        for (int i = 0; i < 4; i++) {
            signal(signals[i], SIG_DFL);
        }
        f();
        _exit(GOOD);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_exits(void (*f)(void), int code)
{
    int status = status_of(f);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void assert_killed(void (*f)(void), int signal)
{
    int status = status_of(f);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
}

static char *no_page;

static void touch(void)
{
    *(volatile char *)no_page = 1;
}

__attribute__((no_sanitize("undefined"))) static void divide(void)
{
    volatile int one = 1, zero = 0;
    one = one / zero;
}

static void copy_faults(void)
{
    char byte = 1;
    CHECK(nic_copy(no_page, &byte, 1) == -EFAULT);
    CHECK(nic_copy(&byte, no_page, 1) == -EFAULT);
}

/* ---- The default action ---- */

static void real_segv(void)
{
    CHECK(fault_install() == 0);
    copy_faults();
    touch();
}

static void real_fpe(void)
{
    CHECK(fault_install() == 0);
    divide();
}

static void real_ill(void)
{
    CHECK(fault_install() == 0);
    __asm__ volatile("ud2");
}

static void sent_segv(void)
{
    CHECK(fault_install() == 0);
    kill(getpid(), SIGSEGV);
}

static void raised_fpe(void)
{
    CHECK(fault_install() == 0);
    raise(SIGFPE);
}

static void default_action_kills(void **state)
{
    (void)state;
    assert_killed(real_segv, SIGSEGV);
    assert_killed(real_fpe, SIGFPE);
    assert_killed(real_ill, SIGILL);
    assert_killed(sent_segv, SIGSEGV);
    assert_killed(raised_fpe, SIGFPE);
}

/* ---- SIG_IGN ---- */

static void ignored_and_sent(void)
{
    signal(SIGSEGV, SIG_IGN);
    CHECK(fault_install() == 0);
    kill(getpid(), SIGSEGV);
    raise(SIGSEGV);
    copy_faults();
}

static void ignored_and_real(void)
{
    ignored_and_sent();
    touch();
}

static void ignored_stays_ignored(void **state)
{
    (void)state;
    assert_exits(ignored_and_sent, GOOD);
    assert_killed(ignored_and_real, SIGSEGV);
}

/* ---- A handler of the program ---- */

static volatile sig_atomic_t handled;
static sigjmp_buf out;

static void check_and_exit(int signal, siginfo_t *info, void *context)
{
    (void)context;
    CHECK(signal == SIGSEGV && info->si_code > 0 && info->si_addr == no_page);
    _exit(IN_HANDLER);
}

static void program_gets_its_faults_only(void)
{
    set_action(SIGSEGV, check_and_exit, 0);
    CHECK(fault_install() == 0);
    copy_faults();
    touch();
}

static void mend(int signal, siginfo_t *info, void *context)
{
    (void)context;
    sigset_t mask;
    handled++;
    CHECK(info->si_addr == no_page);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, signal) && sigismember(&mask, SIGUSR1) &&
          sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGTERM));
    CHECK(mprotect(no_page, PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void handler_returns_with_its_mask(void)
{
    struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
    sigset_t usr2, mask;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
    CHECK(fault_install() == 0);
    sigprocmask(SIG_SETMASK, &usr2, NULL);
    touch();
    CHECK(handled == 1 && *no_page == 1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGUSR1) &&
          !sigismember(&mask, SIGSEGV));
}

static void jump_out(int signal)
{
    (void)signal;
    handled++;
    siglongjmp(out, 1);
}

static void simple_handler_jumps_out(void)
{
    struct sigaction action = {.sa_handler = jump_out};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    CHECK(fault_install() == 0);
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(out, 1) == 0) {
            touch();
            _exit(BAD);
        }
        CHECK(handled == i + 1);
        copy_faults();
    }
}

static void one_shot_handler(void)
{
    struct sigaction action = {.sa_handler = jump_out, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    CHECK(fault_install() == 0);
    if (sigsetjmp(out, 1) == 0) {
        touch();
    }
    CHECK(handled == 1);
    touch();
}

static void nodefer_handler(int signal)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, signal));
    if (++handled < 3) {
        touch();
    }
    _exit(handled == 3 ? IN_HANDLER : BAD);
}

static void nested_faults(void)
{
    struct sigaction action = {.sa_handler = nodefer_handler, .sa_flags = SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    CHECK(fault_install() == 0);
    touch();
}

static void check_sender(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    CHECK(info->si_code == SI_USER && info->si_pid == getpid());
    handled++;
}

static void handler_sees_who_sent(void)
{
    set_action(SIGSEGV, check_sender, 0);
    CHECK(fault_install() == 0);
    kill(getpid(), SIGSEGV);
    CHECK(handled == 1);
}

static void handlers_of_the_program_work(void **state)
{
    (void)state;
    assert_exits(program_gets_its_faults_only, IN_HANDLER);
    assert_exits(handler_returns_with_its_mask, GOOD);
    assert_exits(simple_handler_jumps_out, GOOD);
    assert_killed(one_shot_handler, SIGSEGV);
    assert_exits(nested_faults, IN_HANDLER);
    assert_exits(handler_sees_who_sent, GOOD);
}

/* ---- Install and remove ---- */

static void removed_by_the_last_user(void)
{
    struct sigaction action;
    set_action(SIGSEGV, check_and_exit, SA_NODEFER);
    CHECK(fault_install() == 0 && fault_install() == 0);
    fault_remove();
    copy_faults();
    fault_remove();
    fault_remove(); /* one too many does nothing */
    sigaction(SIGSEGV, NULL, &action);
    CHECK(action.sa_sigaction == check_and_exit && (action.sa_flags & SA_NODEFER));
    sigaction(SIGFPE, NULL, &action);
    CHECK(action.sa_handler == SIG_DFL);
    CHECK(fault_install() == 0);
    copy_faults();
}

static struct sigaction below;

static void chain(int signal, siginfo_t *info, void *context)
{
    handled++;
    below.sa_sigaction(signal, info, context);
}

/* A handler above ours stays, keeps calling ours, and is not called in a circle. */
static void handler_above_ours(void)
{
    struct sigaction action;
    set_action(SIGSEGV, check_and_exit, 0);
    CHECK(fault_install() == 0);
    sigaction(SIGSEGV, NULL, &below);
    set_action(SIGSEGV, chain, 0);
    copy_faults();
    CHECK(handled == 2);
    fault_remove();
    sigaction(SIGSEGV, NULL, &action);
    CHECK(action.sa_sigaction == chain);
    CHECK(fault_install() == 0);
    copy_faults();
    CHECK(handled == 4);
    touch();
}

static void install_and_remove(void **state)
{
    (void)state;
    assert_exits(removed_by_the_last_user, GOOD);
    assert_exits(handler_above_ours, IN_HANDLER);
}

/* ---- Handlers that the program installs later ---- */

/* One that does not call what it found keeps our faults from us, until the refresh. */
static void later_handler_without_chain(void)
{
    struct sigaction action;
    CHECK(fault_install() == 0);
    set_action(SIGSEGV, check_and_exit, SA_NODEFER);
    for (int i = 0; i < 3; i++) {
        fault_refresh();
        copy_faults();
    }
    fault_remove();
    sigaction(SIGSEGV, NULL, &action);
    CHECK(action.sa_sigaction == check_and_exit && (action.sa_flags & SA_NODEFER));
    CHECK(fault_install() == 0);
    fault_refresh();
    copy_faults();
    touch(); /* the program's own: check_and_exit() */
}

/* One that does call it is called first, and then the one before ours, once each. */
static void later_handler_with_chain(void)
{
    set_action(SIGSEGV, check_and_exit, 0);
    CHECK(fault_install() == 0);
    sigaction(SIGSEGV, NULL, &below);
    set_action(SIGSEGV, chain, 0);
    fault_refresh();
    fault_refresh();
    copy_faults();
    CHECK(handled == 0);
    touch();
}

/* A third one that calls what it found, ours: no circle. */
static struct sigaction second_below;

static void chain_again(int signal, siginfo_t *info, void *context)
{
    handled += 10;
    second_below.sa_sigaction(signal, info, context);
}

static void count_and_exit(int signal, siginfo_t *info, void *context)
{
    _exit(handled == 11 ? IN_HANDLER : BAD);
}

static void later_handlers_twice(void)
{
    set_action(SIGSEGV, count_and_exit, 0);
    CHECK(fault_install() == 0);
    sigaction(SIGSEGV, NULL, &below);
    set_action(SIGSEGV, chain, 0);
    fault_refresh();
    sigaction(SIGSEGV, NULL, &second_below);
    set_action(SIGSEGV, chain_again, 0);
    fault_refresh();
    touch();
}

/* A handler for a while, as of a library that probes memory: all is as before. */
static void later_handler_taken_away(void)
{
    struct sigaction before;
    set_action(SIGSEGV, check_and_exit, 0);
    CHECK(fault_install() == 0);
    sigaction(SIGSEGV, NULL, &before);
    set_action(SIGSEGV, check_sender, 0);
    fault_refresh();
    sigaction(SIGSEGV, &before, NULL);
    for (int i = 0; i < 3; i++) {
        fault_refresh();
        copy_faults();
    }
    fault_remove();
    sigaction(SIGSEGV, NULL, &before);
    CHECK(before.sa_sigaction == check_and_exit);
    CHECK(fault_install() == 0);
    touch();
}

static void default_later(void)
{
    set_action(SIGSEGV, check_and_exit, 0);
    CHECK(fault_install() == 0);
    signal(SIGSEGV, SIG_DFL);
    fault_refresh();
    copy_faults();
    touch();
}

static void later_handlers(void **state)
{
    (void)state;
    assert_exits(later_handler_without_chain, IN_HANDLER);
    assert_exits(later_handler_with_chain, IN_HANDLER);
    assert_exits(later_handlers_twice, IN_HANDLER);
    assert_exits(later_handler_taken_away, IN_HANDLER);
    assert_killed(default_later, SIGSEGV);
}

/* ---- The guard ---- */

static struct fault_guard guard;
static char guard_stack[32768] __attribute__((aligned(16)));

static void landing(struct fault_guard *g)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(g == &guard && !g->armed && !sigismember(&mask, SIGSEGV));
    CHECK(g->signal == SIGSEGV && g->address == (uintptr_t)no_page && g->instruction != 0);
    char *frame = __builtin_frame_address(0);
    CHECK(frame > guard_stack && frame < guard_stack + sizeof(guard_stack));
    _exit(IN_HANDLER);
}

static void prepare_guard(void)
{
    CHECK(fault_install() == 0);
    guard.landing = landing;
    guard.stack = guard_stack + sizeof(guard_stack);
    CHECK(fault_set_guard(&guard) == NULL);
}

/* The fix-up comes first; then the armed guard. */
static void armed_guard(void)
{
    prepare_guard();
    guard.armed = 1;
    copy_faults();
    CHECK(guard.armed);
    touch();
}

static void disarmed_guard(void)
{
    prepare_guard();
    touch();
}

static void sent_to_armed_guard(void)
{
    prepare_guard();
    guard.armed = 1;
    raise(SIGSEGV);
}

static void guard_is_for_faults_of_its_code(void **state)
{
    (void)state;
    assert_exits(armed_guard, IN_HANDLER);
    assert_killed(disarmed_guard, SIGSEGV);
    assert_killed(sent_to_armed_guard, SIGSEGV);
}

/* ---- Signal stacks ---- */

static void *signal_stack_of_thread(void *arg)
{
    stack_t before, *after = arg;
    sigaltstack(NULL, &before);
    assert_int_equal(fault_thread_stack(), 0);
    assert_int_equal(fault_thread_stack(), 0);
    sigaltstack(NULL, after);
    assert_false(after->ss_flags & SS_DISABLE);
    if (!(before.ss_flags & SS_DISABLE)) {
        /* A sanitizer's or the program's: kept. */
        assert_ptr_equal(before.ss_sp, after->ss_sp);
        after->ss_sp = NULL;
    } else {
        memset(after->ss_sp, 1, after->ss_size);
    }
    return NULL;
}

static void signal_stack_lives_as_long_as_its_thread(void **state)
{
    (void)state;
    pthread_t thread;
    stack_t stack;
    assert_int_equal(pthread_create(&thread, NULL, signal_stack_of_thread, &stack), 0);
    pthread_join(thread, NULL);
    if (stack.ss_sp != NULL) {
        assert_int_equal(msync(stack.ss_sp, PAGE, MS_ASYNC), -1);
        assert_int_equal(errno, ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_action_kills),
        cmocka_unit_test(ignored_stays_ignored),
        cmocka_unit_test(handlers_of_the_program_work),
        cmocka_unit_test(install_and_remove),
        cmocka_unit_test(later_handlers),
        cmocka_unit_test(guard_is_for_faults_of_its_code),
        cmocka_unit_test(signal_stack_lives_as_long_as_its_thread),
    };
    no_page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
