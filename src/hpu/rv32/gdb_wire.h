/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of GDB's remote serial protocol, over any stream of bytes.
 *
 *   $ data # two digits of checksum       answered by + or -, until both sides agree not to
 *   0x03                                  somebody pressed Ctrl-C
 *
 * In what is sent, and in what is received, } stands before a byte that means something
 * else, which is then changed by 0x20. Bytes come from outside: a packet may hold anything,
 * be cut, be longer than there is room for, or have a wrong sum.
 */
#ifndef HPU_RV32_GDB_WIRE_H
#define HPU_RV32_GDB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GDB_PACKET_MAX = 4096 }; /* bytes of data in one */

/* The stream. read() gives how many bytes came, 0 if the other side has closed it; without
 * `wait`, -1 if none are there yet. write() tells whether all were written. */
struct gdb_link {
    long (*read)(void *context, void *bytes, size_t room, bool wait);
    bool (*write)(void *context, const void *bytes, size_t size);
    void *context;
};

struct gdb_wire {
    const struct gdb_link *link;
    bool trusted; /* nobody answers packets by + any more */
    bool gone;    /* the other side is */
    uint8_t in[1024];
    size_t in_at, in_end;
    char packet[GDB_PACKET_MAX + 1]; /* last packet of GDB, with a zero behind it */
    size_t length;
    uint8_t out[2 * GDB_PACKET_MAX + 8]; /* last answer, byte by byte as it was sent */
    size_t out_size;
};

/* gdb_wire_receive() waits for a packet, which is then in `packet`. One that was too long is
 * empty. False: the other side is gone. A Ctrl-C in between has no meaning. */
bool gdb_wire_receive(struct gdb_wire *w);

/* gdb_wire_interrupted() looks, without waiting, whether a Ctrl-C has come, and takes it. */
bool gdb_wire_interrupted(struct gdb_wire *w);

/* gdb_wire_send() sends `length` bytes of data; what is beyond GDB_PACKET_MAX is left out. */
void gdb_wire_send(struct gdb_wire *w, const void *data, size_t length);

#endif
