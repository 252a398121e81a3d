/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far interface of a life of the soak of births and deaths: one thread opens and closes it,
 * others wait in it, by handles that may be stale; see churn.h.
 */
#include "churn.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FAR_IFACE = PTL_IFACE_DEFAULT + 1, BYTES = 4096, OPEN_MS = 40, NOBODY = 65000 };
#define FAR_KIND ((unsigned)PTL_NI_MATCHING | PTL_NI_PHYSICAL)
#define BESIDE_KIND ((unsigned)PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL)

static struct {
    _Atomic ptl_handle_any_t eq, silent, ct, md;
    atomic_bool stop;
} now;

static unsigned char memory[LOOSE_BYTES], source[BYTES];
static uint64_t closer_random;

static int wait_eq(void)
{
    ptl_event_t e;
    return PtlEQWait(now.eq, &e);
}

static int poll_eqs(void)
{
    ptl_event_t e;
    unsigned which;
    ptl_handle_eq_t eqs[] = {now.silent, now.eq};
    return PtlEQPoll(eqs, 2, 20, &e, &which);
}

static int wait_ct(void)
{
    ptl_ct_event_t v;
    return PtlCTWait(now.ct, UINT64_MAX, &v);
}

/* Nobody has that address, so that the queue fills until the put waits. */
static int put_to_nobody(void)
{
    ptl_process_t nobody = {.phys = {FAR_NID, NOBODY}};
    return PtlPut(now.md, 0, 8, PTL_NO_ACK_REQ, nobody, 0, 0, 0, NULL, 0);
}

static int put_to_loose(void)
{
    static uint64_t r;
    unsigned to = (unsigned)splitmix_below(&r, SEATS);
    uint64_t address = churn->seat[to].address;
    ptl_process_t id = {.phys = {NEAR_NID, (ptl_pid_t)(address & 0xffff)}};
    if (address == 0) {
        return PTL_EQ_EMPTY;
    }
    return PtlPut(now.md, 0, BYTES, PTL_NO_ACK_REQ, id, LOOSE,
                  churn_bits((uint32_t)(address >> 16), LOOSE, me, 0, life), 0, NULL, 0);
}

static int (*const errands[])(void) = {wait_eq, poll_eqs, wait_ct, put_to_nobody, put_to_loose};
enum { ERRANDS = sizeof(errands) / sizeof(errands[0]) };

static pthread_t closer, waiter[ERRANDS];

static bool may_give(int rc)
{
    return rc == PTL_OK || rc == PTL_ARG_INVALID || rc == PTL_ABORTED || rc == PTL_EQ_EMPTY ||
           rc == PTL_EQ_DROPPED || rc == PTL_NO_SPACE;
}

static void pause_us(unsigned us)
{
    struct timespec t = {0, (long)us * 1000};
    nanosleep(&t, NULL);
}

static void *wait_often(void *arg)
{
    int (*errand)(void) = *(int (*const *)(void))arg;
    while (!now.stop) {
        int rc = errand();
        MUST(may_give(rc), "errand %d of those in the far interface gives %d",
             (int)((int (*const *)(void))arg - errands), rc);
        churn_add(C_ENDED, rc != PTL_OK);
        pause_us(rc == PTL_OK ? 50 : 500); /* the others want the processor, too */
    }
    return NULL;
}

/* Under the address it had, if that is free and not another one is to be tried. */
static ptl_handle_ni_t open_near(ptl_pid_t *pid)
{
    ptl_handle_ni_t far;
    int rc = PTL_PID_IN_USE;
    if (*pid != 0 && splitmix_below(&closer_random, 32) != 0) {
        rc = PtlNIInit(FAR_IFACE, FAR_KIND, *pid, NULL, NULL, &far);
    }
    if (rc == PTL_PID_IN_USE) {
        rc = PtlNIInit(FAR_IFACE, FAR_KIND, PTL_PID_ANY, NULL, NULL, &far);
    }
    OK(rc);
    ptl_process_t id;
    OK(PtlGetPhysId(far, &id));
    MUST(id.phys.nid == FAR_NID, "the second interface is %08x", id.phys.nid);
    *pid = id.phys.pid;
    return far;
}

static ptl_handle_ni_t open_far(void)
{
    static ptl_pid_t pid;
    ptl_handle_eq_t eq, silent;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    ptl_pt_index_t pt;
    ptl_handle_ni_t far = open_near(&pid);
    OK(PtlEQAlloc(far, 64, &eq));
    OK(PtlEQAlloc(far, 64, &silent));
    OK(PtlCTAlloc(far, &ct));
    ptl_md_t d = {
        .start = source, .length = BYTES, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(far, &d, &md));
    OK(PtlPTAlloc(far, splitmix_below(&closer_random, 2) == 0 ? PTL_PT_FLOWCTRL : 0, eq, SECOND,
                  &pt));
    ptl_me_t e = {.start = memory,
                  .length = LOOSE_BYTES,
                  .ct_handle = ct,
                  .uid = PTL_UID_ANY,
                  .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                  .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                  .ignore_bits = UINT64_MAX};
    OK(PtlMEAppend(far, SECOND, &e, PTL_PRIORITY_LIST, NULL, &entry));
    now.eq = eq;
    now.silent = silent;
    now.ct = ct;
    now.md = md;
    churn->seat[me].second = pid;
    return far;
}

static void *open_and_close(void *unused)
{
    ptl_handle_ni_t beside;
    (void)unused;
    while (!now.stop) {
        ptl_handle_ni_t far = open_far();
        bool stays = splitmix_below(&closer_random, 2) == 0; /* the NIC, when its NI is closed */
        if (stays) {
            OK(PtlNIInit(FAR_IFACE, BESIDE_KIND, PTL_PID_ANY, NULL, NULL, &beside));
        }
        pause_us((unsigned)splitmix_below(&closer_random, OPEN_MS * 1000));
        if (splitmix_below(&closer_random, 4) == 0) {
            PtlAbort();
        }
        OK(PtlNIFini(far));
        if (stays) {
            OK(PtlNIFini(beside));
        }
        churn_add(C_CLOSED, 1);
        pause_us((unsigned)splitmix_below(&closer_random, 5000));
    }
    return NULL;
}

void closer_begin(void)
{
    closer_random = seed ^ (uint64_t)life << 16 ^ 77;
    MUST(pthread_create(&closer, NULL, open_and_close, NULL) == 0, "no thread");
    for (int k = 0; k < ERRANDS; k++) {
        MUST(pthread_create(&waiter[k], NULL, wait_often, (void *)&errands[k]) == 0, "no thread");
    }
}

void closer_end(void)
{
    now.stop = true;
    MUST(pthread_join(closer, NULL) == 0, "no join");
    for (int k = 0; k < ERRANDS; k++) {
        MUST(pthread_join(waiter[k], NULL) == 0, "no join");
    }
}
