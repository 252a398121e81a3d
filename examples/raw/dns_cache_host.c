/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host of the DNS cache: it runs the handler (dns_cache.c) on the questions that come to an
 * address, asks the server there what the handler was asked for in vain, and fills the table.
 *
 *      dns_cache [-v] [-s] [-y] [-e ENTRIES] [-a SERVER] INTERFACE ADDRESS IMAGE
 *
 *      -v  say what was learned        -s  spin        -y  also where the default route leaves
 *      -a  the server's address, if it is not ADDRESS; its port is 53
 *
 * ADDRESS is one of this machine's, of the interface. SIGHUP empties the table: after the server's
 * data have changed, it is to be sent to both. A server that answers one client otherwise than
 * another cannot have a cache.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <pinwheel_raw.h>

#include "dns_cache_learn.h"

enum { PENDING = 64, PATIENCE = 2, ASKING_MS = 1, IDLE_MS = 50 };

/* A question that the server is being asked, twice, one behind the other. */
struct pending {
    bool used, again; /* again: the second time */
    uint32_t hash, begun;
    unsigned length, end;
    uint8_t query[DNS_QUERY_MOST];
    struct dns_entry answer[2];
};

static volatile sig_atomic_t stopped, empty;
static struct pw_raw *raw;
static struct dns_cache *cache;
static struct spin_queue *queue;
static struct pending pending[PENDING];
static unsigned in_use;
static bool verbose;
static int server = -1;
static unsigned long learned, refused, unanswered;

static void on_signal(int number)
{
    *(number == SIGHUP ? &empty : &stopped) = 1;
}

static uint32_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint32_t)t.tv_sec;
}

static void say(const char *what, const struct pending *p)
{
    const uint8_t *m = p->query;
    if (!verbose) {
        return;
    }
    fprintf(stderr, "dns_cache: %s ", what);
    for (unsigned at = DNS_HEAD; m[at] != 0; at += 1u + m[at]) {
        for (unsigned i = 1; i <= m[at]; i++) {
            uint8_t c = m[at + i];
            fputc(c > ' ' && c < 127 ? c : '?', stderr);
        }
        fputc('.', stderr);
    }
    fprintf(stderr, " type %u, %u bytes\n", dns_16(m + p->end - 4), p->length);
}

/* ---- Learning ---- */

static void ask(struct pending *p)
{
    uint16_t id = 0;
    (void)!getrandom(&id, sizeof(id), 0);
    memcpy(p->query, &id, sizeof(id));
    (void)!send(server, p->query, p->length, 0);
}

/* Takes what handlers have posted, as far as there is room for more questions. */
static void take_requests(void)
{
    struct spin_queue_request r;
    for (unsigned n = 0; n < PENDING && in_use < PENDING; n++) {
        struct pending *p = &pending[n];
        if (p->used) {
            continue;
        }
        if (!spin_queue_take(queue, &r)) {
            return;
        }
        const uint8_t *m = r.data;
        unsigned length = (unsigned)r.length, end = dns_question(m, length);
        uint32_t hash = end > 0 ? dns_hash(cache, m, length, end) : 0;
        /* it may have been asked for twice before it was looked at */
        if (end > 0 && dns_find(cache, m, length, hash) == NULL) {
            *p = (struct pending){
                .used = true, .hash = hash, .begun = cache->now, .length = length, .end = end};
            memcpy(p->query, m, length);
            struct dns_entry *e = dns_room(cache, m, length, hash, false);
            if (e != NULL) {
                dns_put(cache, e, m, length, end, hash, DNS_TTL_SERVERS);
            }
            in_use++;
            ask(p);
        }
        spin_queue_answer(queue, &r, 0);
    }
}

/* The server has answered, for so many seconds; 0: the answer is not for the table. */
static void take(struct pending *p, uint32_t ttl)
{
    if (ttl > 0 && !p->again) {
        p->again = true;
        ask(p);
        return;
    }
    p->used = false;
    in_use--;
    if (ttl > 0 && dns_same(&p->answer[0], &p->answer[1]) &&
        dns_keep(cache, p->query, p->length, p->hash, &p->answer[1], p->begun, ttl)) {
        learned++;
        say("learned", p);
    } else {
        refused++;
        say("the server's is", p);
    }
}

static void take_answer(const uint8_t *m, unsigned length)
{
    for (unsigned n = 0; n < PENDING; n++) {
        struct pending *p = &pending[n];
        if (p->used && dns_answers(p->query, p->end, m, length)) {
            struct dns_entry *into = &p->answer[p->again];
            into->question_end = (uint16_t)p->end;
            take(p, dns_take(into, m, length));
            return;
        }
    }
}

