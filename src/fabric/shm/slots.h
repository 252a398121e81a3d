/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of the own segment that have no connection (slots.c). */
#ifndef FABRIC_SHM_SLOTS_H
#define FABRIC_SHM_SLOTS_H

#include "fabric/shm/shm.h"

/* slot_is_claimed() says whether the owner word of a slot is the address of its claimant. */
bool slot_is_claimed(uint64_t owner);
/* clear_slot() makes a slot as new, and free. withhold_slot() keeps a slot from being claimed while
 * its claimant may still write there, and tells the claimant by the owner word; if the claimant
 * broke the rules, its word that it has left does not count. */
void clear_slot(struct shm_fabric *f, struct slot *slot, unsigned index);
void withhold_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                   bool broken);
/* put_off_slot() ignores, for a short time, the claimant of a slot to which no answer could be
 * sent, and then refuses it. */
void put_off_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                  const char *why);
/* sweep_slots() frees, if it can, the slots whose claimants died before they were accepted, and
 * those that are withheld. */
void sweep_slots(struct shm_fabric *f);

#endif
