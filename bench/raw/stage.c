/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two network namespaces without names, which go with their processes: that of the clients, which
 * is this process's, and that of the servers, kept by a child. Each subject has a veth pair of its
 * own, so that several XDP programs can be there at once; all but the one whose turn it is are
 * stopped.
 */
#include "raw/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t keeper;

static void on_core(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

int stage_command(const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (system(line) != 0) { /* NOLINT(cert-env33-c): `ip`, with nothing from outside */
        fprintf(stderr, "bench_raw: %s has failed\n", line);
        return -1;
    }
    return 0;
}

int stage_open(void)
{
    int ready[2];
    char byte;
    if (pipe(ready) != 0) {
        return -1;
    }
    keeper = fork();
    if (keeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) == 0 && write(ready[1], "x", 1) == 1) {
            for (;;) {
                pause();
            }
        }
        _exit(1);
    }
    close(ready[1]);
    if (keeper < 0 || read(ready[0], &byte, 1) != 1 || unshare(CLONE_NEWNET) != 0) {
        fprintf(stderr, "bench_raw: network namespaces need CAP_SYS_ADMIN: %s\n", strerror(errno));
        return -1;
    }
    close(ready[0]);
    on_core(0);
    return stage_command("ip link set lo up");
}

static void enter(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)keeper);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        perror("bench_raw: the servers' namespace");
        _exit(1);
    }
    close(fd);
}

pid_t stage_spawn(const char *const *argv, int out)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0); /* it is stopped and ended as a group */
        enter();
        on_core(1);
        dup2(out, STDOUT_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        perror(argv[0]);
        _exit(1);
    }
    if (pid > 0) {
        (void)setpgid(pid, pid);
    }
    return pid;
}

/* Where users of a subject's owner connect. */
static void path_of(char path[64], pid_t pid)
{
    snprintf(path, 64, "/tmp/bench_raw.%d.sock", (int)pid);
}

/* Begins the owner of an interface, and waits until its socket is there. */
static void begin_owner(const char *pinwheel, const char *iface, const char *path)
{
    char policy[96];
    snprintf(policy, sizeof(policy), "%s.policy", path);
    FILE *f = fopen(policy, "we");
    if (f == NULL ||
        fprintf(f, "allow everyone ring 1024 share 64 { udp.dport = 7; send udp }\n") < 0 ||
        fclose(f) != 0) {
        perror(policy);
        _exit(1);
    }
    (void)unlink(path);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(pinwheel, "pinwheel", "raw", "serve", "--iface", iface, "--policy", policy,
              "--socket", path, "--contexts", "1", "--patience", "1000000000", (char *)NULL);
        perror(pinwheel);
        _exit(1);
    }
    for (int i = 0; i < 10000 && access(path, F_OK) != 0; i++) {
        usleep(1000);
    }
    (void)unlink(policy);
}

static void serve(const struct subject *s, const char *pinwheel, const char *images)
{
    char iface[16], image[4096], path[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    enter();
    on_core(1);
    if (s->echo != NULL) {
        _exit(s->echo(s->number));
    }
    snprintf(iface, sizeof(iface), "s%u", s->number);
    snprintf(image, sizeof(image), "%s/%s", images, s->handlers);
    path_of(path, getpid());
    if (s->served) {
        begin_owner(pinwheel, iface, path);
    }
    execl(pinwheel, "pinwheel", "raw", "run", s->served ? "--serve" : "--iface",
          s->served ? path : iface, "--image", image, "--rules",
          s->protocol == UDP ? "udp-echo" : "icmp-echo", "--quiet", s->sleeps ? NULL : "--spin",
          (char *)NULL);
    perror(pinwheel);
    _exit(1);
}

/* The kernel answers pings in its own turns only; else it would answer those for a handler that is
 * not there yet. */
static void kernel_answers(bool yes)
{
    (void)stage_command(
        "nsenter -t %d -n sh -c 'echo %d > /proc/sys/net/ipv4/icmp_echo_ignore_all'", (int)keeper,
        yes ? 0 : 1);
}

int stage_pair(unsigned n)
{
    if (stage_command("ip link add c%u type veth peer name s%u netns %d", n, n, (int)keeper) != 0 ||
        stage_command("ip addr add 10.88.%u.1/24 dev c%u && ip link set c%u up", n, n, n) != 0) {
        return -1;
    }
    return stage_command(
        "nsenter -t %d -n sh -c 'ip addr add 10.88.%u.2/24 dev s%u; ip link set s%u up'",
        (int)keeper, n, n, n);
}

void stage_there(char *line, size_t size, const char *format, ...)
{
    va_list list;
    int n = snprintf(line, size, "nsenter -t %d -n ", (int)keeper);
    va_start(list, format);
    vsnprintf(line + n, size - (size_t)n, format, list);
    va_end(list);
}

int stage_start(struct subject *s, const char *pinwheel, const char *images)
{
    if (stage_pair(s->number) != 0) {
        return -1;
    }
    kernel_answers(s->echo == NULL && s->handlers == NULL);
    if (s->echo == NULL && s->handlers == NULL) {
        s->pid = 0;
        return 0;
    }
    s->pid = fork();
    if (s->pid == 0) {
        serve(s, pinwheel, images);
    }
    if (s->pid > 0) {
        setpgid(s->pid, s->pid); /* whichever of both is first */
    }
    return s->pid > 0 ? 0 : -1;
}

void stage_resume(const struct subject *s)
{
    if (s->pid > 0) {
        kill(-s->pid, SIGCONT);
    } else {
        kernel_answers(true);
    }
}

void stage_pause(const struct subject *s)
{
    if (s->pid > 0) {
        kill(-s->pid, SIGSTOP);
    } else {
        kernel_answers(false);
    }
}

void stage_close(struct subject *subjects, unsigned count)
{
    char path[64];
    for (unsigned i = 0; i < count; i++) {
        if (subjects[i].pid > 0) {
            kill(-subjects[i].pid, SIGKILL);
            waitpid(subjects[i].pid, NULL, 0);
            path_of(path, subjects[i].pid);
            (void)unlink(path);
        }
    }
    if (keeper > 0) {
        kill(keeper, SIGKILL);
        waitpid(keeper, NULL, 0);
        keeper = 0;
    }
}
