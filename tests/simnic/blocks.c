/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program may block in outside of Portals, and the timers that may end that; one a scene.
 * Each prints results, and times since its beginning in microseconds, looks at the clock left out.
 * What is waited for comes from a child or a thread, after `pause_us()` of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec began;
static const char *self; /* this program */

static long us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return ((t.tv_sec - began.tv_sec) * 1000000000l + t.tv_nsec - began.tv_nsec) / 1000;
}

static void pause_us(long time)
{
    nanosleep(&(struct timespec){time / 1000000, time % 1000000 * 1000}, NULL);
}

static void must(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

static pid_t child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    return pid;
}

static void begin(pthread_t *t, void *(*function)(void *), void *arg)
{
    must(pthread_create(t, NULL, function, arg) == 0, "pthread_create");
}

static void end_child(void)
{
    wait(NULL);
    printf("%ld\n", us());
}

/* ---- the first thread ends ---- */

static void *goes_on(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    printf("%ld ", us());
    pause_us(50);
    printf("%ld\n", us());
    return NULL;
}

static void of_first(void)
{
    static pthread_t own, t;
    own = pthread_self();
    begin(&t, goes_on, &own);
    pause_us(20);
    pthread_exit(NULL);
}

/* ---- signals ---- */

static volatile int came;

static void note(int number)
{
    came += number == SIGUSR1 ? 1 : 100;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &a, NULL);
}

static void kill_parent(long after)
{
    pid_t parent = getpid();
    if (child() == 0) {
        pause_us(after);
        kill(parent, SIGUSR1);
        pause_us(100);
        _exit(0);
    }
}

static void of_pause(void)
{
    handle(SIGUSR1, note, 0);
    kill_parent(25);
    int rc = pause();
    printf("%d %d %ld ", rc, came, us());
    end_child();
}

static void of_suspend(void)
{
    sigset_t blocked, open;
    sigemptyset(&open);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    handle(SIGUSR1, note, 0);
    kill_parent(25);
    pause_us(40); /* it comes meanwhile, and is taken later */
    printf("%d %ld ", came, us());
    int rc = sigsuspend(&open);
    printf("%d %d %ld ", rc, came, us());
    end_child();
}

static void of_sigwait(void)
{
    sigset_t set;
    int number = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill_parent(30);
    int rc = sigtimedwait(&set, NULL, &(struct timespec){0, 10000});
    printf("%d %ld ", rc < 0 && errno == EAGAIN, us());
    rc = sigwait(&set, &number);
    printf("%d %d %ld ", rc, number == SIGUSR1, us());
    end_child();
}

/* A child's end is a signal that ends a sleep, and a call that is to be made again goes on. */
static void of_ends(void)
{
    int ends[2];
    char c = 0;
    must(pipe(ends) == 0, "pipe");
    handle(SIGCHLD, note, 0);
    if (child() == 0) {
        pause_us(15);
        _exit(0);
    }
    pause_us(1000);
    printf("%d %ld ", came, us());
    wait(NULL);
    handle(SIGCHLD, note, SA_RESTART);
    if (child() == 0) {
        if (child() != 0) {
            pause_us(10);
            _exit(0);
        }
        pause_us(30);
        must(write(ends[1], "x", 1) == 1, "write");
        _exit(0);
    }
    ssize_t n = read(ends[0], &c, 1);
    printf("%zd %d %ld\n", n, came, us());
}

/* A handler sleeps, polls, forks. */
static void works(int number)
{
    struct itimerspec soon = {.it_value = {0, 7000}};
    uint64_t times;
    pause_us(5);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(fd, 0, &soon, NULL);
    must(read(fd, &times, sizeof(times)) == sizeof(times), "read");
    if (child() == 0) {
        pause_us(11);
        _exit(0);
    }
    wait(NULL);
    came = 1;
}

static void of_handler(void)
{
    handle(SIGALRM, works, 0);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 20}}, NULL);
    pause_us(1000);
    printf("%d %ld\n", came, us());
}

/* ---- files ---- */

