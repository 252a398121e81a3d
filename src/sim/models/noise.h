/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Noise: detours in which the cpus of a rank do something else, from a trace or
 * drawn by lot. What they are is a function of the seed, the rank and the time alone.
 *
 *   trace         its detours, over and over again, each rank from a phase of its own
 *   distribution  one detour in each period, begun at any moment of it
 */
#ifndef SIM_NOISE_H
#define SIM_NOISE_H

#include <stddef.h>
#include <stdint.h>

enum sim_noise_kind { NOISE_TRACE, NOISE_UNIFORM, NOISE_NORMAL, NOISE_EXPONENTIAL };

struct sim_detour {
    uint64_t begin, length; /* ps */
};

struct sim_noise {
    enum sim_noise_kind kind;
    uint64_t seed;
    uint64_t period;            /* ps; at least 1 */
    uint64_t low, high;         /* uniform: of a length; normal: mean, deviation;
                                   exponential: mean in `low` */
    struct sim_detour *detours; /* trace: in order, apart from each other, before `period` */
    size_t count, room;
};

/* sim_noise_open() reads --noise: uniform:period=1ms,low=0,high=10us,
 * normal:period=1ms,mean=10us,deviation=2us, exponential:period=1ms,mean=10us, or the
 * name of a trace, whose lines are BEGIN LENGTH in ns. -1 with `error` set. */
int sim_noise_open(struct sim_noise *n, const char *text, uint64_t seed, char *error, size_t size);
void sim_noise_close(struct sim_noise *n);

/* sim_noise_end() is when a rank's cpu has worked for `work` ps, which is not 0, from `begin`
 * on: the rest of a detour that is under way comes first, and each that begins before the
 * end puts it off. A time after 2^63 - 1 is given as 2^63. */
uint64_t sim_noise_end(const struct sim_noise *n, uint32_t rank, uint64_t begin, uint64_t work);

#endif
