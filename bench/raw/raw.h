/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of bench_raw: namespaces and servers, clients, the bare echo, the DNS cache. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SUBJECTS = 8, ROUNDS = 101 };

enum protocol { UDP, ICMP };

/* Who answers: on a veth pair of its own, the interface s<number> at 10.88.<number>.2, asked from
 * c<number> in the other namespace. */
struct subject {
    const char *name;
    enum protocol protocol;
    int (*echo)(unsigned number); /* answers until it is killed; NULL: exec, or the kernel */
    const char *handlers;         /* file of the image that `pinwheel raw run` runs */
    bool sleeps;                  /* the handlers' process does not spin */
    bool served; /* it has its frames from `pinwheel raw serve`, which has its core, too */
    unsigned number;
    pid_t pid; /* of its group, stopped but in its turns; 0: the kernel answers */
    int fd;    /* the client's socket */
    double value[ROUNDS];
};

/* stage.c: two namespaces, this process in that of the clients; -1 with a line on stderr. */
int stage_open(void);
/* stage_pair() makes a subject's pair of interfaces, c<number> here and s<number> there.
 * stage_command() runs a command of the shell, stage_there() one in the namespace of the servers,
 * and stage_spawn() a program, on core 1, whose output goes to a descriptor. */
int stage_pair(unsigned number);
int stage_command(const char *format, ...) __attribute__((format(printf, 1, 2)));
void stage_there(char *line, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
pid_t stage_spawn(const char *const *argv, int out);
int stage_start(struct subject *s, const char *pinwheel, const char *images);
void stage_resume(const struct subject *s);
void stage_pause(const struct subject *s);
void stage_close(struct subject *subjects, unsigned count);

/* main.c */
double median(const double *values, unsigned n);

/* dns.c: the DNS cache beside its server; an exit status */
int dns_run(const char *images, unsigned rounds, unsigned milliseconds);

/* client.c. -1: no answer. */
int client_open(struct subject *s);
int client_await(struct subject *s);                                     /* until it answers */
double client_half_us(struct subject *s, unsigned pings, unsigned size); /* median */
double client_kilo_per_s(struct subject *s, unsigned milliseconds, unsigned size);

/* firewall.c: rules that pass and drop, beside nftables; the exit status. */
int firewall(const char *pinwheel, const char *images, unsigned rounds, unsigned milliseconds);

/* pingpong.c: answers by handlers, host and kernel over sizes, with a picture unless `path` is
 * NULL; the exit status. */
int pingpong(const char *images, const char *path, unsigned rounds, unsigned pings);

/* echo.c */
int echo_udp(unsigned number);
int echo_bare(unsigned number);

#endif