static void of_fifo(void)
{
    char name[] = "/tmp/simnic-XXXXXX", path[64], c = 0;
    must(mkdtemp(name) != NULL, "mkdtemp");
    snprintf(path, sizeof(path), "%s/fifo", name);
    must(mkfifo(path, 0600) == 0, "mkfifo");
    if (child() == 0) {
        pause_us(30);
        int fd = open(path, O_WRONLY);
        pause_us(10);
        must(write(fd, "x", 1) == 1, "write");
        close(fd);
        pause_us(10);
        fd = open(path, O_WRONLY); /* until there is a reader again */
        long time = us();
        pause_us(5); /* the reader's line comes first */
        printf("writer %ld\n", time);
        fflush(stdout);
        _exit(0);
    }
    int fd = open(path, O_RDONLY);
    printf("%ld ", us());
    must(read(fd, &c, 1) == 1, "read");
    printf("%ld ", us());
    must(read(fd, &c, 1) == 0, "end");
    close(fd);
    pause_us(20);
    fflush(stdout);
    fd = open(path, O_RDONLY);
    printf("reader %ld\n", us());
    wait(NULL);
    close(fd);
    unlink(path);
    rmdir(name);
}

static void of_locks(void)
{
    FILE *file = tmpfile();
    int fd = fileno(file);
    char own[64];
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
    int other = open(own, O_RDWR);
    if (child() == 0) {
        other = open(own, O_RDWR);
        fcntl(fd, F_SETLKW, &range);
        flock(other, LOCK_EX);
        pause_us(40);
        range.l_type = F_UNLCK;
        fcntl(fd, F_SETLK, &range);
        pause_us(40);
        flock(other, LOCK_UN);
        must(lockf(fd, F_LOCK, 1) == 0, "lockf");
        printf("%ld\n", us());
        fflush(stdout);
        _exit(0);
    }
    pause_us(10);
    must(lockf(fd, F_LOCK, 0) == 0, "lockf");
    printf("%ld ", us());
    flock(other, LOCK_SH);
    printf("%ld ", us());
    fflush(stdout);
    pause_us(5);
    must(lockf(fd, F_ULOCK, 0) == 0, "lockf");
    wait(NULL);
}

static void of_sockets(void)
{
    int ends[2];
    char room[2][4];
    struct iovec parts[2] = {{room[0], 4}, {room[1], 4}};
    struct mmsghdr list[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair");
    if (child() == 0) {
        for (int i = 0; i < 3; i++) {
            pause_us(20);
            must(send(ends[1], "abc", 4, 0) == 4, "send");
        }
        _exit(0);
    }
    int n = recvmmsg(ends[0], list, 2, 0, NULL);
    printf("%d %ld ", n, us());
    n = recvmmsg(ends[0], list, 2, MSG_WAITFORONE, NULL);
    printf("%d %ld\n", n, us());
    wait(NULL);
}

static void of_splice(void)
{
    int from[2], to[2];
    must(pipe(from) == 0 && pipe(to) == 0, "pipe");
    if (child() == 0) {
        pause_us(35);
        must(write(from[1], "abcd", 4) == 4, "write");
        _exit(0);
    }
    int epoll = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, from[0], &e);
    int n = epoll_pwait2(epoll, &e, 1, &(struct timespec){0, 15000}, NULL);
    printf("%d %ld ", n, us());
    ssize_t moved = splice(from[0], NULL, to[1], NULL, 100, 0);
    printf("%zd %ld\n", moved, us());
    wait(NULL);
}

/* ---- queues, semaphores, spin locks ---- */

