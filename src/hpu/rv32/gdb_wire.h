/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of GDB's remote serial protocol, over any stream of bytes.
 *
 *   $ data # two digits of checksum       acknowledged by + or -, or not if both sides agree
 *   0x03                                  GDB's user has pressed Ctrl-C
 *
 * In both directions } escapes a byte with another meaning, which is then XORed with 0x20. The
 * bytes come from outside: a packet may hold anything, be cut off, be longer than there is room
 * for, or have a wrong checksum.
 */
#ifndef HPU_RV32_GDB_WIRE_H
#define HPU_RV32_GDB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GDB_PACKET_MAX = 4096 }; /* bytes of data in one packet */

/* The stream. read() returns the number of bytes read; 0: the other side has closed it; -1, without
 * `wait`: none has come yet. write() returns whether it has written all. */
struct gdb_link {
    long (*read)(void *context, void *bytes, size_t room, bool wait);
    bool (*write)(void *context, const void *bytes, size_t size);
    void *context;
};

struct gdb_wire {
    const struct gdb_link *link;
    bool trusted; /* packets are not acknowledged by + any more */
    bool gone;    /* the other side has closed the stream */
    uint8_t in[1024];
    size_t in_at, in_end;
    char packet[GDB_PACKET_MAX + 1]; /* the last packet from GDB, with a terminating zero */
    size_t length;
    uint8_t out[2 * GDB_PACKET_MAX + 8]; /* the last answer, byte by byte as it was sent */
    size_t out_size;
};

/* gdb_wire_receive() waits for a packet, and puts it into `packet`; one that is too long counts as
 * empty. False: the other side has closed the stream. It ignores a Ctrl-C. */
bool gdb_wire_receive(struct gdb_wire *w);

/* gdb_wire_interrupted() takes a Ctrl-C if one has come, without waiting; true: there was one. */
bool gdb_wire_interrupted(struct gdb_wire *w);

/* gdb_wire_send() sends `length` bytes of data; it drops those beyond GDB_PACKET_MAX. */
void gdb_wire_send(struct gdb_wire *w, const void *data, size_t length);

#endif
