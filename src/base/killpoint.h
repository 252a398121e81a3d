/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Labelled points of the protocols. In the build for the kill tests, a process
 * with PINWHEEL_KILL_POINT=LABEL:N dies of SIGKILL when it passes the label for
 * the N-th time; in every other build a point is nothing.
 */
#ifndef BASE_KILLPOINT_H
#define BASE_KILLPOINT_H

#ifdef PINWHEEL_KILL_POINTS
void kill_point(const char *label);
#define KILL_POINT(label) kill_point(label)
#else
#define KILL_POINT(label) ((void)0)
#endif

#endif
