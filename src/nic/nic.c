/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC of an interface: opened with its first NI, closed with its last. */
#include "nic/nic.h"

#include "base/log.h"
#include "base/sys.h"
#include "fabric/iface.h"
#include "hpu/mover.h"
#include "hpu/twin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PINWHEEL_FABRIC. */
enum path { PATH_AUTO, PATH_SHM, PATH_UDP };

static void free_nic(struct nic *nic)
{
    hpu_sched_destroy(nic->sched);
    hpu_mover_destroy(nic->mover);
    hpu_watch_stop(nic->watch);
    hpu_pool_destroy(nic->hpus);
    hpu_twins_destroy(nic->twins);
    table_free(&nic->operations);
    self_free(nic);
    hpu_memory_forget(nic);
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
    nic->wake_at = progress_wake_at;
    nic->spin_ns = p->options.number[OPT_SPIN_US] * 1000;
    nic->yield_ns = p->options.number[OPT_YIELD_US] * 1000;
    nic->ops = &fabric_shm;
    nic->net_ops = &fabric_udp;
    nic->net_only = p->options.number[OPT_FABRIC] == PATH_UDP;
    struct fabric_info info;
    nic->ops->info(&p->options, &info);
    nic->inline_max = info.inline_max;
    nic->wake_fd = nic->alarm_fd = nic->thread_epoll = -1;
    list_init(&nic->all_peers);
    list_init(&nic->busy);
    list_init(&nic->acks_due);
    list_init(&nic->fired);
    list_init(&nic->counting);
    list_init(&nic->gone.detached);
    list_init(&nic->timers);
    list_init(&nic->invoked);
    list_init(&nic->invoked_away);
    list_init(&nic->spare_invocations);
    for (unsigned i = 0; i < PEER_BUCKETS; i++) {
        list_init(&nic->peers[i]);
    }
    table_init(&nic->operations, HANDLE_OP, index, HANDLE_MAX_INDEX, sizeof(struct op));
    nic->hpus = hpu_pool_create(PTL_NUM_HPUS, (size_t)p->options.number[OPT_HPU_STACK]);
    nic->mover = hpu_mover_create();
    if (p->options.number[OPT_HPU] != 0) {
        nic->twins = hpu_twins_create((size_t)p->options.number[OPT_HPU_STACK],
                                      &rv32_timings[p->options.number[OPT_HPU_TIMING]],
                                      p->options.number[OPT_HANDLER_BUDGET_US]);
        if (nic->twins != NULL) {
            nic->twins->beside = p->options.text[OPT_HPU_IMAGES];
        }
    }
    if (nic->hpus == NULL || nic->mover == NULL ||
        (p->options.number[OPT_HPU] != 0 && nic->twins == NULL)) {
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
    board->opened = sys_clock_ns(CLOCK_REALTIME) / 1000000000;
    snprintf(board->program, sizeof(board->program), "%s", program_invocation_short_name);
    if (nic->twins != NULL) {
        const struct rv32_timing *t = nic->twins->timing;
        board->core_mhz = t->clock_mhz;
        snprintf(board->core, sizeof(board->core), "%s%s%s", t->name, t->label != NULL ? ", " : "",
                 t->label != NULL ? t->label : "");
    }
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

unsigned nic_peers_most(const struct nic *nic)
{
    struct fabric_info home, net = {0};
    nic->ops->info(&nic->process->options, &home);
    if (nic->net != NULL) {
        nic->net_ops->info(&nic->process->options, &net);
    }
    return home.max_peers + net.max_peers;
}

/* A second fabric is opened where it is of use. */
static bool wants_net(const struct process *p)
{
    const struct options *o = &p->options;
    return o->number[OPT_FABRIC] == PATH_UDP ||
           (o->number[OPT_FABRIC] == PATH_AUTO &&
            (o->number[OPT_UDP_OPEN] != 0 || o->text[OPT_JOB_KEY_FILE][0] != '\0' ||
             p->key.length != 0));
}

static void close_fabrics(struct nic *nic)
{
    if (nic->net != NULL) {
        nic->net_ops->close(nic->net);
        nic->net = NULL;
    }
    if (nic->fabric != NULL) {
        nic->ops->close(nic->fabric);
        nic->fabric = NULL;
    }
}

/* Opens both fabrics with one PID: the socket decides it, since what ports are free is not
 * ours to say. */
static int open_both(struct nic *nic, uint32_t pid, char *error, size_t size)
{
    const struct options *o = &nic->process->options;
    struct fabric_setup setup = {
        .nic = nic,
        .up = &nic_upcalls,
        .options = o,
        .nid = nic->nid,
        .pid = pid,
        .incarnation = nic->incarnation,
        .packet_size = nic->packet_size,
        .key = nic->process->key.length != 0 ? &nic->process->key : NULL,
        .asymmetric = nic->process->asymmetric,
        .own_only = nic->net_only,
        .alone = nic->net_only,
    };
    nic->pid = pid;
    int rc =
        wants_net(nic->process) ? nic->net_ops->open(&setup, &nic->net, &nic->pid, error, size) : 0;
    if (rc == 0) {
        setup.pid = nic->pid;
        rc = nic->ops->open(&setup, &nic->fabric, &nic->pid, error, size);
    }
    if (rc != 0) {
        close_fabrics(nic);
    }
    return rc;
}

static int open_fabrics(struct nic *nic, uint32_t pid)
{
    enum { TRIES = 16 }; /* any PID will do: another process may have the one we got */
    char error[512] = "";
    int rc = -EADDRINUSE;
    for (int i = 0; i < (pid == 0 ? TRIES : 1) && rc == -EADDRINUSE; i++) {
        rc = open_both(nic, pid, error, sizeof(error));
    }
    if (rc == 0) {
        return PTL_OK;
    }
    log_line(rc == -EADDRINUSE ? LOG_INFO : LOG_ERROR, "%s", error);
    return rc == -EADDRINUSE                ? PTL_PID_IN_USE
           : rc == -ENOSPC || rc == -ENOMEM ? PTL_NO_SPACE
                                            : PTL_FAIL;
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
    if (sys_getrandom(&nic->incarnation, sizeof(nic->incarnation)) != sizeof(nic->incarnation)) {
        nic->incarnation = (uint64_t)clock_ns() << 20 | (uint32_t)getpid();
    }
    rc = open_fabrics(nic, pid == PTL_PID_ANY ? 0 : pid);
    if (rc != PTL_OK) {
        free_nic(nic);
        return rc;
    }
    nic->bell = nic->ops->bell(nic->fabric);
    nic->board = begin_board(nic);
    if (!start_hpus(nic)) {
        close_fabrics(nic);
        free_nic(nic);
        return PTL_FAIL;
    }
    int err = progress_start(nic);
    if (err != 0) {
        log_line(LOG_ERROR, "cannot start the NIC thread: %s%s", strerror(-err), log_remedy(-err));
        hpu_sched_stop(nic->sched);
        close_fabrics(nic);
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
        if (p->fabric != NULL && p->ops->unsent(p->fabric)) {
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
    close_fabrics(nic);
    invoke_free(nic);
    peers_free(nic);
    lock_give(&nic->lock);
    free_nic(nic);
}
