/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw firewall: frames a second through the same rules, in nftables at the interface's
 * ingress and in `pinwheel raw run`: carried out by the XDP program, in the driver and behind it,
 * and with what is to be dropped given to the handlers of examples/raw/firewall.c.
 *
 * A packet socket sends; the frames are for another host, so that the kernel drops at once what is
 * passed. A turn's value is how many more frames the firewall has counted, by processor time (what
 * else runs on the machine is none of it); so frames that were lost on the way do not count. The
 * time of nftables and of rules has that of sending in it.
 */
#include "raw/raw.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, FRAME = 60, MIXES = 3 };
enum { INGRESS, NATIVE, SKB, HANDLERS, RV32, COUNT };

struct wall {
    const char *name, *mode, *image;
    unsigned number;
    pid_t pid;
    FILE *said; /* what `pinwheel raw run` prints */
    int fd;
    double value[MIXES][ROUNDS];
};

static struct wall walls[COUNT] = {
    [INGRESS] = {.name = "nftables, ingress"},
    [NATIVE] = {.name = "rules, native", .mode = "native"},
    [SKB] = {.name = "rules, skb", .mode = "skb"},
    [HANDLERS] = {.name = "handlers, native", .mode = "native", .image = "firewall.so"},
    [RV32] = {.name = "handlers, RV32", .mode = "native", .image = "firewall.elf"},
};

static const char *const mix_name[MIXES] = {"all dropped", "all passed", "half and half"};

