/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * other INTERFACE [TAG]: attaches a program as somebody else's, until its standard input ends. An
 * XDP program that passes everything; or with TAG one that gives a VLAN tag to all that leaves,
 * beside the frame, as for a card that puts it in.
 */
#include "raw/source/bpf.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct bpf_insn set(unsigned to, int value)
{
    return (struct bpf_insn){
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (uint8_t)(to & 15), .imm = value};
}

static int attach_egress(int program, unsigned ifindex)
{
    enum { TCX_EGRESS = 47 };
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.link_create.prog_fd = (uint32_t)program;
    attr.link_create.target_ifindex = ifindex;
    attr.link_create.attach_type = TCX_EGRESS;
    long rc = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
    return rc < 0 ? -errno : (int)rc;
}

int main(int argc, char **argv)
{
    enum { TPID = 0x0081 /* in network order */ };
    unsigned ifindex = argc > 1 ? if_nametoindex(argv[1]) : 0;
    int tag = argc > 2 ? (int)strtoul(argv[2], NULL, 10) : 0;
    struct bpf_insn call = {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push};
    struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};
    struct bpf_insn pass[] = {set(0, XDP_PASS), leave};
    struct bpf_insn push[] = {set(2, TPID), set(3, tag), call, set(0, 0), leave};
    struct raw_code code = tag != 0 ? (struct raw_code){.insn = push, .count = 5}
                                    : (struct raw_code){.insn = pass, .count = 2};
    char log[256] = "", byte;
    int program = tag != 0 ? raw_bpf_load_tc(&code, log, sizeof(log))
                           : raw_bpf_load(&code, 0, log, sizeof(log));
    int link = program < 0 ? program
               : tag != 0  ? attach_egress(program, ifindex)
                           : raw_bpf_attach(program, ifindex, 0);
    if (link < 0) {
        fprintf(stderr, "other: %s %s\n", strerror(-link), log);
        return 1;
    }
    puts("attached");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
