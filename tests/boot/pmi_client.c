/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare PMI-1 client, written from the protocol alone: it shares no code with
 * the server or the library, and so checks that the launcher speaks to programs
 * from elsewhere. Behaviours, each a word on the command line, one after the
 * other:
 *
 *     init exchange barrier finalize     the regular life; exchange puts a value
 *                                        and reads those of all ranks
 *     only=R WORD                        WORD happens in rank R only
 *     not=R WORD                         in all others
 *     abort=CODE garbage long flood spawn exit=STATUS sleep nap say
 *     crash=SIGNAL                       ends by it
 *     hang_up=FILE await=FILE            closes PMI_FD and then makes the file; waits for one
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd, rank, size;

static void die(const char *what, const char *line)
{
    fprintf(stderr, "pmi_client rank %d: %s: \"%s\"\n", rank, what, line);
    exit(99);
}

static void send_text(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n <= 0) {
            die("cannot write to PMI_FD", "");
        }
        text += n;
        length -= (size_t)n;
    }
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    send_text(line, (size_t)n);
}

static void hear(char line[2048])
{
    size_t n = 0;
    while (n < 2047 && read(fd, line + n, 1) == 1) {
        if (line[n] == '\n') {
            line[n] = '\0';
            return;
        }
        n++;
    }
    line[n] = '\0';
    die("the server closed the connection or sent a line without end", line);
}

static void expect(const char *beginning)
{
    char line[2048];
    hear(line);
    if (strncmp(line, beginning, strlen(beginning)) != 0) {
        die(beginning, line);
    }
}

static void barrier(void)
{
    say("cmd=barrier_in\n");
    expect("cmd=barrier_out");
}

static void exchange(void)
{
    char name[300], line[2048], expected[128];
    say("cmd=get_maxes\n");
    expect("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
    say("cmd=get_universe_size\n");
    snprintf(expected, sizeof(expected), "cmd=universe_size size=%d", size);
    expect(expected);
    say("cmd=get_my_kvsname\n");
    hear(line);
    if (sscanf(line, "cmd=my_kvsname kvsname=%299s", name) != 1) {
        die("no kvsname", line);
    }
    say("cmd=put kvsname=%s key=card-%d value=pid#%d$\n", name, rank, rank * 7);
    expect("cmd=put_result rc=0");
    barrier();
    for (int r = 0; r < size; r++) {
        say("cmd=get kvsname=%s key=card-%d\n", name, r);
        snprintf(expected, sizeof(expected), "cmd=get_result rc=0 msg=success value=pid#%d$",
                 r * 7);
        expect(expected);
    }
    say("cmd=get kvsname=%s key=card-%d\n", name, size);
    expect("cmd=get_result rc=-1");
    say("cmd=get kvsname=%s key=PMI_process_mapping\n", name);
    snprintf(expected, sizeof(expected), "cmd=get_result rc=0 msg=success value=(vector,(0,1,%d))",
             size);
    expect(expected);
}

static void expect_end(void)
{
    char byte;
    if (read(fd, &byte, 1) > 0) { /* the end, or a reset for what was not read */
        die("the connection should be closed", "");
    }
    printf("rank %d was cut off\n", rank);
}

static void act(const char *word)
{
    static char much[65536];
    if (strcmp(word, "init") == 0) {
        say("cmd=init pmi_version=1 pmi_subversion=1\n");
        expect("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    } else if (strcmp(word, "exchange") == 0) {
        exchange();
    } else if (strcmp(word, "barrier") == 0) {
        barrier();
    } else if (strcmp(word, "finalize") == 0) {
        say("cmd=finalize\n");
        expect("cmd=finalize_ack");
    } else if (strncmp(word, "abort=", 6) == 0) {
        say("cmd=abort exitcode=%s\n", word + 6);
        sleep(1000);
    } else if (strcmp(word, "garbage") == 0) {
        say("\x01\x02 what\n");
        expect_end();
    } else if (strcmp(word, "long") == 0) {
        memset(much, 'x', sizeof(much));
        send_text(much, 4096);
        expect_end();
    } else if (strcmp(word, "flood") == 0) { /* many requests, then all replies */
        for (int i = 0; i < 2000; i++) {
            say("cmd=get_appnum\n");
        }
        for (int i = 0; i < 2000; i++) {
            expect("cmd=appnum appnum=0");
        }
    } else if (strcmp(word, "spawn") == 0) {
        say("mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nendcmd\n");
        expect("cmd=spawn_result rc=-1");
    } else if (strncmp(word, "exit=", 5) == 0) {
        exit(atoi(word + 5));
    } else if (strcmp(word, "sleep") == 0) {
        sleep(1000);
    } else if (strcmp(word, "nap") == 0) {
        usleep(300000);
    } else if (strncmp(word, "crash=", 6) == 0) {
        signal(atoi(word + 6), SIG_DFL); /* AddressSanitizer has a handler */
        raise(atoi(word + 6));
    } else if (strncmp(word, "hang_up=", 8) == 0) {
        close(fd);
        close(open(word + 8, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    } else if (strncmp(word, "await=", 6) == 0) {
        while (access(word + 6, F_OK) != 0) {
            usleep(1000);
        }
    } else if (strcmp(word, "say") == 0) {
        printf("rank %d goes on\n", rank);
    } else {
        die("unknown word", word);
    }
}

static int number(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        die("not set", name);
    }
    return atoi(value);
}

int main(int argc, char **argv)
{
    fd = number("PMI_FD");
    rank = number("PMI_RANK");
    size = number("PMI_SIZE");
    for (int i = 1; i < argc; i++) {
        bool mine = true;
        if (strncmp(argv[i], "only=", 5) == 0) {
            mine = atoi(argv[i++] + 5) == rank;
        } else if (strncmp(argv[i], "not=", 4) == 0) {
            mine = atoi(argv[i++] + 4) != rank;
        }
        if (mine && i < argc) {
            act(argv[i]);
        }
    }
    return 0;
}
