/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Noise: detours during which the cpus of a rank do other work, taken from a trace or drawn at
 * random. The detours are a function of the seed, the rank and the time alone.
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
    uint64_t period; /* ps; at least 1 */
    /* uniform: shortest and longest detour; normal: mean and deviation; exponential: mean in
     * `low` */
    uint64_t low, high;
    struct sim_detour *detours; /* trace: in order, without overlap, all before `period` */
    size_t count, room;
};

/* sim_noise_open() reads the value of --noise: uniform:period=1ms,low=0,high=10us,
 * normal:period=1ms,mean=10us,deviation=2us, exponential:period=1ms,mean=10us, or the name of a
 * trace file with lines BEGIN LENGTH in ns. It returns 0, or -1 with `error` set. */
int sim_noise_open(struct sim_noise *n, const char *text, uint64_t seed, char *error, size_t size);
void sim_noise_close(struct sim_noise *n);

/* sim_noise_end() returns when a rank's cpu that begins at `begin` has worked for `work` ps, which
 * is not 0. The rest of a detour that is under way at `begin` comes first, and each detour that
 * begins before the end delays it. A time after 2^63 - 1 is returned as 2^63. */
uint64_t sim_noise_end(const struct sim_noise *n, uint32_t rank, uint64_t begin, uint64_t work);

#endif
