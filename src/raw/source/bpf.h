/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of bpf(2) that frame sources make. Each returns a descriptor or 0, or a negative
 * errno. */
#ifndef RAW_BPF_H
#define RAW_BPF_H

#include <stddef.h>
#include <stdint.h>

#include "raw/rules/code.h"

int raw_bpf_map(enum bpf_map_type type, const char *name, unsigned value_size, unsigned entries);

/* raw_bpf_counters() makes an array of RAW_COUNTERS counters, and maps it to *at: who has no
 * capability any more can read it. raw_bpf_counters_close() undoes it. */
int raw_bpf_counters(const volatile struct raw_counter **at);
void raw_bpf_counters_close(int map, const volatile struct raw_counter *at);

int raw_bpf_set(int map, uint32_t key, const void *value);

/* raw_bpf_load() loads an XDP program; `flags` as BPF_F_XDP_HAS_FRAGS. If the kernel refuses it,
 * `log` gets its last words. */
int raw_bpf_load(const struct raw_code *code, uint32_t flags, char *log, size_t size);
/* raw_bpf_load_tc() does the same with a program for the ingress of an interface. */
int raw_bpf_load_tc(const struct raw_code *code, char *log, size_t size);

/* raw_bpf_try() runs a program on one frame and stores what the program did: its action, and the
 * verdict before the frame or RAW_NONE. 1: the kernel does not run frames of this length. */
int raw_bpf_try(int program, const uint8_t *frame, size_t length, int *action, int *verdict);

/* raw_bpf_inject() lets the kernel receive a frame as if it had come in on an interface. `program`
 * is one that passes everything. */
int raw_bpf_inject(int program, unsigned ifindex, const uint8_t *frame, size_t length);

/* raw_bpf_attach() attaches a program to an interface by a bpf_link, with which it goes: XDP with
 * `flags` of XDP_FLAGS_SKB_MODE or _DRV_MODE; _tc: at the ingress, before other programs there.
 * raw_bpf_swap() puts another program in its place;
 * each frame meets the one or the other. */
int raw_bpf_attach(int program, unsigned ifindex, uint32_t flags);
int raw_bpf_attach_tc(int program, unsigned ifindex);
int raw_bpf_swap(int link, int program);

#endif
