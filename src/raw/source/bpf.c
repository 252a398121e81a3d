/* SPDX-License-Identifier: BSD-3-Clause */
/* bpf(2) itself, of which some seven calls are needed; see bpf.h. Names of the headers that are
 * younger than the kernel headers of Debian 12 are defined here. */
#include "raw/source/bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    long rc = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return rc < 0 ? -errno : (int)rc;
}

static int make_map(enum bpf_map_type type, const char *name, unsigned value_size, unsigned entries,
                    uint32_t flags)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_type = type;
    attr.key_size = 4;
    attr.value_size = value_size;
    attr.max_entries = entries;
    attr.map_flags = flags;
    snprintf(attr.map_name, sizeof(attr.map_name), "%s", name);
    return bpf(BPF_MAP_CREATE, &attr);
}

int raw_bpf_map(enum bpf_map_type type, const char *name, unsigned value_size, unsigned entries)
{
    return make_map(type, name, value_size, entries, 0);
}

enum { COUNTERS = RAW_COUNTERS * sizeof(struct raw_counter) }; /* whole pages */

int raw_bpf_counters(const volatile struct raw_counter **at)
{
    int map = make_map(BPF_MAP_TYPE_ARRAY, "counters", sizeof(struct raw_counter), RAW_COUNTERS,
                       BPF_F_MMAPABLE);
    if (map < 0) {
        return map;
    }
    void *memory = mmap(NULL, COUNTERS, PROT_READ, MAP_SHARED, map, 0);
    if (memory == MAP_FAILED) {
        int rc = -errno;
        close(map);
        return rc;
    }
    *at = memory;
    return map;
}

void raw_bpf_counters_close(int map, const volatile struct raw_counter *at)
{
    if (map >= 0) {
        munmap((void *)(uintptr_t)at, COUNTERS);
        close(map);
    }
}

int raw_bpf_set(int map, uint32_t key, const void *value)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_fd = (uint32_t)map;
    attr.key = (uintptr_t)&key;
    attr.value = (uintptr_t)value;
    return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* Keeps the last lines of the verifier's log, which is long. */
static void last_words(char *log, size_t size, const char *whole)
{
    size_t length = strlen(whole);
    const char *at = length >= size ? whole + length - size + 1 : whole;
    snprintf(log, size, "%s", at);
}

static int load(enum bpf_prog_type type, const struct raw_code *code, uint32_t flags, char *log,
                size_t size)
{
    enum { LOG = 1 << 20 };
    static const char license[] = "Dual BSD/GPL";
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = type;
    attr.insns = (uintptr_t)code->insn;
    attr.insn_cnt = (uint32_t)code->count;
    attr.license = (uintptr_t)license;
    attr.prog_flags = flags;
    snprintf(attr.prog_name, sizeof(attr.prog_name), "pinwheel_raw");
    if (size > 0) {
        log[0] = '\0';
    }
    int rc = bpf(BPF_PROG_LOAD, &attr);
    for (int again = 0; rc == -EAGAIN && again < 10; again++) {
        rc = bpf(BPF_PROG_LOAD, &attr); /* a signal, as of a debugger, has come meanwhile */
    }
    char *whole = rc == -EINVAL || rc == -EACCES ? calloc(1, LOG) : NULL;
    if (whole != NULL) {
        attr.log_level = 1;
        attr.log_buf = (uintptr_t)whole;
        attr.log_size = LOG;
        rc = bpf(BPF_PROG_LOAD, &attr);
        last_words(log, size, whole);
        free(whole);
    }
    return rc;
}

int raw_bpf_load(const struct raw_code *code, uint32_t flags, char *log, size_t size)
{
    return load(BPF_PROG_TYPE_XDP, code, flags, log, size);
}

int raw_bpf_load_tc(const struct raw_code *code, char *log, size_t size)
{
    return load(BPF_PROG_TYPE_SCHED_CLS, code, 0, log, size);
}

int raw_bpf_try(int program, const uint8_t *frame, size_t length, int *action, int *verdict)
{
    enum { LINEAR = 3000 }; /* a page without headroom and what the kernel keeps behind */
    uint8_t out[LINEAR + RAW_META];
    union bpf_attr attr;
    if (length > LINEAR) {
        return 1;
    }
    memset(&attr, 0, sizeof(attr));
    attr.test.prog_fd = (uint32_t)program;
    attr.test.data_in = (uintptr_t)frame;
    attr.test.data_size_in = (uint32_t)length;
    attr.test.data_out = (uintptr_t)out;
    attr.test.data_size_out = sizeof(out);
    int rc = bpf(BPF_PROG_TEST_RUN, &attr);
    if (rc < 0) {
        return rc;
    }
    *action = (int)attr.test.retval;
    *verdict = RAW_NONE;
    if (attr.test.data_size_out == length + RAW_META) {
        memcpy(verdict, out, sizeof(*verdict));
    }
    return 0;
}

int raw_bpf_inject(int program, unsigned ifindex, const uint8_t *frame, size_t length)
{
    union bpf_attr attr;
    struct xdp_md context = {.data_end = (uint32_t)length, .ingress_ifindex = ifindex};
    memset(&attr, 0, sizeof(attr));
    attr.test.prog_fd = (uint32_t)program;
    attr.test.data_in = (uintptr_t)frame;
    attr.test.data_size_in = (uint32_t)length;
    attr.test.ctx_in = (uintptr_t)&context;
    attr.test.ctx_size_in = sizeof(context);
    attr.test.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
    attr.test.batch_size = 1;
    attr.test.repeat = 1;
    return bpf(BPF_PROG_TEST_RUN, &attr);
}

static int attach(int program, unsigned ifindex, uint32_t type, uint32_t flags)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.link_create.prog_fd = (uint32_t)program;
    attr.link_create.target_ifindex = ifindex;
    attr.link_create.attach_type = type;
    attr.link_create.flags = flags;
    return bpf(BPF_LINK_CREATE, &attr);
}

int raw_bpf_attach(int program, unsigned ifindex, uint32_t flags)
{
    return attach(program, ifindex, BPF_XDP, flags);
}

int raw_bpf_attach_tc(int program, unsigned ifindex)
{
    enum { TCX_INGRESS = 46, BEFORE = 1 << 3 };
    return attach(program, ifindex, TCX_INGRESS, BEFORE);
}

int raw_bpf_swap(int link, int program)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.link_update.link_fd = (uint32_t)link;
    attr.link_update.new_prog_fd = (uint32_t)program;
    return bpf(BPF_LINK_UPDATE, &attr);
}
