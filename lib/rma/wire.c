/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys as bytes, little-endian:
 *
 *      | "PWRK" | version | rail | access | logical | incarnation 8 | match bits 8 | length 8 |
 *      | nid or rank 4 | pid 4 | pt index 4 | max_atomic 4 | notify pt 2 | service pt 2 |
 *      | token 8 | sum of the rest 4 |
 *
 * wire_read() trusts none of them: what it accepts names an interface, an entry and rights that a
 * process can have. The sum finds damage, not malice: whoever can send to a process can try any
 * match bits without a key.
 */
#include "inside.h"

#include <string.h>

enum { VERSION = 4, SUM_AT = PW_RMA_KEY - 4 };

static void put_number(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static uint64_t get_number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

static uint32_t sum(const unsigned char *bytes)
{
    uint32_t s = 2166136261u; /* FNV-1a */
    for (int i = 0; i < SUM_AT; i++) {
        s = (s ^ bytes[i]) * 16777619u;
    }
    return s;
}

void wire_write(unsigned char *bytes, const struct key *key)
{
    memset(bytes, 0, PW_RMA_KEY);
    memcpy(bytes, "PWRK", 4);
    put_number(bytes + 4, VERSION, 1);
    put_number(bytes + 5, key->rail, 1);
    put_number(bytes + 6, key->access, 1);
    put_number(bytes + 7, key->logical, 1);
    put_number(bytes + 8, key->incarnation, 8);
    put_number(bytes + 16, key->bits, 8);
    put_number(bytes + 24, key->length, 8);
    put_number(bytes + 32, key->id.phys.nid, 4);
    put_number(bytes + 36, key->id.phys.pid, 4);
    put_number(bytes + 40, key->pt, 4);
    put_number(bytes + 44, key->max_atomic, 4);
    put_number(bytes + 48, key->notify_pt, 2);
    put_number(bytes + 50, key->service_pt, 2);
    put_number(bytes + 52, key->token, 8);
    put_number(bytes + SUM_AT, sum(bytes), 4);
}

int wire_read(const unsigned char *bytes, size_t size, struct key *key)
{
    if (size < PW_RMA_KEY || memcmp(bytes, "PWRK", 4) != 0 || bytes[4] != VERSION) {
        return -EPROTO;
    }
    *key = (struct key){
        .rail = bytes[5],
        .access = bytes[6],
        .logical = bytes[7] != 0,
        .incarnation = get_number(bytes + 8, 8),
        .bits = get_number(bytes + 16, 8),
        .length = get_number(bytes + 24, 8),
        .id.phys.nid = (ptl_nid_t)get_number(bytes + 32, 4),
        .id.phys.pid = (ptl_pid_t)get_number(bytes + 36, 4),
        .pt = (ptl_pt_index_t)get_number(bytes + 40, 4),
        .max_atomic = (uint32_t)get_number(bytes + 44, 4),
        .notify_pt = (ptl_pt_index_t)get_number(bytes + 48, 2),
        .service_pt = (ptl_pt_index_t)get_number(bytes + 50, 2),
        .token = get_number(bytes + 52, 8),
    };
    bool pid = key->logical ? key->id.phys.pid == 0
                            : key->id.phys.pid >= 1 && key->id.phys.pid <= PTL_PID_MAX;
    if (get_number(bytes + SUM_AT, 4) != sum(bytes) || bytes[7] > 1 || !pid || key->pt > 65535 ||
        key->access == 0 || key->access == PW_RMA_NOTIFY ||
        (key->access & ~(uint32_t)(ALL_ACCESS | TWO_SIDED)) != 0 ||
        key->max_atomic < LARGEST_ELEMENT || key->bits % (1u << ENTRY_BITS) != 0 ||
        key->bits >> 32 != key->incarnation >> 32 ||
        (key->access & (TWO_SIDED | PW_RMA_PAIRS)) == TWO_SIDED ||
        ((key->access & TWO_SIDED) == 0 && key->service_pt != 0) ||
        ((key->access & PW_RMA_NOTIFY) == 0 && key->notify_pt != 0)) {
        return -EBADMSG;
    }
    return 0;
}
