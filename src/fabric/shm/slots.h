/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of our segment that are no connection's (slots.c). */
#ifndef FABRIC_SHM_SLOTS_H
#define FABRIC_SHM_SLOTS_H

#include "fabric/shm/shm.h"

/* Whether the owner word of a slot of ours is the address of who claimed it. */
bool slot_is_claimed(uint64_t owner);
/* clear_slot() makes a slot as it was when the segment was new; withhold_slot() lets nobody have it
 * while its claimant may still write to it, and tells that one. Of who broke the rules it is not
 * believed that it has left. */
void clear_slot(struct shm_fabric *f, struct slot *slot, unsigned index);
void withhold_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                   bool broken);
/* put_off_slot() leaves the claimant of a slot, whom no answer would reach, alone for a little
 * time, and then refuses it. */
void put_off_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                  const char *why);
/* sweep_slots() sees to slots whose claimants died before anybody met them, and to those that are
 * withheld. */
void sweep_slots(struct shm_fabric *f);

#endif
