/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's side of pingpong.c: runs its handlers on an interface or a capture file, and answers
 * in a second thread what they ask.
 *
 *      pingpong_host iface NAME|pcap IN,OUT nic|both|host IMAGE
 *
 *      gcc -O2 -D_GNU_SOURCE pingpong_host.c -o pingpong_host -pthread \
 *          $(pkg-config --cflags --libs pinwheel-raw)
 *
 * The thread sleeps on the eventfd of the queue. Where it may have a real-time priority it takes
 * the core at once from the thread of the handlers, which waits for it by polling: so one core is
 * enough for both.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pinwheel_raw.h>

#include "pingpong.h"

static struct spin_queue *queue;
static int event_fd;
static bool whole; /* requests are frames */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
    stopped = number;
}

static void answer(const struct spin_queue_request *r)
{
    uint8_t *data = r->data;
    uint64_t length = r->length;
    if (whole) {
        pingpong_turn(data);
        pingpong_put_sum(data, pingpong_sum(data + PROTO - 1, (unsigned)length - PROTO + 1));
    } else {
        unsigned sum = pingpong_sum(data, (unsigned)length);
        data[0] = (uint8_t)(sum >> 8);
        data[1] = (uint8_t)sum;
        length = 2;
    }
    spin_queue_answer(queue, r, length);
}

static void *serve(void *arg)
{
    struct spin_queue_request r;
    struct pollfd p = {.fd = event_fd, .events = POLLIN};
    struct sched_param first = {.sched_priority = 1};
    (void)arg;
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    for (;;) {
        uint64_t more;
        poll(&p, 1, -1);
        if (read(event_fd, &more, sizeof(more)) < 0 && errno != EAGAIN) {
            return NULL;
        }
        while (spin_queue_take(queue, &r)) {
            answer(&r);
        }
    }
}

static int complain(struct pw_raw *raw)
{
    fprintf(stderr, "pingpong_host: %s\n", pw_raw_error(raw));
    pw_raw_close(raw);
    return 1;
}

int main(int argc, char **argv)
{
    static const char rules[] = "set ping { icmp.type = echo; icmp.code = 0 }\n"
                                "set echo { udp.dport = 7 }\n";
    struct pw_raw *raw;
    struct pw_raw_source source = {.flags = PW_RAW_SPIN};
    struct pw_raw_counts counts;
    struct sigaction action = {.sa_handler = stop};
    pthread_t thread;
    int n = 0;
    if (argc != 5 || pw_raw_new(&raw) != 0) {
        fprintf(stderr, "pingpong_host iface NAME|pcap IN,OUT nic|both|host IMAGE\n");
        return 2;
    }
    if (strcmp(argv[1], "pcap") == 0) {
        source.pcap = strsep(&argv[2], ",");
        source.out = argv[2];
    } else {
        source.iface = argv[2];
    }
    struct pw_raw_context context = {
        .image = argv[4], .prefix = argv[3], .slots = 16, .room = 9216};
    whole = strcmp(argv[3], "host") == 0;
    if (pw_raw_context(raw, &context) < 0 || pw_raw_rules(raw, rules) != 0 ||
        pw_raw_open(raw, &source) != 0) {
        return complain(raw);
    }
    queue = pw_raw_queue(raw, 0, &event_fd);
    pthread_create(&thread, NULL, serve, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (n >= 0 && stopped == 0) {
        n = pw_raw_turn(raw);
        if (n == 0) {
            n = pw_raw_wait(raw, 100);
        }
    }
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    if (n < 0 && n != -ENODATA) {
        return complain(raw);
    }
    pw_raw_counts(raw, 0, &counts);
    printf("frames %llu: answered %llu, failed %llu\n", (unsigned long long)counts.frames,
           (unsigned long long)(counts.answered + counts.sent), (unsigned long long)counts.failed);
    pw_raw_close(raw);
    return 0;
}
