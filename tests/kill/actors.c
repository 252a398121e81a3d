/* SPDX-License-Identifier: BSD-3-Clause */
/* The three actors of a kill test; see kill.h, and exchange.h for what they do. */
#include "exchange.h"

#include <dirent.h>
#include <unistd.h>

/* ---- the peer ---- */

static bool entries_free(int unused)
{
    for (unsigned i = 0; i < PIECES; i++) {
        int code =
            exchange_entry[i] != PTL_INVALID_HANDLE ? PtlMEUnlink(exchange_entry[i]) : PTL_OK;
        if (code == PTL_IN_USE) {
            return false;
        }
        if (code != PTL_OK) {
            fail("PtlMEUnlink gives %d", code);
        }
        exchange_entry[i] = PTL_INVALID_HANDLE;
    }
    return true;
}

/* Entries for messages of the dead are free, unless one came, whole or not. */
static bool claims_free(int unused)
{
    for (unsigned i = 0; i < PIECES; i++) {
        if (!claim[i].appended || claim[i].taken != 0) {
            continue;
        }
        int code = PtlMEUnlink(claim[i].handle);
        if (code == PTL_OK) {
            claim[i].appended = false;
        } else if (code != PTL_IN_USE && code != PTL_ARG_INVALID) {
            fail("PtlMEUnlink of an appended entry gives %d", code);
        } else {
            return false; /* its event is under way */
        }
    }
    return true;
}

static bool claims_unlinked(int unused)
{
    for (unsigned i = 0; i < PIECES; i++) {
        if (claim[i].taken != claim[i].unlinked || claim[i].taken > 1) {
            return false;
        }
    }
    return true;
}

static bool md_free(int unused)
{
    int code = PtlMDRelease(source_md);
    if (code != PTL_OK && code != PTL_IN_USE) {
        fail("PtlMDRelease gives %d", code);
    }
    return code == PTL_OK;
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

static int descriptors_before;

static bool descriptors_closed(int unused)
{
    return descriptors() <= descriptors_before;
}

static bool probes_ended(int unused)
{
    return op[PIECES].answers >= 1 && op[PIECES + 1].answers >= 1;
}

/* After the death: everything that names the victim has ended, nothing is held,
 * and operations to its address are undeliverable. */
static void settle(void)
{
    ptl_ct_event_t value;
    if (to_overflow()) {
        await(claims_free, 0, "the entries for the victim's messages");
        await(claims_unlinked, 0, "the AUTO_UNLINK of entries that took messages");
    }
    await(entries_free, 0, "what the victim used");
    append_exchange();
    OK(PtlCTGet(counter, &value));
    unsigned asked = scenario->victim_asks ? 0 : KILL_OPS;
    if (value.success + value.failure != asked) {
        fail("the counter is at %llu + %llu failures, not %u", (unsigned long long)value.success,
             (unsigned long long)value.failure, asked);
    }
    start_op(PIECES, PID_VICTIM);
    start_op(PIECES + 1, PID_VICTIM);
    await(probes_ended, 0, "operations to the dead");
    for (unsigned i = PIECES; i < PIECES + 2; i++) {
        if (op[i].failed != op[i].answers) {
            fail("an operation to the dead succeeded");
        }
    }
    await(md_free, 0, "the MD that was used towards the victim");
    bind_source();
    await(descriptors_closed, 0, "the descriptors of the dead victim's connection");
}

static bool bystander_known(int unused)
{
    return echoes >= 2;
}

/* It may be in the middle of a ping when all are told to go. */
static bool bystander_through(int unused)
{
    return atomic_load(&stage->through) != 0;
}

void run_peer(void)
{
    open_end(0, PID_PEER);
    atomic_store(&stage->ready[0], 1);
    await(bystander_known, 0, "the bystander's first ping");
    descriptors_before = descriptors();
    await(phase_is, PHASE_WORK, "the start");
    if (!scenario->victim_asks) {
        ask(0, PID_VICTIM, "the end of what was outstanding with the victim");
    }
    atomic_store(&stage->asked[0], 1);
    await(phase_is, PHASE_DEAD, "the victim's end");
    settle();
    atomic_store(&stage->settled, 1);
    await(phase_is, PHASE_AGAIN, "the second victim");
    if (scenario->victim_asks) {
        await(all_served, 1, "what the second victim sends");
    } else {
        ask(1, PID_VICTIM, "the exchange with the second victim");
    }
    atomic_store(&stage->asked[1], 1);
    await(phase_is, PHASE_STOP, "the end");
    await(bystander_through, 0, "the bystander's last ping");
    close_end();
}

/* ---- the victim ---- */

static bool peer_has_asked(int life)
{
    return atomic_load(&stage->asked[life]) != 0;
}

void run_victim(int life)
{
    open_end(2 + life, PID_VICTIM);
    atomic_store(&stage->ready[2 + life], 1);
    await(phase_is, life == 0 ? PHASE_WORK : PHASE_AGAIN, "the start");
    if (scenario->victim_asks) {
        ask(life, PID_PEER, "its exchange");
        for (unsigned i = 0; i < KILL_OPS; i++) {
            if (op[(unsigned)life * KILL_OPS + i].failed != 0) {
                fail("an operation to the live peer failed");
            }
        }
    } else {
        await(all_served, life, "what the peer sends");
    }
    await(peer_has_asked, life, "the peer");
    close_end();
}

/* ---- the bystander ---- */

static bool echoed(int unused)
{
    return echoes >= pings && ping_acks >= pings;
}

void run_bystander(void)
{
    open_end(1, PID_BYSTANDER);
    atomic_store(&stage->ready[1], 1);
    while (!phase_is(PHASE_STOP)) {
        long i = pings;
        fill(ping_out, ping_length(i), (unsigned)i);
        pings++;
        OK(PtlPut(ping_md, 0, ping_length(i), PTL_ACK_REQ, address(PID_PEER), PT_PING, 0, 0,
                  (void *)(uintptr_t)(PIECES + 2), (ptl_hdr_data_t)i));
        await(echoed, 0, "an answer of the peer");
        atomic_store(&stage->rounds, pings);
        usleep(500);
    }
    atomic_store(&stage->through, 1);
    if (echoes != pings || ping_acks != pings) {
        fail("%ld pings, %ld echoes, %ld acks", pings, echoes, ping_acks);
    }
    close_end();
}
