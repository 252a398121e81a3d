/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent: runs the ranks of one host for a launcher on another host; see agent.c. */
#ifndef PINWHEEL_AGENT_H
#define PINWHEEL_AGENT_H

/* agent_run() serves the launcher at the other end of standard input and output until the
 * job is over or the launcher is gone; it returns an exit status. */
int agent_run(void);

#endif
