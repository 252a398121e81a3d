/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider of libfabric as a subject, shm or the one that the argument names: tagged
 * messages, and RMA reads of memory of the program's own; completions are polled from two queues.
 *
 * Messages that the provider takes by copy (fi_tinject) have no completion; the
 * others have one each, and `sends` counts those still to come. Receives complete in
 * any order, so a window waits for their number.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <string.h>

#include "slots.h"

enum { TAG = 1, TAG_ANSWER = 2, QUEUE = 1024, KEY = 1, LINE_READS = 0 };

static const char *provider = "shm";

/* The message by which a rank tells the other of the memory that may be read. */
struct ticket {
    uint64_t address, key;
};

static struct {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fid_cq *sent, *received;
    struct fid_ep *endpoint;
    struct fid_mr *exposed;
    fi_addr_t other;
    struct ticket theirs;
    struct slots slots;
    size_t inject;  /* bytes of the longest message without a completion */
    uint64_t sends; /* completions to come */
    uint64_t runs;  /* of reads */
} net;

static int failed(const char *what, ssize_t code)
{
    return turn_fail("%s: %s", what, fi_strerror((int)-code));
}

/* ---- Start and end ---- */

static int find_provider(void)
{
    struct fi_info *hints = fi_allocinfo();
    if (hints == NULL) {
        return turn_fail("no memory for fi_allocinfo");
    }
    hints->fabric_attr->prov_name = strdup(provider);
    hints->caps = FI_TAGGED | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    int code = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &net.info);
    fi_freeinfo(hints);
    if (code != 0) {
        return turn_fail("fi_getinfo for provider %s: %s", provider, fi_strerror(-code));
    }
    net.inject = net.info->tx_attr->inject_size;
    return 0;
}

static int open_endpoint(void)
{
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = QUEUE};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    int code;
    if ((code = fi_fabric(net.info->fabric_attr, &net.fabric, NULL)) != 0 ||
        (code = fi_domain(net.fabric, net.info, &net.domain, NULL)) != 0 ||
        (code = fi_av_open(net.domain, &av, &net.addresses, NULL)) != 0 ||
        (code = fi_cq_open(net.domain, &cq, &net.sent, NULL)) != 0 ||
        (code = fi_cq_open(net.domain, &cq, &net.received, NULL)) != 0 ||
        (code = fi_endpoint(net.domain, net.info, &net.endpoint, NULL)) != 0 ||
        (code = fi_ep_bind(net.endpoint, &net.addresses->fid, 0)) != 0 ||
        (code = fi_ep_bind(net.endpoint, &net.sent->fid, FI_TRANSMIT)) != 0 ||
        (code = fi_ep_bind(net.endpoint, &net.received->fid, FI_RECV)) != 0 ||
        (code = fi_enable(net.endpoint)) != 0) {
        return turn_fail("bringing up an endpoint of provider %s: %s", provider,
                         fi_strerror(-code));
    }
    return 0;
}

static int connect_ranks(void)
{
    char mine[512], theirs[512];
    size_t length = sizeof(mine);
    int code = fi_getname(&net.endpoint->fid, mine, &length);
    if (code != 0) {
        return failed("fi_getname", code);
    }
    if (turn_exchange(mine, length, theirs, sizeof(theirs)) < 0) {
        return -1;
    }
    code = fi_av_insert(net.addresses, theirs, 1, &net.other, 0, NULL);
    return code == 1 ? 0 : failed("fi_av_insert", code < 0 ? code : -FI_EINVAL);
}

static int expose_memory(void)
{
    int code = fi_mr_reg(net.domain, net.slots.from, SLOTS_SPACE, FI_REMOTE_READ, 0, KEY, 0,
                         &net.exposed, NULL);
    if (code != 0) {
        return failed("fi_mr_reg", code);
    }
    bool virtual = net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    struct ticket mine = {.address = virtual ? (uint64_t)(uintptr_t)net.slots.from : 0,
                          .key = fi_mr_key(net.exposed)};
    return turn_exchange(&mine, sizeof(mine), &net.theirs, sizeof(net.theirs)) < 0 ? -1 : 0;
}

static int open_net(void)
{
    if (slots_new(&net.slots) != 0 || find_provider() != 0 || open_endpoint() != 0 ||
        connect_ranks() != 0 || expose_memory() != 0) {
        return -1;
    }
    return 0;
}

static void close_net(void)
{
    fi_close(&net.exposed->fid);
    fi_close(&net.endpoint->fid);
    fi_close(&net.received->fid);
    fi_close(&net.sent->fid);
    fi_close(&net.addresses->fid);
    fi_close(&net.domain->fid);
    fi_close(&net.fabric->fid);
    fi_freeinfo(net.info);
}

/* ---- Completions ---- */

/* Reads what has completed of `queue`, at most `most`: the number, or -1. */
static int poll_queue(struct fid_cq *queue, uint64_t most)
{
    struct fi_cq_entry entries[TURN_WINDOW_RATE];
    size_t room = sizeof(entries) / sizeof(entries[0]);
    ssize_t got = fi_cq_read(queue, entries, most < room ? most : room);
    if (got == -FI_EAGAIN) {
        return 0;
    }
    struct fi_cq_err_entry error = {.err = 0};
    if (got == -FI_EAVAIL && fi_cq_readerr(queue, &error, 0) == 1) {
        return failed("a completion", -error.err);
    }
    return got > 0 ? (int)got : failed("fi_cq_read", got);
}

static int wait_received(uint64_t messages)
{
    while (messages > 0) {
        int got = poll_queue(net.received, messages);
        if (got < 0) {
            return -1;
        }
        messages -= (uint64_t)got;
    }
    return 0;
}

