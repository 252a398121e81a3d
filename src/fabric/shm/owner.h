/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the process that a segment names still is there. Its lock says so, but for one thing: a
 * child that was made past libc (clone(), _Fork()) has the parent's descriptors and runs no atfork
 * handlers, so it keeps the lock of a parent that has died. So who finds a lock held asks for the
 * process as well, and believes what is certain only:
 *
 *   another PID namespace                      its number says nothing to us: the lock counts
 *   the cookie is read, and is its own         it lives
 *   the cookie is another, or not mapped       that process is another one, or runs another program
 *   no such process, or all of it has ended    it is dead
 *   it may not be read (Yama, no process_vm)   it lives, if its number does
 *
 * A POSIX record lock, which a child does not get, would say it at once, but any close of the file
 * in the owner's process drops that one, as by a second copy of the library that looks round.
 */
#ifndef FABRIC_SHM_OWNER_H
#define FABRIC_SHM_OWNER_H

#include "fabric/shm/layout.h"

/* owner_describe() says in the header of a segment which process has it. */
void owner_describe(struct segment_info *info);
/* proves_itself() is true if the process behind a segment is the one its number names: its cookie
 * is read. Only then may its memory be read and its pid be trusted, and what was read before is
 * that process's: one that ended, or runs another program, has no cookie any more. */
bool proves_itself(const struct segment_info *info);
/* owner_is_self() is true if it is the calling process, and not a child that has a copy of its
 * memory, whatever namespace that child is in. */
bool owner_is_self(const struct segment_info *info);
/* owner_gone() is true if the process is certainly no more. */
bool owner_gone(const struct segment_info *info);

#endif