static void of_queues(void)
{
    struct {
        long type;
        char text[8];
    } message = {1, "hello"};
    int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
    struct sembuf take = {0, -1, 0}, give = {0, 1, 0};
    must(set >= 0 && queue >= 0, "semget, msgget");
    if (child() == 0) {
        pause_us(30);
        semop(set, &give, 1);
        pause_us(30);
        msgsnd(queue, &message, sizeof(message.text), 0);
        _exit(0);
    }
    int rc = semtimedop(set, &take, 1, &(struct timespec){0, 10000});
    printf("%d %ld ", rc < 0 && errno == EAGAIN, us());
    rc = semop(set, &take, 1);
    printf("%d %ld ", rc, us());
    ssize_t n = msgrcv(queue, &message, sizeof(message.text), 0, 0);
    printf("%zd %ld\n", n, us());
    wait(NULL);
    semctl(set, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
}

static void of_posix(void)
{
    char name[32], text[8];
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = sizeof(text)};
    snprintf(name, sizeof(name), "/simnic-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &one);
    if (queue < 0) {
        printf("none\n");
        return;
    }
    mq_unlink(name);
    if (child() == 0) {
        pause_us(30);
        mq_send(queue, "a", 2, 0);
        mq_send(queue, "b", 2, 0); /* when there is room */
        printf("%ld ", us());
        fflush(stdout);
        _exit(0);
    }
    pause_us(70);
    ssize_t n = mq_receive(queue, text, sizeof(text), NULL);
    wait(NULL);
    printf("%zd %ld ", n, us());
    struct timespec end;
    n = mq_receive(queue, text, sizeof(text), NULL);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 25000;
    n = mq_timedreceive(queue, text, sizeof(text), NULL, &end);
    printf("%d %ld\n", n < 0 && errno == ETIMEDOUT, us());
}

static pthread_spinlock_t spin;

static void *has_spin(void *unused)
{
    pthread_spin_lock(&spin);
    pause_us(45);
    pthread_spin_unlock(&spin);
    return NULL;
}

static void of_spin(void)
{
    pthread_t t;
    pthread_spin_init(&spin, 0);
    begin(&t, has_spin, NULL);
    pause_us(1);
    pthread_spin_lock(&spin);
    printf("%ld\n", us());
    pthread_join(t, NULL);
}

static uint32_t word;

static long futex(int operation, uint32_t value, const struct timespec *t)
{
    return syscall(SYS_futex, &word, operation, value, t, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void *wakes(void *unused)
{
    pause_us(20);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    return (void *)futex(FUTEX_WAKE_PRIVATE, 1, NULL);
}

static void of_futex(void)
{
    pthread_t t;
    void *woken;
    begin(&t, wakes, NULL);
    long rc = futex(FUTEX_WAIT_PRIVATE, 0, &(struct timespec){0, 5000});
    printf("%d %ld ", rc < 0 && errno == ETIMEDOUT, us());
    rc = futex(FUTEX_WAIT_PRIVATE, 0, NULL);
    printf("%ld %ld ", rc, us());
    rc = futex(FUTEX_WAIT_BITSET_PRIVATE, 0, NULL);
    pthread_join(t, &woken);
    printf("%d %ld\n", rc < 0 && errno == EAGAIN, (long)woken);
}

/* ---- timers ---- */

static void of_alarm(void)
{
    handle(SIGALRM, note, 0);
    alarm(3);
    pause();
    printf("%d %ld ", came, us());
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 30}, {0, 10}}, NULL);
    for (int i = 0; i < 3; i++) {
        pause();
    }
    printf("%d %ld ", came, us());
    struct itimerval left;
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, &left);
    printf("%ld %u\n", (long)left.it_interval.tv_usec, alarm(0));
}

static void tells(union sigval value)
{
    printf("%d %ld ", value.sival_int, us());
}

static void of_timers(void)
{
    struct sigevent e = {
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = tells, .sigev_value.sival_int = 7};
    struct itimerspec when = {{0, 20000}, {0, 15000}};
    uint64_t times = 0;
    timer_t timer, other;
    must(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0, "timer_create");
    must(timer_settime(timer, 0, &when, NULL) == 0, "timer_settime");
    pause_us(40);
    timer_delete(timer);
    handle(SIGUSR1, note, 0);
    e = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    must(timer_create(CLOCK_REALTIME, &e, &other) == 0, "timer_create");
    must(timer_settime(other, 0, &when, NULL) == 0, "timer_settime");
    pause_us(500);
    timer_gettime(other, &when);
    printf("%d %ld %ld ", came, us(), when.it_value.tv_nsec / 1000);
    timer_delete(other);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    when = (struct itimerspec){{0, 10000}, {0, 10000}};
    timerfd_settime(fd, 0, &when, NULL);
    pause_us(35);
    must(read(fd, &times, sizeof(times)) == sizeof(times), "read");
    printf("%d %ld ", (int)times, us());
    must(read(fd, &times, sizeof(times)) == sizeof(times), "read");
    printf("%d %ld\n", (int)times, us());
}

/* ---- programs that are started ---- */

