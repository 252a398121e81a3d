/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC of an interface: opened with its first NI, closed with its last one. */
#include "nic/nic.h"

#include "base/log.h"
#include "base/sys.h"
#include "fabric/iface.h"
#include "hpu/device.h"
#include "hpu/dma_engine.h"
#include "nic/peer.h"
#include "nic/process.h"
#include "nic/progress.h"
#include "nic/self.h"
#include "nic/spin_calls.h"
#include "nic/timed.h"
#include "nic/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of PINWHEEL_FABRIC. */
enum path { PATH_AUTO, PATH_SHM, PATH_UDP, PATH_SIM };

static void clear_bytes(struct nic *nic, size_t from, size_t to)
{
    memset((char *)nic + from, 0, to - from);
}

/* Clears a closed NIC for its next opening: all but the lock, and the fields that threads read
 * without it. Lock held, except for a NIC that no thread knows yet. */
static void clear_nic(struct nic *nic)
{
    nic->doorbell = &nic->no_doorbell;
    nic->ops = &fabric_none;
    nic->net = NULL;
    nic->time = NULL;
    clear_bytes(nic, offsetof(struct nic, ni), offsetof(struct nic, lock));
    clear_bytes(nic, offsetof(struct nic, linger_end), offsetof(struct nic, empty_polls));
    atomic_store_explicit(&nic->attention, false, memory_order_relaxed);
    nic->slept_ns = nic->probe_at = 0;
    nic->wake_fd = nic->alarm_fd = nic->thread_epoll = -1;
    list_init(&nic->all_peers);
    list_init(&nic->busy);
    list_init(&nic->sought);
    list_init(&nic->acks_due);
    list_init(&nic->fired);
    list_init(&nic->counting);
    nic->host.nic = nic;
    list_init(&nic->host.detached);
    list_init(&nic->timers);
    list_init(&nic->invoked);
    list_init(&nic->invoked_away);
    list_init(&nic->spare_invocations);
    for (unsigned i = 0; i < PEER_BUCKETS; i++) {
        list_init(&nic->peers[i]);
    }
}

/* Gives back all that the NIC has but its memory, and leaves it closed: threads that look at it
 * find no fabric, and empty lists. The caller holds the lock; this releases it. */
static void leave_nic(struct nic *nic)
{
    struct hpu_sched *sched = nic->sched;
    struct hpu_dma_engine *engine = nic->dma_engine;
    struct hpu_watchdog *watchdog = nic->watchdog;
    struct hpu_pool *hpus = nic->hpus;
    struct hpu_device *device = nic->device;
    table_free(&nic->operations);
    self_free(nic);
    hpu_memory_forget(nic);
    clear_nic(nic);
    lock_give(&nic->lock);
    hpu_sched_destroy(sched);
    hpu_dma_engine_destroy(engine);
    hpu_watchdog_stop(watchdog);
    hpu_pool_destroy(hpus);
    hpu_device_destroy(device);
}

/* Makes the HPUs of a NIC, and the device that runs RV32 code if there is one. */
static bool make_hpus(struct nic *nic)
{
    const struct options *o = &nic->process->options;
    nic->hpus = hpu_pool_create(PTL_NUM_HPUS, (size_t)o->number[OPT_HPU_STACK]);
    nic->dma_engine = nic->time == NULL ? hpu_dma_engine_create() : NULL;
    if (o->number[OPT_HPU] != 0) {
        nic->device = hpu_device_create((size_t)o->number[OPT_HPU_STACK],
                                        &rv32_timings[o->number[OPT_HPU_TIMING]],
                                        o->number[OPT_HANDLER_BUDGET_US]);
        if (nic->device != NULL) {
            nic->device->beside = o->text[OPT_HPU_IMAGES];
            nic->device->timed = nic->time != NULL;
        }
    }
    return nic->hpus != NULL && (nic->dma_engine != NULL || nic->time != NULL) &&
           (o->number[OPT_HPU] == 0 || nic->device != NULL);
}