static void learn(void)
{
    uint8_t m[65536];
    ssize_t n;
    take_requests();
    while (in_use > 0 && (n = recv(server, m, sizeof(m), MSG_DONTWAIT)) >= 0) {
        if (n >= DNS_HEAD) {
            take_answer(m, (unsigned)n);
        }
    }
    for (unsigned i = 0; i < PENDING && in_use > 0; i++) {
        if (pending[i].used && cache->now - pending[i].begun > PATIENCE) {
            pending[i].used = false;
            in_use--;
            unanswered++;
            say("no answer for", &pending[i]);
        }
    }
}

/* ---- Opening ---- */

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "dns_cache: %s: %s\n", what, why);
    pw_raw_close(raw);
    return 1;
}

static int open_server(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    return server >= 0 ? connect(server, (struct sockaddr *)&to, sizeof(to)) : -1;
}

/* Questions to this address, in frames to this interface. */
static int make_rules(char *text, size_t size, const char *iface, const char *address)
{
    struct ifreq r = {0};
    uint8_t mac[6];
    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", iface);
    if (ioctl(server, SIOCGIFHWADDR, &r) != 0) {
        return -1;
    }
    memcpy(mac, r.ifr_hwaddr.sa_data, sizeof(mac));
    snprintf(text, size,
             "set dns { eth.dst = %02x:%02x:%02x:%02x:%02x:%02x; ip.dst = %s; udp.dport = 53 }",
             mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], address);
    return 0;
}

static int run(void)
{
    int n = 0;
    while (!stopped && n >= 0) {
        cache->now = seconds();
        if (empty) {
            empty = 0;
            memset(cache->entry, 0, sizeof(cache->entry[0]) * cache->sets * DNS_WAYS);
        }
        n = pw_raw_turn(raw);
        learn();
        if (n == 0) {
            n = pw_raw_wait(raw, in_use > 0 ? ASKING_MS : IDLE_MS);
        }
    }
    struct pw_raw_counts counts;
    pw_raw_counts(raw, 0, &counts);
    printf("dns_cache: frames %llu: answered %llu, passed on %llu, of which not in the table %llu; "
           "failed %llu, before they were read %llu\n"
           "dns_cache: learned %lu, the server's %lu, without answer %lu, not asked %llu\n",
           (unsigned long long)counts.frames, (unsigned long long)cache->answered,
           (unsigned long long)cache->passed, (unsigned long long)cache->not_there,
           (unsigned long long)(counts.failed + counts.faults + counts.timeouts),
           (unsigned long long)counts.lost, learned, refused, unanswered,
           (unsigned long long)spin_queue_refused(queue));
    return n < 0 ? complain("interface", pw_raw_error(raw)) : 0;
}

static int usage(void)
{
    fprintf(stderr, "dns_cache [-v] [-s] [-y] [-e ENTRIES] [-a SERVER] INTERFACE ADDRESS IMAGE\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct pw_raw_context context = {.slots = PENDING, .room = DNS_QUERY_MOST};
    struct pw_raw_source source = {.flags = PW_RAW_NATIVE};
    const char *at = NULL;
    char rules[256];
    uint32_t sets = 1;
    unsigned long entries = 8192;
    size_t size;
    int option, event;
    while ((option = getopt(argc, argv, "vsye:a:")) != -1) {
        verbose |= option == 'v';
        source.flags |= option == 's' ? PW_RAW_SPIN : option == 'y' ? PW_RAW_YES : 0;
        entries = option == 'e' ? strtoul(optarg, NULL, 10) : entries;
        at = option == 'a' ? optarg : at;
        if (option == '?') {
            return usage();
        }
    }
    if (argc - optind != 3 || entries < DNS_WAYS || entries > 1u << 22) {
        return usage();
    }
    source.iface = argv[optind];
    context.image = argv[optind + 2];
    while (sets * 2 * DNS_WAYS <= entries) {
        sets *= 2;
    }
    context.state = sizeof(*cache) + sizeof(cache->entry[0]) * sets * DNS_WAYS;
    if (open_server(at != NULL ? at : argv[optind + 1]) != 0 ||
        make_rules(rules, sizeof(rules), source.iface, argv[optind + 1]) != 0) {
        return complain(errno == ENODEV ? source.iface : "the server's address", strerror(errno));
    }
    if (pw_raw_new(&raw) != 0 || pw_raw_context(raw, &context) < 0 ||
        pw_raw_rules(raw, rules) != 0) {
        return complain(context.image, raw != NULL ? pw_raw_error(raw) : "no memory");
    }
    cache = pw_raw_state(raw, 0, &size);
    queue = pw_raw_queue(raw, 0, &event);
    cache->sets = sets;
    cache->now = seconds();
    (void)!getrandom(&cache->seed, sizeof(cache->seed), 0);
    if (pw_raw_open(raw, &source) != 0) {
        return complain(source.iface, pw_raw_error(raw));
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    fprintf(stderr, "dns_cache: answers questions to %s\n", argv[optind + 1]);
    int status = run();
    if (status == 0) {
        pw_raw_close(raw);
    }
    return status;
}