static void of_spawn(void)
{
    pid_t pid;
    int status = 0;
    char *argv[] = {(char *)self, (char *)"sleeps", NULL};
    must(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0, "posix_spawn");
    waitpid(pid, &status, 0);
    printf("%d %ld ", WEXITSTATUS(status), us());
    fflush(stdout);
    status = system("sleep 2; exit 3");
    printf("%d %ld ", WEXITSTATUS(status), us() / 1000000);
    fflush(stdout);
    FILE *f = popen("sleep 1; cat > /dev/null", "w");
    fputs("text", f);
    status = pclose(f);
    printf("%d %ld\n", WEXITSTATUS(status), us() / 1000000);
}

/* Calls that have no name: by stdio, by an instruction. */
static long instruction(long number, const void *a, const void *b)
{
    long rc;
    __asm__ volatile("syscall" : "=a"(rc) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return rc;
}

static void *reads_line(void *file)
{
    char line[32];
    if (fgets(line, sizeof(line), file) != NULL) {
        printf("%zu %ld ", strlen(line), us());
    }
    return NULL;
}

static void of_stdio(void)
{
    int ends[2];
    pthread_t t;
    must(pipe(ends) == 0, "pipe");
    FILE *f = fdopen(ends[0], "r");
    if (child() == 0) {
        pause_us(30);
        must(write(ends[1], "on", 2) == 2, "write");
        pause_us(20);
        must(write(ends[1], "e\ntwo", 5) == 5, "write");
        pause_us(10);
        must(write(ends[1], "\n", 1) == 1, "write");
        _exit(0);
    }
    close(ends[1]);
    begin(&t, reads_line, f); /* it has the stream's lock meanwhile */
    pause_us(1);
    reads_line(f);
    pthread_join(t, NULL);
    wait(NULL);
    fflush(stdout);
    struct timespec nap = {0, 5000}, now;
    long rc = instruction(SYS_nanosleep, &nap, NULL);
    printf("%ld %ld ", rc, us());
    rc = instruction(SYS_clock_gettime, (const void *)CLOCK_MONOTONIC, &now);
    printf("%ld %ld ", rc, (now.tv_nsec - began.tv_nsec) / 1000);
    handle(SIGUSR1, note, 0);
    kill_parent(7);
    rc = instruction(SYS_pause, NULL, NULL);
    printf("%d %d %ld ", rc == -EINTR, came, us());
    wait(NULL);
    fflush(stdout);
    f = popen("sleep 1; echo three", "r");
    reads_line(f);
    printf("%d\n", pclose(f));
}

/* Everything is blocked, and a handler of SIGSYS asked for: calls are trapped all the same. */
static void of_blocked(void)
{
    sigset_t all, now;
    int ends[2];
    sigfillset(&all);
    must(sigprocmask(SIG_SETMASK, &all, NULL) == 0, "sigprocmask");
    handle(SIGSYS, SIG_IGN, 0);
    must(pipe(ends) == 0, "pipe");
    FILE *f = fdopen(ends[0], "r");
    if (child() == 0) {
        pause_us(30);
        must(write(ends[1], "ab\n", 3) == 3, "write");
        _exit(0);
    }
    reads_line(f);
    sigprocmask(SIG_SETMASK, NULL, &now);
    printf("%d %d\n", sigismember(&now, SIGTERM), sigismember(&now, SIGSYS));
    wait(NULL);
}

static void of_sleeps(void)
{
    pause_us(40);
    _exit(5);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"first", of_first},     {"pause", of_pause},   {"suspend", of_suspend},
                  {"sigwait", of_sigwait}, {"ends", of_ends},     {"handler", of_handler},
                  {"fifo", of_fifo},       {"locks", of_locks},   {"sockets", of_sockets},
                  {"splice", of_splice},   {"queues", of_queues}, {"posix", of_posix},
                  {"spin", of_spin},       {"futex", of_futex},   {"alarm", of_alarm},
                  {"timers", of_timers},   {"spawn", of_spawn},   {"stdio", of_stdio},
                  {"blocked", of_blocked}, {"sleeps", of_sleeps}};
    self = argv[0];
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (size_t i = 0; argc > 1 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            return 0;
        }
    }
    fprintf(stderr, "%s: no such scene\n", argc > 1 ? argv[1] : "none");
    return 2;
}