/* One rule a line: its name, what rules say, what nft says, and its action. */
static const struct {
    const char *name, *ours, *theirs, *action;
} rules[] = {
    {"qinq", "eth.type = 0x88a8", "ether type 0x88a8", "drop"},
    {"vlan", "vlan", "ether type 8021q", "drop"},
    {"options", "ip.header = 0..4 or ip.header = 6..15", "ether type ip ip hdrlength != 5", "drop"},
    {"fragments", "ip.fragment = 1..0x3fff", "ether type ip ip frag-off & 0x3fff != 0", "drop"},
    {"extensions", "ip6.next = 0 or ip6.next = 43..44 or ip6.next = 51 or ip6.next = 60",
     "ether type ip6 ip6 nexthdr { 0, 43-44, 51, 60 }", "drop"},
    {"arp", "arp", "ether type arp", "pass"},
    {"neighbours", "icmp6.type = 133..137", "ether type ip6 icmpv6 type 133-137", "pass"},
    {"ssh", "tcp.dport = 22; ip.src = 10.77.0.0/16; tcp.flags & 0x12 = 2",
     "ether type ip tcp dport 22 ip saddr 10.77.0.0/16 tcp flags & 0x12 == 2", "pass"},
    {"web", "tcp.dport = 80 or tcp.dport = 443; tcp.flags & 0x12 = 2",
     "ether type ip tcp dport { 80, 443 } tcp flags & 0x12 == 2", "pass"},
    {"begun", "tcp.flags & 0x10 = 0x10", "ether type ip tcp flags & 0x10 == 0x10", "pass"},
    {"reset", "tcp.flags & 4 = 4", "ether type ip tcp flags & 4 == 4", "pass"},
    {"dns", "udp.dport = 53 or udp.sport = 53", NULL, "pass"},
    {"icmp", "icmp.type = 0 or icmp.type = 3 or icmp.type = 11",
     "ether type ip icmp type { 0, 3, 11 }", "pass"},
    {"rest", "all", "", "drop"},
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static int64_t clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- The firewalls ---- */

static int write_nft(FILE *f, unsigned number)
{
    fprintf(
        f, "table netdev fw%u {\nchain in {\ntype filter hook ingress device \"s%u\" priority 0;\n",
        number, number);
    for (int i = 0; i < RULES; i++) {
        const char *action = strcmp(rules[i].action, "pass") == 0 ? "accept" : "drop";
        if (rules[i].theirs == NULL) { /* the one with two fields is two rules */
            fprintf(
                f, "ether type ip udp dport 53 counter %s\nether type ip udp sport 53 counter %s\n",
                action, action);
        } else {
            fprintf(f, "%s counter %s\n", rules[i].theirs, action);
        }
    }
    return fprintf(f, "}\n}\n") > 0 ? 0 : -1;
}

/* With handlers what would be dropped is theirs. */
static int write_ours(FILE *f, bool handlers)
{
    for (int i = 0; i < RULES; i++) {
        bool drop = strcmp(rules[i].action, "drop") == 0;
        fprintf(f, "set %s %s { %s }\n", rules[i].name, handlers && drop ? "" : rules[i].action,
                rules[i].ours);
    }
    return ferror(f) ? -1 : 0;
}

static int start(struct wall *w, const char *pinwheel, const char *images, const char *folder)
{
    char path[512], line[1024];
    int out[2];
    snprintf(path, sizeof(path), "%s/rules%u", folder, w->number);
    FILE *f = fopen(path, "we");
    if (f == NULL || stage_pair(w->number) != 0) {
        return -1;
    }
    int rc = w->mode == NULL ? write_nft(f, w->number) : write_ours(f, w->image != NULL);
    if (fclose(f) != 0 || rc != 0 || pipe(out) != 0) {
        return -1;
    }
    if (w->mode == NULL) {
        close(out[0]);
        close(out[1]);
        stage_there(line, sizeof(line), "nft -f %s", path);
        return stage_command("%s", line);
    }
    snprintf(line, sizeof(line), "%s/%s", images, w->image != NULL ? w->image : "");
    char iface[16];
    snprintf(iface, sizeof(iface), "s%u", w->number);
    const char *argv[] = {pinwheel,  "raw", "run",    "--iface", iface, "--mode", w->mode,
                          "--rules", path,  "--spin", "--image", line,  NULL};
    if (w->image == NULL) {
        argv[9] = NULL; /* there is nothing to spin for */
    }
    w->pid = stage_spawn(argv, out[1]);
    close(out[1]);
    w->said = fdopen(out[0], "r");
    return w->pid > 0 && w->said != NULL ? 0 : -1;
}

/* The sum of the numbers behind a word in what a command prints, up to a line that begins with
 * `last`. What sets have given to handlers counts when these have had it. */
static uint64_t sum(FILE *f, const char *word, const char *last)
{
    char line[1024];
    uint64_t n = 0;
    while (fgets(line, sizeof(line), f) != NULL && strncmp(line, last, strlen(last)) != 0) {
        const char *at = strstr(line, "to handlers") == NULL ? strstr(line, word) : NULL;
        n += at != NULL ? strtoull(at + strlen(word), NULL, 10) : 0;
    }
    return n;
}

/* How many frames a firewall has decided. */
static uint64_t decided(const struct wall *w)
{
    if (w->pid > 0) {
        kill(w->pid, SIGUSR1);
        return sum(w->said, "frames ", "xdp:");
    }
    char line[256];
    stage_there(line, sizeof(line), "nft list table netdev fw%u", w->number);
    FILE *f = popen(line, "re"); /* NOLINT(cert-env33-c): with nothing from outside */
    uint64_t n = f != NULL ? sum(f, "packets ", "\x01") : 0;
    if (f != NULL) {
        pclose(f);
    }
    return n;
}

/* ---- The sender ---- */

static int open_sender(struct wall *w)
{
    const int one = 1;
    char name[16];
    snprintf(name, sizeof(name), "c%u", w->number);
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(name)};
    w->fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (w->fd < 0 || bind(w->fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        setsockopt(w->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) != 0) {
        perror("bench_raw: sender");
        return -1;
    }
    return 0;
}

/* A datagram to a port that no rule names, or a segment of a connection that has begun. */
static void make(uint8_t frame[FRAME], unsigned number, bool passes)
{
    static const uint8_t head[] = {0x02, 0, 0,    0, 9, 9,  0x02, 0, 0, 0, 9, 8,
                                   8,    0, 0x45, 0, 0, 46, 0,    7, 0, 0, 64};
    memset(frame, 0, FRAME);
    memcpy(frame, head, sizeof(head));
    frame[23] = passes ? 6 : 17;
    memcpy(frame + 26, (uint8_t[]){10, 78, 0, (uint8_t)(number % 16)}, 4);
    memcpy(frame + 30, (uint8_t[]){10, 88, 0, 2}, 4);
    frame[34] = (uint8_t)(100 + number);
    frame[36] = 40;
    frame[47] = passes ? 0x10 : 0;
    frame[38] = passes ? 0 : 0;
    frame[39] = passes ? 0 : 26;
}

static double turn(struct wall *w, unsigned mix, unsigned milliseconds)
{
    static uint8_t frames[BATCH][FRAME];
    struct iovec v[BATCH];
    struct mmsghdr send[BATCH] = {0};
    for (unsigned i = 0; i < BATCH; i++) {
        make(frames[i], i, mix == 1 || (mix == 2 && i % 2 == 0));
        v[i] = (struct iovec){frames[i], FRAME};
        send[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
    }
    uint64_t before = decided(w);
    /* the processor time of who decides: of the sender's thread, in whose softirqs rules are
     * carried out, with handlers of their process, which the sender floods */
    clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
    if (w->image != NULL && clock_getcpuclockid(w->pid, &clock) != 0) {
        return -1;
    }
    int64_t begun = clock_of(clock), now = begun;
    while (now - begun < (int64_t)milliseconds * 1000000) {
        (void)!sendmmsg(w->fd, send, BATCH, 0);
        now = clock_of(clock);
    }
    uint64_t count = decided(w) - before;
    now = w->image != NULL ? clock_of(clock) : now;
    return (double)count * 1e6 / (double)(now - begun);
}

static void report(unsigned rounds)
{
    for (unsigned mix = 0; mix < MIXES; mix++) {
        printf("%s\n", mix_name[mix]);
        for (int i = 0; i < COUNT; i++) {
            double ratio[ROUNDS];
            for (unsigned r = 0; r < rounds; r++) {
                ratio[r] = walls[i].value[mix][r] / walls[INGRESS].value[mix][r];
            }
            double m = median(ratio, rounds);
            printf("  %-24s %9.1f k/s  of nftables %5.2f%s\n", walls[i].name,
                   median(walls[i].value[mix], rounds), m,
                   i != NATIVE ? ""
                   : m >= 0.9  ? "  bar 0.90: met"
                               : "  bar 0.90: MISSED");
        }
    }
}

int firewall(const char *pinwheel, const char *images, unsigned rounds, unsigned milliseconds)
{
    char folder[] = "/tmp/bench_raw.XXXXXX";
    int status = mkdtemp(folder) == NULL;
    for (unsigned i = 0; i < COUNT && status == 0; i++) {
        walls[i].number = i + 1;
        status = start(&walls[i], pinwheel, images, folder) != 0 || open_sender(&walls[i]) != 0;
    }
    for (unsigned i = 0; i < COUNT && status == 0; i++) {
        /* until it counts */
        for (int tries = 0; tries < 600 && turn(&walls[i], 2, 10) <= 0; tries++) {
            usleep(50000);
        }
    }
    for (unsigned r = 0; r < rounds && status == 0; r++) {
        for (unsigned mix = 0; mix < MIXES; mix++) {
            for (unsigned i = 0; i < COUNT; i++) {
                struct wall *w = &walls[(i + r) % COUNT];
                /* once more, if its process had no core meanwhile */
                for (int tries = 0; tries < 50 && w->value[mix][r] <= 0; tries++) {
                    w->value[mix][r] = turn(w, mix, milliseconds);
                }
                if (w->value[mix][r] <= 0) {
                    fprintf(stderr, "bench_raw: %s has decided nothing in round %u\n", w->name, r);
                    status = 1;
                }
            }
        }
    }
    if (status == 0) {
        report(rounds);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        char path[512];
        if (walls[i].pid > 0) {
            kill(walls[i].pid, SIGKILL);
        }
        snprintf(path, sizeof(path), "%s/rules%u", folder, walls[i].number);
        unlink(path);
    }
    rmdir(folder);
    return status;
}