static int wait_sent(void)
{
    while (net.sends > 0) {
        int got = poll_queue(net.sent, net.sends);
        if (got < 0) {
            return -1;
        }
        net.sends -= (uint64_t)got;
    }
    return 0;
}

/* The provider has no room for an operation now: makes progress, which needs both
 * queues read. A send that completes is counted; receives stay in their queue. */
static int make_room(void)
{
    if (net.sends > 0) {
        int got = poll_queue(net.sent, net.sends);
        net.sends -= got > 0 ? (uint64_t)got : 0;
        return got < 0 ? -1 : 0;
    }
    ssize_t code = fi_cq_read(net.received, NULL, 0);
    return code == -FI_EAGAIN || code >= 0 ? 0 : failed("fi_cq_read", code);
}

/* ---- Messages ---- */

static int send_one(const void *from, size_t size, uint64_t tag)
{
    for (;;) {
        bool inject = size <= net.inject;
        ssize_t code = inject ? fi_tinject(net.endpoint, from, size, net.other, tag)
                              : fi_tsend(net.endpoint, from, size, NULL, net.other, tag, NULL);
        if (code == 0) {
            net.sends += !inject;
            return 0;
        }
        if (code != -FI_EAGAIN) {
            return failed("fi_tsend", code);
        }
        if (make_room() != 0) {
            return -1;
        }
    }
}

static int post_receive(void *to, size_t size, uint64_t tag)
{
    for (;;) {
        ssize_t code = fi_trecv(net.endpoint, to, size, NULL, net.other, tag, 0, NULL);
        if (code != -FI_EAGAIN) {
            return code == 0 ? 0 : failed("fi_trecv", code);
        }
        if (make_room() != 0) {
            return -1;
        }
    }
}

static int send_now(const void *from, size_t size, uint64_t tag)
{
    return send_one(from, size, tag) != 0 || wait_sent() != 0 ? -1 : 0;
}

static int receive_now(void *to, size_t size, uint64_t tag)
{
    return post_receive(to, size, tag) != 0 || wait_received(1) != 0 ? -1 : 0;
}

/* ---- Duties ---- */

static int latency(const struct turn_work *work, uint64_t iterations)
{
    const struct slots *s = &net.slots;
    int bad = 0;
    for (uint64_t i = 0; i < iterations && !bad; i++) {
        if (turn_rank() == 0) {
            bad = send_now(s->from, work->size, TAG) || receive_now(s->to, work->size, TAG);
        } else {
            bad = receive_now(s->to, work->size, TAG) || send_now(s->from, work->size, TAG);
        }
    }
    return bad ? -1 : 0;
}

static int send_window(size_t size, uint64_t messages)
{
    for (uint64_t i = 0; i < messages; i++) {
        if (send_one(slots_from(&net.slots, i), size, TAG) != 0) {
            return -1;
        }
    }
    return wait_sent() != 0 || receive_now(NULL, 0, TAG_ANSWER) != 0 ? -1 : 0;
}

static int receive_window(size_t size, uint64_t messages)
{
    for (uint64_t i = 0; i < messages; i++) {
        if (post_receive(slots_to(&net.slots, i), size, TAG) != 0) {
            return -1;
        }
    }
    return wait_received(messages) != 0 || send_now(NULL, 0, TAG_ANSWER) != 0 ? -1 : 0;
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    uint64_t messages = work->bench == BENCH_RATE ? TURN_WINDOW_RATE : TURN_WINDOW_BANDWIDTH;
    int bad = 0;
    for (uint64_t i = 0; i < iterations && !bad; i++) {
        bad = turn_rank() == 0 ? send_window(work->size, messages)
                               : receive_window(work->size, messages);
    }
    return bad ? -1 : 0;
}

static int read_one(const struct turn_work *work)
{
    ssize_t code;
    while ((code = fi_read(net.endpoint, net.slots.to, work->size, NULL, net.other,
                           net.theirs.address, net.theirs.key, NULL)) == -FI_EAGAIN) {
        if (make_room() != 0) {
            return -1;
        }
    }
    if (code != 0) {
        return failed("fi_read", code);
    }
    net.sends++;
    return wait_sent();
}

/* Rank 1 makes progress meanwhile, which reads need that are done by messages. */
static int get(const struct turn_work *work, uint64_t iterations)
{
    volatile uint64_t *over = turn_line(LINE_READS);
    int bad = 0;
    net.runs++;
    if (turn_rank() == 1) {
        while (!bad && *over < net.runs) {
            bad = make_room();
        }
        return bad;
    }
    for (uint64_t i = 0; i < iterations && !bad; i++) {
        bad = read_one(work);
    }
    *over = net.runs;
    return bad;
}

static int begin(const struct turn_work *work)
{
    return slots_begin(&net.slots, work);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return slots_end(&net.slots, work);
}

static const struct turn_duty duties[] = {
    {BENCH_LATENCY, slots_fit, begin, latency, end},
    {BENCH_GET, slots_fit, begin, get, end},
    {BENCH_RATE, slots_fit, begin, windows, end},
    {BENCH_BANDWIDTH, slots_fit, begin, windows, end},
};

int main(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "usage: %s [PROVIDER]\n", argv[0]);
        return 2;
    }
    provider = argc == 2 ? argv[1] : provider;
    if (turn_join(-1) < 0 || open_net() != 0) {
        return 1;
    }
    int served = turn_serve(duties, sizeof(duties) / sizeof(duties[0]));
    close_net();
    return served == 0 ? 0 : 1;
}