/* Returns the memory of all NICs of an index, one after the other; makes it for the first one. */
static struct nic *find_memory(struct process *p, unsigned index)
{
    struct nic *nic = p->nic_memory[index];
    if (nic == NULL) {
        nic = calloc(1, sizeof(*nic));
        if (nic == NULL) {
            return NULL;
        }
        nic->process = p;
        nic->index = index;
        nic->net_ops = &fabric_udp;
        clear_nic(nic);
        __atomic_store_n(&p->nic_memory[index], nic, __ATOMIC_RELEASE);
    }
    return nic;
}

static const struct fabric_ops *home_of(const struct process *p)
{
    return p->options.number[OPT_FABRIC] == PATH_SIM ? &fabric_sim : &fabric_shm;
}

/* Sets up a NIC in its memory. False: memory is short. */
static bool begin_nic(struct nic *nic)
{
    const struct options *o = &nic->process->options;
    nic->uid = nic->host.uid = geteuid();
    nic->packet_size = (size_t)o->number[OPT_PACKET_SIZE];
    nic->now = clock_ns;
    nic->wake_at = progress_wake_at;
    nic->spin_ns = o->number[OPT_SPIN_US] * 1000;
    nic->yield_ns = o->number[OPT_YIELD_US] * 1000;
    nic->queue_most = (uint64_t)o->number[OPT_HPU_QUEUE];
    nic->messages_most = 1;
    nic->net_only = o->number[OPT_FABRIC] == PATH_UDP;
    struct fabric_info info;
    home_of(nic->process)->info(o, &info);
    nic->inline_max = info.inline_max;
    nic->time = home_of(nic->process)->home->time;
    nic->fastpath = options_fastpath(o) && nic->time == NULL;
    if (nic->time != NULL) {
        timed_begin(nic);
    }
    nic->short_end = nic->fastpath ? info.inline_max + 1 : 0;
    nic->now_end = nic->fastpath ? NIC_SEND_NOW_MAX + 1 : 0;
    nic->self_afar = !nic->fastpath; /* stays true without the fast path: self.c */
    place_open(nic);
    fabric_udp.info(o, &info);
    nic->contact_ns = info.contact_ns;
    table_init(&nic->operations, HANDLE_OP, nic->index, HANDLE_MAX_INDEX, sizeof(struct op));
    shares_init(&nic->shares[SHARE_OWN], (unsigned)o->number[OPT_HANDLER_QUEUE]);
    shares_init(&nic->shares[SHARE_HOST], HANDLE_MAX_INDEX / 2);
    return make_hpus(nic);
}

/* Finds the address of the interface with this index. */
static int find_interface(struct process *p, unsigned index, uint32_t *nid)
{
    struct iface faces[NICS_MAX];
    const struct fabric_time *time = home_of(p)->home->time;
    if (time != NULL) {
        *nid = time->nid();
        return *nid != 0 && index == 0 ? PTL_OK : PTL_FAIL;
    }
    int n = iface_list(p->options.text[OPT_IFACES], faces, NICS_MAX);
    if (n < 0) {
        return PTL_FAIL;
    }
    if (index >= (unsigned)n) {
        log_line(LOG_WARN,
                 "PtlNIInit is refused: there is no interface PTL_IFACE_DEFAULT + %u, "
                 "see PINWHEEL_IFACES=%s",
                 index, p->options.text[OPT_IFACES]);
        return PTL_ARG_INVALID;
    }
    *nid = faces[index].nid;
    return PTL_OK;
}

static struct nic_stats *begin_stats(const struct nic *nic)
{
    struct nic_stats *stats = nic->ops->home->stats(nic->fabric);
    stats->index = nic->index;
    stats->opened = sys_clock_ns(CLOCK_REALTIME) / 1000000000;
    snprintf(stats->program, sizeof(stats->program), "%s", program_invocation_short_name);
    if (nic->device != NULL) {
        const struct rv32_timing *t = nic->device->timing;
        stats->core_mhz = t->clock_mhz;
        snprintf(stats->core, sizeof(stats->core), "%s%s%s", t->name, t->label != NULL ? ", " : "",
                 t->label != NULL ? t->label : "");
    }
    __atomic_store_n(&stats->version, STATS_VERSION, __ATOMIC_RELEASE);
    return stats;
}

