/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a process of a rank shares with the coordinator: mapped, read and written. */
#ifndef FABRIC_SIM_SHARE_H
#define FABRIC_SIM_SHARE_H

#include "fabric/sim/rank.h"

/* sim_share_map() maps the memory of a job for a process of a rank; NULL after a line in the log.
 */
struct sim_segment *sim_share_map(const char *path, unsigned long rank);
/* sim_share_outlived() ends a process whose job is over: nobody will ever give it a turn. */
void sim_share_outlived(const struct sim_segment *s);
/* sim_share_read() reads a record once; false: it is not whole. sim_share_write() seals it. */
bool sim_share_read(const struct sim_rank *from, struct sim_record *to);
void sim_share_write(struct sim_rank *to, struct sim_record *r);
/* sim_share_show() shows the coordinator what this process has done in its turn. */
void sim_share_show(struct sim_clock *c);
/* sim_share_spoiled() ends the process: what is in its place was written by nobody who may. */
__attribute__((noreturn)) void sim_share_spoiled(const struct sim_segment *s, uint32_t place,
                                                 const char *what);

/* sim_share_place() is the place of this process: the rank that its environment names; or, if that
 * has another process, one that was forked or started there. `again`: it had it before. UINT32_MAX:
 * it is none of the job. sim_share_await() waits for the first turn of one that was started: it
 * reads its record then. Such waits look every SIM_SHARE_LOOK_NS at whether the job is over. */
uint32_t sim_share_place(struct sim_segment *s, uint32_t rank, uint32_t pid, bool *again);
void sim_share_await(const struct sim_segment *s, uint32_t place);
enum { SIM_SHARE_LOOK_NS = 1000000000 };

#endif
