/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the owner of a segment still exists. Its lock says so, with one exception: a child that
 * was made without libc's fork() (clone(), _Fork()) has the parent's descriptors and runs no atfork
 * handlers, so it holds the lock of a parent that has died. So a process that finds the lock held
 * also checks the owner's process number, and acts only on what is certain:
 *
 *   another PID namespace                      its number means nothing here: the lock decides
 *   the cookie in its memory is the right one  it lives
 *   the cookie is another, or not mapped       the number has another process, or another program
 *   no such process, or it has ended           it is dead
 *   its memory may not be read (Yama, ...)     it lives, if its number exists
 *
 * A POSIX record lock, which a child does not inherit, would be simpler. But the owner's process
 * drops it whenever it closes the file by any descriptor, as a second copy of the library in it
 * does.
 */
#ifndef FABRIC_SHM_OWNER_H
#define FABRIC_SHM_OWNER_H

#include "fabric/shm/layout.h"

/* owner_describe() writes into the header of a segment which process owns it. */
void owner_describe(struct segment_info *info);
/* proves_itself() reads the cookie of a segment's owner; true: the process with its number is that
 * owner. Only then may the caller read that process's memory or trust its pid; and memory read
 * before the call was the owner's: a process that has ended, or runs another program, has lost the
 * cookie. */
bool proves_itself(const struct segment_info *info);
/* owner_is_self() is true if the owner is the calling process; false in a child that has a copy of
 * its memory, in whatever namespace. */
bool owner_is_self(const struct segment_info *info);
/* owner_gone() is true if the owner certainly does not exist any more. */
bool owner_gone(const struct segment_info *info);

#endif