/* Starts the threads that are HPUs, if PINWHEEL_HPUS asks for some. */
static bool start_hpus(struct nic *nic)
{
    unsigned hpus = (unsigned)nic->process->options.number[OPT_HPUS];
    const char *cpus = nic->process->options.text[OPT_HPU_PIN];
    nic->stats->hpus = hpus;
    if (hpus == 0 && nic->time == NULL) {
        return true;
    }
    struct hpu_sched *sched = nic->time != NULL
                                  ? timed_hpus(nic)
                                  : hpu_sched_create(nic->hpus, hpus, cpus, &nic_sched_ops, nic);
    if (sched == NULL) {
        log_line(LOG_ERROR, "cannot start PINWHEEL_HPUS=%u threads with PINWHEEL_HPU_PIN=%s: %s",
                 hpus, cpus,
                 errno == EINVAL ? "not a list of processors that we may use, as 2,3,6-7"
                                 : strerror(errno));
        return false;
    }
    nic_lock(nic);
    nic->sched = sched;
    lock_give(&nic->lock);
    return true;
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

/* Whether the process needs the UDP fabric, beside that of its host. */
static bool wants_net(const struct process *p)
{
    const struct options *o = &p->options;
    return o->number[OPT_FABRIC] == PATH_UDP ||
           (o->number[OPT_FABRIC] == PATH_AUTO &&
            (o->number[OPT_UDP_OPEN] != 0 || o->text[OPT_JOB_KEY_FILE][0] != '\0' ||
             p->key.length != 0));
}

/* Closes both fabrics; lock held. A thread that looks at the NIC without the lock may still use
 * either. */
static void close_fabrics(struct nic *nic)
{
    if (nic->net != NULL) {
        nic->net_ops->close(nic->net);
        nic->net = NULL;
    }
    if (nic->ops != &fabric_none) {
        nic->ops->close(nic->fabric);
        nic->ops = &fabric_none;
    }
}

/* Opens both fabrics with one PID. UDP goes first and chooses the PID, as that is also its port,
 * and the host has others' ports in use. */
static int open_both(struct nic *nic, uint32_t pid, struct reason *why)
{
    const struct options *o = &nic->process->options;
    struct fabric_setup setup = {
        .nic = nic,
        .nic_size = sizeof(*nic),
        .up = nic->fastpath ? &nic_upcalls : &nic_upcalls_staged,
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
    struct fabric *net = NULL, *home;
    int rc = wants_net(nic->process) ? nic->net_ops->open(&setup, &net, &pid, why) : 0;
    if (rc == 0) {
        nic->net = net;
        setup.pid = pid;
        rc = home_of(nic->process)->open(&setup, &home, &pid, why);
    }
    if (rc == 0) {
        nic->fabric = home;
        nic->ops = home_of(nic->process);
        nic->pid = pid;
    } else {
        close_fabrics(nic);
    }
    return rc;
}

static int open_fabrics(struct nic *nic, uint32_t pid)
{
    /* if the caller takes any PID: another process may have taken the one that UDP chose */
    enum { TRIES = 16 };
    struct reason why = {""};
    char note[LOG_NOTE] = "";
    int rc = -EADDRINUSE;
    for (int i = 0; i < (pid == 0 ? TRIES : 1) && rc == -EADDRINUSE; i++) {
        rc = open_both(nic, pid, &why);
    }
    if (rc == 0) {
        return PTL_OK;
    }
    /* Not logged each time: a program may try one PID after the other. */
    if (rc != -EADDRINUSE || log_again((uintptr_t)open_fabrics, clock_ns(), note)) {
        log_line(LOG_ERROR, "%s%s", why.text, note);
    }
    return rc == -EADDRINUSE                ? PTL_PID_IN_USE
           : rc == -ENOSPC || rc == -ENOMEM ? PTL_NO_SPACE
                                            : PTL_FAIL;
}

/* Opens the fabrics of a NIC, and with them doorbell and stats page; lock held. Returns a PTL_
 * code. */
static int open_ends(struct nic *nic, ptl_pid_t pid)
{
    if (sys_getrandom(&nic->incarnation, sizeof(nic->incarnation)) != sizeof(nic->incarnation)) {
        nic->incarnation = (uint64_t)clock_ns() << 20 | (uint32_t)getpid();
    }
    int rc = open_fabrics(nic, pid == PTL_PID_ANY ? 0 : pid);
    if (rc == PTL_OK) {
        nic->doorbell = nic->ops->home->doorbell(nic->fabric);
        nic->stats = begin_stats(nic);
    }
    return rc;
}

/* Starts the NIC's threads. Returns a PTL_ code. */
static int start_threads(struct nic *nic)
{
    if (!start_hpus(nic)) {
        return PTL_FAIL;
    }
    int err = progress_start(nic);
    if (err != 0) {
        log_line(LOG_ERROR, "cannot start the NIC thread: %s%s", strerror(-err), log_remedy(-err));
        hpu_sched_stop(nic->sched);
    }
    return err == 0 ? PTL_OK : PTL_FAIL;
}

/* Closes a NIC that has no NI and no threads. The caller holds the lock; this releases it. */
static void end_nic(struct nic *nic)
{
    nic->doorbell = &nic->no_doorbell; /* first, since the doorbell is in the memory of a fabric */
    close_fabrics(nic);
    invoke_free(nic);
    peers_free(nic);
    leave_nic(nic);
}

/* Gives the first thread its whole mask back, so that the threads of a NIC that is being opened do
 * not inherit its home. */
static void free_held_place(struct nic *nic)
{
    nic_lock(nic);
    place_free(nic);
    nic_unlock(nic);
}

int nic_no_memory(void)
{
    log_line(LOG_ERROR, "PtlNIInit: memory is short: %s", strerror(errno));
    return PTL_NO_SPACE;
}

int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **result)
{
    uint32_t nid;
    int rc = find_interface(p, index, &nid);
    if (rc != PTL_OK) {
        return rc;
    }
    process_each_nic(p, free_held_place);
    struct nic *nic = find_memory(p, index);
    if (nic == NULL) {
        return nic_no_memory();
    }
    nic_lock(nic);
    nic->nid = nid;
    rc = begin_nic(nic) ? open_ends(nic, pid) : nic_no_memory();
    if (rc == PTL_OK) {
        lock_give(&nic->lock);
        rc = start_threads(nic);
        if (rc == PTL_OK) {
            p->nics[index] = nic;
            *result = nic;
            return PTL_OK;
        }
        nic_lock(nic);
    }
    end_nic(nic);
    return rc;
}

/* Whether the NIC has sent all operations and handlers' messages that it was given. */
static bool all_sent(void *arg)
{
    struct nic *nic = arg;
    if (!list_empty(&nic->busy) || !list_empty(&nic->acks_due) || !list_empty(&nic->fired) ||
        !list_empty(&nic->invoked)) {
        return false;
    }
    LIST_EACH(struct nic_peer, p, &nic->all_peers, all) {
        if (p->fabric != NULL && p->ops->unsent(p->fabric)) {
            return false;
        }
    }
    return true;
}

/* Keeps the memory of this NIC, and that of its NIs, from the next NIC: a program thread has stayed
 * inside. */
static void abandon(struct nic *nic)
{
    struct process *p = nic->process;
    __atomic_store_n(&p->nic_memory[nic->index], NULL, __ATOMIC_RELEASE);
    for (unsigned k = 0; k < NI_KINDS; k++) {
        p->ni_memory[nic->index * NI_KINDS + k] = NULL;
    }
}

void nic_close(struct nic *nic)
{
    nic_linger(nic, all_sent, nic);
    hpu_sched_stop(nic->sched);
    progress_stop(nic);
    nic->process->nics[nic->index] = NULL;
    nic_lock(nic);
    place_free(nic);
    if (nic->haunted) {
        abandon(nic);
    }
    end_nic(nic);
}
