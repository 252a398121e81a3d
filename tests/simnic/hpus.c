/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers take on simulated NICs. Rank 0 puts to rank 1, whose program prints when its
 * counter showed the message, in picoseconds from the start:
 *
 *      task NAME      a header handler does it, and drops the message of 8 bytes
 *      lock, lose     payload handlers add to a number, with a lock or without; 8 packets. Prints
 *                     the number as well, the most handlers that held the lock at once, and, of
 *                     `lock`, how often they looked in vain
 */
#include "../../examples/start.h"

#include "hpus_handlers.h"
#include "pinwheel_sim.h"

enum { BITS = 1, PACKETS = 8, PACKET = 4096 };

static const char *const tasks[] = {"none",   "write",      "read",      "add",
                                    "cas",    "read_wait",  "read_test", "read_leave",
                                    "writes", "write_read", "yield",     "puts"};
enum { TASKS = sizeof(tasks) / sizeof(tasks[0]) };

static uint64_t host[PACKETS * PACKET / 8] = {0, 99};

static ptl_handle_ct_t serve(struct start *s, const ptl_handlers_t *handlers)
{
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(host, sizeof(host), BITS, came);
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    return came;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned task = TASKS;
    start(&s, 2, 2);
    bool lock = argc == 2 && strcmp(argv[1], "lock") == 0;
    bool lose = argc == 2 && strcmp(argv[1], "lose") == 0;
    if (argc == 3 && strcmp(argv[1], "task") == 0) {
        for (task = 0; task < TASKS && strcmp(tasks[task], argv[2]) != 0; task++) {
        }
    }
    if (task == TASKS && !lock && !lose) {
        usage(&s, "task NAME|lock|lose");
    }
    struct orders orders = {.task = task};
    ptl_handle_hpu_mem_t shared;
    size_t size = task < TASKS ? sizeof(struct orders) : sizeof(struct shared);
    check(PtlHPUAllocMem(s.ni, size, &shared), "PtlHPUAllocMem");
    ptl_handlers_t h = {.header_handler = task < TASKS ? order_header : NULL,
                        .payload_handler = lock   ? locked_payload
                                           : lose ? losing_payload
                                                  : NULL,
                        .hpu_mem = shared,
                        .hpu_initial_state = task < TASKS ? (void *)&orders : NULL,
                        .hpu_initial_length = task < TASKS ? sizeof(orders) : 0};
    ptl_handle_ct_t came = serve(&s, &h);
    size_t bytes = task < TASKS ? 8 : PACKETS * PACKET;
    ptl_handle_md_t md = source(&s, memory(bytes), bytes, PTL_CT_NONE);
    meet(&s);
    uint64_t begin = PtlSimNow();
    if (s.rank == 0) {
        check(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_id(1), INDEX, BITS, 0, NULL, 0), "PtlPut");
    } else {
        await(came, 1);
        printf("%llu", (unsigned long long)(PtlSimNow() - begin));
        if (task < TASKS) {
            check(PtlHPURead(shared, 0, &orders, 8), "PtlHPURead");
            printf("%s%s\n", orders.wrong != 0 ? " wrong" : "",
                   task == TASK_WRITE && host[0] != 7 ? " not written" : "");
        } else {
            struct shared found;
            check(PtlHPURead(shared, 0, &found, sizeof(found)), "PtlHPURead");
            printf(" %u %u %u\n", found.count, found.most, found.spins);
        }
    }
    return finish(&s, 0);
}
