/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC of an interface: opened with its first NI, closed with its last. */
#include "nic/nic.h"

#include "base/log.h"
#include "base/sys.h"
#include "fabric/iface.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static void free_nic(struct nic *nic)
{
    hpu_sched_destroy(nic->sched);
    hpu_watch_stop(nic->watch);
    hpu_pool_destroy(nic->hpus);
    hpu_twins_destroy(nic->twins);
    table_free(&nic->operations);
    self_free(nic);
    free(nic);
}

static struct nic *make_nic(struct process *p, unsigned index)
{
    struct nic *nic = calloc(1, sizeof(*nic));
    if (nic == NULL) {
        return NULL;
    }
    nic->process = p;
    nic->index = index;
    nic->uid = geteuid();
    nic->packet_size = (size_t)p->options.number[OPT_PACKET_SIZE];
    nic->now = clock_ns;
    nic->spin_ns = p->options.number[OPT_SPIN_US] * 1000;
    nic->yield_ns = p->options.number[OPT_YIELD_US] * 1000;
    nic->ops = &fabric_shm;
    struct fabric_info info;
    nic->ops->info(&p->options, &info);
    nic->inline_max = info.inline_max;
    nic->wake_fd = nic->thread_epoll = -1;
    list_init(&nic->all_peers);
    list_init(&nic->busy);
    list_init(&nic->acks_due);
    list_init(&nic->fired);
    list_init(&nic->counting);
    list_init(&nic->invoked);
    list_init(&nic->invoked_away);
    for (unsigned i = 0; i < PEER_BUCKETS; i++) {
        list_init(&nic->peers[i]);
    }
    table_init(&nic->operations, HANDLE_OP, index, HANDLE_MAX_INDEX, sizeof(struct op));
    table_zero_only(&nic->operations, offsetof(struct op, request));
    nic->hpus = hpu_pool_create(PTL_NUM_HPUS, (size_t)p->options.number[OPT_HPU_STACK]);
    if (p->options.number[OPT_HPU] != 0) {
        nic->twins = hpu_twins_create((size_t)p->options.number[OPT_HPU_STACK],
                                      p->options.number[OPT_HANDLER_BUDGET_US]);
    }
    if (nic->hpus == NULL || (p->options.number[OPT_HPU] != 0 && nic->twins == NULL)) {
        free_nic(nic);
        return NULL;
    }
    return nic;
}

/* The address of the index-th interface. */
static int find_interface(struct process *p, unsigned index, uint32_t *nid)
{
    struct iface faces[NICS_MAX];
    int n = iface_list(p->options.text[OPT_IFACES], faces, NICS_MAX);
    if (n < 0) {
        return PTL_FAIL;
    }
    if (index >= (unsigned)n) {
        return PTL_ARG_INVALID;
    }
    *nid = faces[index].nid;
    return PTL_OK;
}

static struct nic_board *begin_board(const struct nic *nic)
{
    struct nic_board *board = nic->ops->board(nic->fabric);
    board->index = nic->index;
    board->opened = time(NULL);
    snprintf(board->program, sizeof(board->program), "%s", program_invocation_short_name);
    __atomic_store_n(&board->version, BOARD_VERSION, __ATOMIC_RELEASE);
    return board;
}

/* Starts HPUs that are threads, if they are asked for. */
static bool start_hpus(struct nic *nic)
{
    unsigned hpus = (unsigned)nic->process->options.number[OPT_HPUS];
    const char *cpus = nic->process->options.text[OPT_HPU_PIN];
    nic->board->hpus = hpus;
    if (hpus == 0) {
        return true;
    }
    nic->sched = hpu_sched_create(nic->hpus, hpus, cpus, &nic_sched_ops, nic);
    if (nic->sched == NULL) {
        log_line(LOG_ERROR, "cannot start PINWHEEL_HPUS=%u threads with PINWHEEL_HPU_PIN=%s: %s",
                 hpus, cpus,
                 errno == EINVAL ? "not a list of processors that we may use, as 2,3,6-7"
                                 : strerror(errno));
    }
    return nic->sched != NULL;
}

int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **result)
{
    uint32_t nid;
    int rc = find_interface(p, index, &nid);
    if (rc != PTL_OK) {
        return rc;
    }
    struct nic *nic = make_nic(p, index);
    if (nic == NULL) {
        return PTL_NO_SPACE;
    }
    nic->nid = nid;
    if (getrandom(&nic->incarnation, sizeof(nic->incarnation), 0) != sizeof(nic->incarnation)) {
        nic->incarnation = (uint64_t)clock_ns() << 20 | (uint32_t)getpid();
    }
    struct fabric_setup setup = {
        .nic = nic,
        .up = &nic_upcalls,
        .options = &p->options,
        .nid = nid,
        .pid = pid == PTL_PID_ANY ? 0 : pid,
        .incarnation = nic->incarnation,
        .packet_size = nic->packet_size,
        .asymmetric = p->asymmetric,
    };
    char error[512] = "";
    int err = nic->ops->open(&setup, &nic->fabric, &nic->pid, error, sizeof(error));
    if (err != 0) {
        log_line(err == -EADDRINUSE ? LOG_INFO : LOG_ERROR, "%s", error);
        free_nic(nic);
        return err == -EADDRINUSE                 ? PTL_PID_IN_USE
               : err == -ENOSPC || err == -ENOMEM ? PTL_NO_SPACE
                                                  : PTL_FAIL;
    }
    nic->bell = nic->ops->bell(nic->fabric);
    nic->board = begin_board(nic);
    if (!start_hpus(nic)) {
        nic->ops->close(nic->fabric);
        free_nic(nic);
        return PTL_FAIL;
    }
    err = progress_start(nic);
    if (err != 0) {
        log_line(LOG_ERROR, "cannot start the NIC thread: %s", strerror(-err));
        hpu_sched_stop(nic->sched);
        nic->ops->close(nic->fabric);
        free_nic(nic);
        return PTL_FAIL;
    }
    p->nics[index] = nic;
    *result = nic;
    return PTL_OK;
}

/* Nothing that this NIC was given to send is still with it. */
static bool all_sent(void *arg)
{
    struct nic *nic = arg;
    if (!list_empty(&nic->busy) || !list_empty(&nic->acks_due) || !list_empty(&nic->fired) ||
        !list_empty(&nic->invoked)) {
        return false;
    }
    for (struct list *l = nic->all_peers.next; l != &nic->all_peers; l = l->next) {
        struct nic_peer *p = container_of(l, struct nic_peer, all);
        if (p->fabric != NULL && nic->ops->unsent(p->fabric)) {
            return false;
        }
    }
    return true;
}

void nic_close(struct nic *nic)
{
    nic_linger(nic, all_sent, nic);
    hpu_sched_stop(nic->sched);
    progress_stop(nic);
    nic->process->nics[nic->index] = NULL;
    nic_lock(nic);
    invoke_free(nic);
    nic->ops->close(nic->fabric);
    peers_free(nic);
    lock_give(&nic->lock);
    free_nic(nic);
}
