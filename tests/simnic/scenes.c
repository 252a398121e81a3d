/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for the simulated NIC, one a scene:
 *
 *      polls TIME     rank 0 looks at a counter until rank 1's put comes, TIME ns later; prints
 *                     when that was
 *      forgets        rank 0 waits for a put that nobody makes
 *      forgets polls  rank 0 looks for it
 *      mistaken       rank 0 waits for a put that rank 1 makes with other match bits
 *      gone           rank 1 has closed its interface when rank 0's put comes
 *      meets          ranks meet while a thread of rank 0 sleeps for a second; prints whether that
 *                     took less
 *      oneself        rank 0 puts, gets and adds to its own memory
 *      pipe FIFO      rank 0 waits, outside of Portals, for what rank 1 writes to it
 *      vector         rank 0 puts from memory in parts, more bytes than one packet has
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { BITS = 1, LONG = 100000 };

static uint8_t from[LONG], to[LONG];

static ptl_handle_ct_t serve(struct start *s)
{
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(to, sizeof(to), BITS, came);
    ptl_handle_me_t handle;
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    return came;
}

static void put(ptl_handle_md_t md, uint32_t rank, size_t length, ptl_ack_req_t ack)
{
    check(PtlPut(md, 0, length, ack, rank_id(rank), INDEX, BITS, 0, NULL, 0), "PtlPut");
}

static void look_for_one(ptl_handle_ct_t ct)
{
    ptl_ct_event_t value;
    do {
        check(PtlCTGet(ct, &value), "PtlCTGet");
    } while (value.success == 0);
}

static void polls(struct start *s, uint64_t ns)
{
    ptl_handle_ct_t came = serve(s);
    meet(s);
    if (s->rank == 1) {
        PtlSimCompute(ns);
        put(source(s, from, 8, PTL_CT_NONE), 0, 8, PTL_NO_ACK_REQ);
    } else if (s->rank == 0) {
        look_for_one(came);
        printf("%llu\n", (unsigned long long)PtlSimNow());
    }
}

static void forgets(struct start *s, bool looks)
{
    ptl_handle_ct_t came = serve(s);
    meet(s);
    if (s->rank == 0 && looks) {
        look_for_one(came);
    } else if (s->rank == 0) {
        await(came, 1);
    }
}

static void mistaken(struct start *s)
{
    ptl_handle_ct_t came = serve(s);
    ptl_handle_me_t handle;
    ptl_me_t rest = entry(to, sizeof(to), 0, PTL_CT_NONE);
    rest.ignore_bits = UINT64_MAX;
    check(PtlMEAppend(s->ni, INDEX, &rest, PTL_OVERFLOW_LIST, NULL, &handle), "PtlMEAppend");
    meet(s);
    if (s->rank == 1) {
        ptl_handle_md_t md = source(s, from, 8, PTL_CT_NONE);
        check(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_id(0), INDEX, 0x77, 0, NULL, 0), "PtlPut");
    } else {
        await(came, 2);
    }
}

/* The ack or the failure of the put, whichever comes. */
static ptl_ni_fail_t end_of_put(struct start *s, size_t length)
{
    ptl_event_t event;
    ptl_handle_md_t md;
    ptl_md_t range = {from, length, PTL_MD_EVENT_SEND_DISABLE, s->eq, PTL_CT_NONE};
    check(PtlMDBind(s->ni, &range, &md), "PtlMDBind");
    put(md, 1, length, PTL_ACK_REQ);
    check(PtlEQWait(s->eq, &event), "PtlEQWait");
    return event.ni_fail_type;
}

static void gone(struct start *s)
{
    serve(s);
    meet(s);
    if (s->rank == 1) {
        PtlNIFini(s->ni);
        PtlSimFence();
        exit(0);
    }
    ptl_ni_fail_t before = end_of_put(s, 8); /* it may still be there */
    PtlSimFence();
    PtlSimCompute(10000);
    printf("%d %d\n", before == PTL_NI_OK || before == PTL_NI_UNDELIVERABLE,
           end_of_put(s, 8) == PTL_NI_UNDELIVERABLE);
    exit(0);
}

