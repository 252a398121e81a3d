/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's side of icmp_host.c: it runs the handlers on an interface or a capture file, and a
 * second thread computes the checksums that they ask for.
 *
 *      ping_host iface NAME|tap NAME|pcap IN,OUT IMAGE [FRAMES]
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinwheel_raw.h>

static struct spin_queue *queue;
static int event_fd;
static unsigned long asked;

static void checksum(const unsigned char *data, uint64_t length, unsigned char sum[2])
{
    uint32_t total = 0;
    for (uint64_t i = 0; i < length; i++) {
        total += (uint32_t)data[i] << (i % 2 == 0 ? 8 : 0);
    }
    total = (total & 0xffff) + (total >> 16);
    total = ~(total + (total >> 16));
    sum[0] = (unsigned char)(total >> 8);
    sum[1] = (unsigned char)total;
}

/* Sleeps until handlers have asked, and answers all of them, until it is cancelled. */
static void *serve(void *arg)
{
    struct spin_queue_request r;
    struct pollfd p = {.fd = event_fd, .events = POLLIN};
    (void)arg;
    for (;;) {
        uint64_t more;
        poll(&p, 1, -1);
        if (read(event_fd, &more, sizeof(more)) < 0 && errno != EAGAIN) {
            return NULL;
        }
        while (spin_queue_take(queue, &r)) {
            checksum(r.data, r.length, r.data);
            asked++;
            spin_queue_answer(queue, &r, 2);
        }
    }
}

static int complain(struct pw_raw *raw)
{
    fprintf(stderr, "ping_host: %s\n", pw_raw_error(raw));
    pw_raw_close(raw);
    return 1;
}

int main(int argc, char **argv)
{
    struct pw_raw *raw;
    struct pw_raw_source source = {0};
    struct pw_raw_counts counts;
    pthread_t thread;
    int n = 0;
    if (argc < 4 || pw_raw_new(&raw) != 0) {
        fprintf(stderr, "ping_host iface NAME|tap NAME|pcap IN,OUT IMAGE [FRAMES]\n");
        return 2;
    }
    uint64_t frames = argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX, done = 0;
    if (strcmp(argv[1], "pcap") == 0) {
        source.pcap = strsep(&argv[2], ",");
        source.out = argv[2];
    } else {
        *(strcmp(argv[1], "tap") == 0 ? &source.tap : &source.iface) = argv[2];
    }
    struct pw_raw_context context = {.image = argv[3], .slots = 16, .room = 9000};
    if (pw_raw_context(raw, &context) < 0 || pw_raw_rules(raw, "icmp-echo") != 0 ||
        pw_raw_open(raw, &source) != 0) {
        return complain(raw);
    }
    queue = pw_raw_queue(raw, 0, &event_fd);
    pthread_create(&thread, NULL, serve, NULL);
    while (n >= 0 && done < frames) {
        n = pw_raw_turn(raw);
        done += n > 0 ? (uint64_t)n : 0;
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
    printf("frames %llu: answered %llu, failed %llu; the host was asked %lu times\n",
           (unsigned long long)counts.frames, (unsigned long long)counts.answered,
           (unsigned long long)counts.failed, asked);
    pw_raw_close(raw);
    return 0;
}
