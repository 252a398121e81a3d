/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a GOAL schedule on simulated NICs, without bytes: the hosts, NICs and network of `pinwheel
 * sim` (docs/sim-nic.md), on which each rank is a program of one thread that
 *
 *   - runs the operations that may begin, in the order in which they became ready: a calc computes,
 *     a send is a PtlPut(), a recv takes a message that has come or is posted;
 *   - and when there is none waits for the event of a message (PtlEQWait()), which matches the
 *     first recv that was posted and fits, or is kept.
 *
 * Operations of Portals are its calls; while it has tests it waits by PtlCTPoll(), for the event of
 * a message first. What waits for an operation's start becomes ready before what waits for its end,
 * each in the order of the schedule. Messages of all sizes are sent at once, and no send is
 * acknowledged; of long ones rendezvous.c has another protocol.
 *
 *   host ── o ──► L_dma ──► egress port ── packets ──► network ──► match, CAM ──► DMA ──► event
 *
 * Invariants:
 *   - Times are ps of virtual time. Events are handled in the order of (time, kind, making), those
 *     of a host behind all others of their time, since a program goes on when all has happened; the
 *     network's behind ours, since it must have all packets of a time.
 *   - A host has one HOST event on its way, or waits for the event of a message, or is done.
 *   - The egress port has a LEAVE event for `leaves` on its way while a message of its rank has not
 *     left; an event for a later time, before which another message was ready, does nothing.
 *   - Of a flow, the messages before the `frontier` are written by the DMA engine, which ends them
 * in their order; of those behind it none that is written has begun.
 */
#ifndef SIM_NIC_NIC_H
#define SIM_NIC_NIC_H

#include "machine.h"

#include "sim/models/engine.h"

/* sim_nic_check() says whether a schedule can run so; -1 after it has written what is wrong. */
int sim_nic_check(const struct goal *g, char *error, size_t size);

/* sim_nic_run() runs a schedule that sim_nic_check() has accepted, on a network, which `in` must
 * have: of `in` it reads the schedule, the network, the unit of calcs and `progress`. The caller
 * calls sim_output_free() afterwards, whatever it returns. */
enum sim_end sim_nic_run(const struct sim_input *in, const struct nic_machine *m,
                         struct sim_output *out);

#endif