static void *sleep_long(void *arg)
{
    sleep(1);
    return arg;
}

static void meets(struct start *s)
{
    pthread_t thread;
    meet(s);
    if (s->rank == 0) {
        pthread_create(&thread, NULL, sleep_long, NULL);
    }
    PtlSimFence();
    printf("%d\n", PtlSimNow() < 1000000000);
    if (s->rank == 0) {
        pthread_join(thread, NULL);
    }
}

static void oneself(struct start *s)
{
    ptl_handle_ct_t came = serve(s), done = counter(s);
    ptl_md_t range = {from, sizeof(from), PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, done};
    ptl_handle_md_t md;
    check(PtlMDBind(s->ni, &range, &md), "PtlMDBind");
    memset(from, 7, 64);
    check(PtlPut(md, 0, 64, PTL_NO_ACK_REQ, rank_id(s->rank), INDEX, BITS, 0, NULL, 0), "PtlPut");
    await(came, 1);
    check(PtlGet(md, 64, 64, rank_id(s->rank), INDEX, BITS, 0, NULL), "PtlGet");
    await(done, 1);
    uint64_t one = 1;
    memcpy(from, &one, sizeof(one));
    check(PtlFetchAtomic(md, 128, md, 0, 8, rank_id(s->rank), INDEX, BITS, 0, NULL, 0, PTL_SUM,
                         PTL_UINT64_T),
          "PtlFetchAtomic");
    await(done, 2);
    uint64_t sum, before;
    memcpy(&sum, to, sizeof(sum));
    memcpy(&before, from + 128, sizeof(before));
    printf("%d\n", from[64] == 7 && from[127] == 7 && sum == before + 1);
}

static void through_pipe(struct start *s, const char *fifo)
{
    char byte = 7;
    meet(s);
    int fd = open(fifo, s->rank == 0 ? O_RDONLY : O_WRONLY);
    ssize_t n = s->rank == 0 ? read(fd, &byte, 1) : write(fd, &byte, 1);
    printf("%d\n", n == 1 && byte == 7);
    close(fd);
}

static void vector(struct start *s)
{
    ptl_handle_ct_t came = serve(s);
    ptl_iovec_t parts[3] = {{from, 5000}, {from + 6000, 1}, {from + 7000, 60000}};
    ptl_md_t range = {parts, 3, PTL_IOVEC, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t md;
    for (size_t i = 0; i < LONG; i++) {
        from[i] = (uint8_t)(i * 7 + i / 256);
    }
    check(PtlMDBind(s->ni, &range, &md), "PtlMDBind");
    meet(s);
    if (s->rank == 0) {
        check(PtlPut(md, 0, 65001, PTL_NO_ACK_REQ, rank_id(1), INDEX, BITS, 0, NULL, 0), "PtlPut");
    } else if (s->rank == 1) {
        await(came, 1);
        printf("%d\n", memcmp(to, from, 5000) == 0 && to[5000] == from[6000] &&
                           memcmp(to + 5001, from + 7000, 60000) == 0 && to[65001] == 0);
    }
}

int main(int argc, char **argv)
{
    struct start s;
    const char *scene = argc > 1 ? argv[1] : "";
    start(&s, 1, 0);
    if (strcmp(scene, "polls") == 0 && argc > 2) {
        polls(&s, strtoul(argv[2], NULL, 10));
    } else if (strcmp(scene, "forgets") == 0) {
        forgets(&s, argc > 2);
    } else if (strcmp(scene, "mistaken") == 0) {
        mistaken(&s);
    } else if (strcmp(scene, "gone") == 0) {
        gone(&s);
    } else if (strcmp(scene, "meets") == 0) {
        meets(&s);
    } else if (strcmp(scene, "oneself") == 0) {
        oneself(&s);
    } else if (strcmp(scene, "pipe") == 0 && argc > 2) {
        through_pipe(&s, argv[2]);
    } else if (strcmp(scene, "vector") == 0) {
        vector(&s);
    } else {
        usage(&s, "polls TIME|forgets [polls]|mistaken|gone|meets|oneself|pipe FIFO|vector");
    }
    return finish(&s, 0);
}
