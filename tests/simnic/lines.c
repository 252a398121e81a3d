/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks write to standard output and error, one scene a run; times are virtual:
 *
 *      order           rank r prints at 10, 20 ... us, and r ns later on standard error; in 3 steps
 *                      its real time is against that
 *      same            all print at the same times, which have the order of ranks
 *      parts           a line is printed in two parts, 10 us apart, other ranks' between them
 *      dies            prints, and dies by a signal, with half a line
 *      bytes N         rank 0 writes N bytes of all values, by calls of many lengths
 *      child           a forked child prints between two lines of its parent's; so does a shell
 *      hangs           prints, and then computes for ever
 *      exits           what stdio holds at the end of a process is of the time of that
 *      looks N         N looks at nothing, each with a line, and the time of each
 */
#include "pinwheel.h"
#include "pinwheel_sim.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* Real time, which a program has no clock for: ranks take different times in each step. */
static void be_slow(int step)
{
    for (volatile int i = 0; i < (step + rank) % size * 200000; i++) {
    }
}

static void order(bool same)
{
    for (int i = 1; i <= 3; i++) {
        be_slow(i);
        sleep_us(10);
        printf("step %d of rank %d\n", i, rank);
        if (!same) {
            nanosleep(&(struct timespec){0, 1 + rank}, NULL);
            fprintf(stderr, "error %d of rank %d\n", i, rank);
        }
    }
}

static void parts(void)
{
    printf("rank %d begins", rank);
    fflush(stdout);
    sleep_us(10 * (size - rank));
    printf(" and ends\n");
}

static void dies(void)
{
    printf("rank %d says\n", rank);
    if (rank == 1) {
        sleep_us(1);
        printf("its last line\n");
        printf("and half of one");
        fflush(stdout);
        raise(SIGKILL);
    }
}

static void bytes(size_t n)
{
    unsigned char some[4099];
    size_t at = 0, step = 1;
    while (rank == 0 && at < n) {
        size_t now = n - at < step ? n - at : step;
        for (size_t i = 0; i < now; i++) {
            some[i] = (unsigned char)((at + i) * 2654435761u >> 13);
        }
        if (write(STDOUT_FILENO, some, now) != (ssize_t)now) {
            exit(2);
        }
        at += now;
        step = step * 7 % sizeof(some) + 1;
    }
}

static void child(void)
{
    printf("parent of rank %d\n", rank);
    pid_t pid = fork();
    if (pid == 0) {
        sleep_us(5);
        printf("child of rank %d\n", rank);
        exit(0);
    }
    sleep_us(2);
    printf("parent of rank %d again\n", rank);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
        exit(2);
    }
    printf("parent of rank %d at the end\n", rank);
    fflush(stdout);
    if (system("echo shell") != 0) {
        exit(2);
    }
}

static void hangs(void)
{
    printf("rank %d says\n", rank);
    if (rank == 0) {
        sleep_us(1);
        printf("rank 0 hangs\n");
        for (volatile unsigned i = 0;; i++) {
        }
    }
}

static void exits(void)
{
    setvbuf(stdout, NULL, _IOFBF, 4096);
    sleep_us(10 * (size - rank));
    printf("rank %d ends\n", rank);
}

static void looks(long n)
{
    for (long i = 0; i < n; i++) {
        PtlSimPause();
        printf("look %ld of rank %d at %llu\n", i, rank, (unsigned long long)PtlSimNow());
    }
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "", *number = argc > 2 ? argv[2] : "0";
    rank = atoi(getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : "0");
    size = atoi(getenv("PMI_SIZE") != NULL ? getenv("PMI_SIZE") : "1");
    if (strcmp(scene, "order") == 0 || strcmp(scene, "same") == 0) {
        order(scene[0] == 's');
    } else if (strcmp(scene, "parts") == 0) {
        parts();
    } else if (strcmp(scene, "dies") == 0) {
        dies();
    } else if (strcmp(scene, "bytes") == 0) {
        bytes(strtoul(number, NULL, 10));
    } else if (strcmp(scene, "child") == 0) {
        child();
    } else if (strcmp(scene, "hangs") == 0) {
        hangs();
    } else if (strcmp(scene, "exits") == 0) {
        exits();
    } else if (strcmp(scene, "looks") == 0) {
        looks(strtol(number, NULL, 10));
    } else {
        return 2;
    }
    return 0;
}
