/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Labelled points of the protocols. In the build for the kill tests, a process with
 * PINWHEEL_KILL_POINT=LABEL:N dies of SIGKILL when it passes the label for the N-th time, and a
 * thread that passes a pause point calls pinwheel_pause(), if the test program defines it: the test
 * holds the thread there while other threads go on. In every other build a point compiles to
 * nothing.
 */
#ifndef BASE_KILLPOINT_H
#define BASE_KILLPOINT_H

#include <stddef.h>

#ifdef PINWHEEL_KILL_POINTS
void kill_point(const char *label);
#define KILL_POINT(label) kill_point(label)
void pinwheel_pause(const char *label) __attribute__((weak, visibility("default")));
#define PAUSE_POINT(label) (pinwheel_pause != NULL ? pinwheel_pause(label) : (void)0)
#else
#define KILL_POINT(label) ((void)0)
#define PAUSE_POINT(label) ((void)0)
#endif

#endif
