/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving and sending packets (gdb_wire.h). */
#include "gdb_wire.h"

#include "gdb_hex.h"

#include <string.h>

enum { CTRL_C = 0x03, NONE = -1 };

/* Reads into `in` if that is empty; returns whether it has bytes. */
static bool fill(struct gdb_wire *w, bool wait)
{
    if (w->in_at < w->in_end) {
        return true;
    }
    if (w->gone) {
        return false;
    }
    long n = w->link->read(w->link->context, w->in, sizeof(w->in), wait);
    w->gone = n == 0 || (n < 0 && wait);
    w->in_at = 0;
    w->in_end = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Returns the next byte, NONE at the end. */
static int next(struct gdb_wire *w)
{
    return fill(w, true) ? w->in[w->in_at++] : NONE;
}

static void put(struct gdb_wire *w, const void *bytes, size_t size)
{
    if (!w->gone && !w->link->write(w->link->context, bytes, size)) {
        w->gone = true;
    }
}

/* Reads the data of a packet, behind its $; returns whether it is whole and its checksum right. */
static bool receive_data(struct gdb_wire *w)
{
    uint8_t sum = 0;
    bool escaped = false, full = false;
    int c;
    w->length = 0;
    while ((c = next(w)) != '#' && c != NONE) {
        if (c == '$') { /* a new packet begins: the one before was cut off */
            sum = 0;
            w->length = 0;
            escaped = full = false;
            continue;
        }
        sum = (uint8_t)(sum + c);
        if (c == '}' && !escaped) {
            escaped = true;
            continue;
        }
        if (w->length < GDB_PACKET_MAX) {
            w->packet[w->length++] = (char)(escaped ? c ^ 0x20 : c);
        } else {
            full = true;
        }
        escaped = false;
    }
    int high = gdb_hex_digit(next(w)), low = gdb_hex_digit(next(w));
    w->length = full ? 0 : w->length;
    w->packet[w->length] = '\0';
    return high >= 0 && low >= 0 && sum == high * 16 + low;
}

bool gdb_wire_receive(struct gdb_wire *w)
{
    int c;
    while ((c = next(w)) != NONE) {
        if (c == '-' && !w->trusted) {
            put(w, w->out, w->out_size);
        }
        if (c != '$') {
            continue;
        }
        bool good = receive_data(w);
        if (!w->trusted) {
            put(w, good ? "+" : "-", 1);
        }
        if (good) {
            return !w->gone;
        }
    }
    return false;
}

bool gdb_wire_interrupted(struct gdb_wire *w)
{
    while (fill(w, false) && w->in[w->in_at] == '+') {
        w->in_at++;
    }
    bool hit = w->in_at < w->in_end && w->in[w->in_at] == CTRL_C;
    w->in_at += hit;
    return hit;
}

void gdb_wire_send(struct gdb_wire *w, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    uint8_t sum = 0;
    size_t n = 0;
    w->out[n++] = '$';
    for (size_t i = 0; i < length && i < GDB_PACKET_MAX; i++) {
        bool special = bytes[i] == '#' || bytes[i] == '$' || bytes[i] == '}' || bytes[i] == '*';
        if (special) {
            w->out[n++] = '}';
            sum = (uint8_t)(sum + '}');
        }
        w->out[n] = special ? bytes[i] ^ 0x20 : bytes[i];
        sum = (uint8_t)(sum + w->out[n++]);
    }
    w->out[n++] = '#';
    w->out[n++] = (uint8_t)gdb_hex_digits[sum >> 4];
    w->out[n++] = (uint8_t)gdb_hex_digits[sum & 15];
    w->out_size = n;
    put(w, w->out, n);
}
