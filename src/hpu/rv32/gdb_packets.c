/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of GDB, and the answer to each. Numbers are hexadecimal. */
#include "gdb_session.h"

#include <stdio.h>
#include <string.h>

enum todo { STAY, RESUME, LEAVE };

/* ---- Answers ---- */

void gdb_answer(struct gdb_session *s, const char *text)
{
    gdb_wire_send(&s->wire, text, strlen(text));
}

void gdb_answer_signal(struct gdb_session *s, unsigned signal)
{
    char text[32];
    snprintf(text, sizeof(text), "T%02x", signal);
    gdb_answer(s, text);
}

static void no_such_memory(struct gdb_session *s)
{
    gdb_answer(s, "E0e");
}

static void malformed(struct gdb_session *s)
{
    gdb_answer(s, "E16");
}

/* ---- Registers and memory ---- */

static void read_registers(struct gdb_session *s)
{
    char text[8 * GDB_REGISTERS];
    for (uint32_t i = 0; i < GDB_REGISTERS; i++) {
        uint32_t value = 0;
        gdb_register_read(s, i, &value);
        gdb_hex_write(text + (size_t)8 * i, &value, 4);
    }
    gdb_wire_send(&s->wire, text, sizeof(text));
}

static void write_registers(struct gdb_session *s, const char *text)
{
    uint32_t value;
    for (uint32_t i = 0; i <= GDB_PC && gdb_hex_read(text + (size_t)8 * i, &value, 4); i++) {
        gdb_register_write(s, i, value); /* a write to register zero is ignored */
    }
    gdb_answer(s, "OK");
}

static void read_register(struct gdb_session *s, const char *text)
{
    uint32_t number, value;
    char digits[8];
    if (!gdb_hex_number(&text, &number) || !gdb_register_read(s, number, &value)) {
        malformed(s);
        return;
    }
    gdb_wire_send(&s->wire, digits, gdb_hex_write(digits, &value, 4));
}

static void write_register(struct gdb_session *s, const char *text)
{
    uint32_t number, value;
    bool good = gdb_hex_number(&text, &number) && *text == '=' &&
                gdb_hex_read(text + 1, &value, 4) && gdb_register_write(s, number, value);
    if (good) {
        gdb_answer(s, "OK");
    } else {
        malformed(s);
    }
}

/* Reads "address,size", and moves *text behind the character `end`. */
static bool read_range(const char **text, char end, uint32_t *address, uint32_t *size)
{
    bool good = gdb_hex_number(text, address) && *(*text)++ == ',' && gdb_hex_number(text, size) &&
                **text == end;
    *text += good && end != '\0';
    return good;
}

static void read_memory(struct gdb_session *s, const char *text)
{
    uint8_t bytes[GDB_PACKET_MAX / 2];
    char digits[2 * sizeof(bytes)];
    uint32_t address, size;
    if (!read_range(&text, '\0', &address, &size)) {
        malformed(s);
        return;
    }
    size = size < sizeof(bytes) ? size : (uint32_t)sizeof(bytes);
    uint32_t n = gdb_memory_read(s->g->core, address, bytes, size);
    if (n == 0 && size > 0) {
        no_such_memory(s);
    } else {
        gdb_wire_send(&s->wire, digits, gdb_hex_write(digits, bytes, n));
    }
}

/* Packet M has the bytes as digits, packet X as they are. */
static void write_memory(struct gdb_session *s, bool digits)
{
    const char *text = s->wire.packet + 1;
    uint8_t bytes[GDB_PACKET_MAX];
    uint32_t address, size;
    if (!read_range(&text, ':', &address, &size) || size > sizeof(bytes)) {
        malformed(s);
        return;
    }
    size_t left = s->wire.length - (size_t)(text - s->wire.packet);
    bool good = digits ? gdb_hex_read(text, bytes, size) : left == size;
    if (good && !digits) {
        memcpy(bytes, text, size);
    }
    if (!good) {
        malformed(s);
    } else if (gdb_memory_write(s->g->core, address, bytes, size) == size) {
        gdb_answer(s, "OK");
    } else {
        no_such_memory(s);
    }
}

static void change_point(struct gdb_session *s, bool set)
{
    const char *text = s->wire.packet + 1;
    char kind = *text;
    uint32_t address, bytes;
    if (kind < '0' || kind > '4' || *++text != ',') {
        gdb_answer(s, "");
        return;
    }
    text++;
    if (!gdb_hex_number(&text, &address) || *text++ != ',' || !gdb_hex_number(&text, &bytes)) {
        malformed(s);
    } else if (gdb_points_change(&s->points, kind, set, address, bytes)) {
        gdb_answer(s, "OK");
    } else {
        no_such_memory(s);
    }
}

/* ---- Queries ---- */

static void send_target(struct gdb_session *s, const char *range)
{
    char target[GDB_TARGET_MAX], text[GDB_PACKET_MAX];
    uint32_t offset, length;
    size_t size = gdb_target(target);
    if (!read_range(&range, '\0', &offset, &length)) {
        malformed(s);
        return;
    }
    size_t left = offset < size ? size - offset : 0;
    size_t n = left < length ? left : length;
    n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
    text[0] = n < left ? 'm' : 'l';
    memcpy(text + 1, target + (left > 0 ? offset : 0), n);
    gdb_wire_send(&s->wire, text, n + 1);
}

static void run_monitor(struct gdb_session *s, const char *digits)
{
    char command[64] = "", text[GDB_PACKET_MAX / 2], packet[GDB_PACKET_MAX];
    size_t length = strlen(digits) / 2;
    if (length >= sizeof(command) || !gdb_hex_read(digits, command, length)) {
        malformed(s);
        return;
    }
    gdb_monitor(s, command, text, sizeof(text));
    gdb_wire_send(&s->wire, packet, gdb_hex_write(packet, text, strlen(text)));
}

static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static void query(struct gdb_session *s, const char *packet)
{
    const char *rest;
    if (behind(packet, "qSupported") != NULL) {
        char text[128];
        snprintf(text, sizeof(text),
                 "PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;vContSupported+",
                 GDB_PACKET_MAX);
        gdb_answer(s, text);
    } else if (strcmp(packet, "QStartNoAckMode") == 0) {
        gdb_answer(s, "OK");
        s->wire.trusted = true;
    } else if ((rest = behind(packet, "qXfer:features:read:target.xml:")) != NULL) {
        send_target(s, rest);
    } else if ((rest = behind(packet, "qRcmd,")) != NULL) {
        run_monitor(s, rest);
    } else if (behind(packet, "qAttached") != NULL) {
        gdb_answer(s, "0"); /* the stub has started the program for GDB: it ends with the session */
    } else if (behind(packet, "qSymbol") != NULL) {
        gdb_answer(s, "OK");
    } else {
        gdb_answer(s, "");
    }
}

/* ---- Resuming ---- */

/* Resumes by "s", "c", "S05;address", ...: an address may follow. */
static enum todo resume(struct gdb_session *s, char how, const char *address)
{
    uint32_t pc;
    if (*address != '\0') {
        if (!gdb_hex_number(&address, &pc)) {
            malformed(s);
            return STAY;
        }
        s->wanted_pc = pc;
    }
    s->stepping = how == 's' || how == 'S';
    s->range_begin = s->range_end = 0;
    return RESUME;
}

/* Resumes by vCont;action[:thread]...: the first action is that of the only thread. */
static enum todo resume_v(struct gdb_session *s, const char *action)
{
    const char *text = action + 1;
    switch (*action) {
    case 'c':
    case 'C':
    case 's':
    case 'S':
        return resume(s, *action, "");
    case 'r':
        if (!gdb_hex_number(&text, &s->range_begin) || *text++ != ',' ||
            !gdb_hex_number(&text, &s->range_end)) {
            malformed(s);
            return STAY;
        }
        s->stepping = true;
        return RESUME;
    default:
        malformed(s);
        return STAY;
    }
}

static enum todo leave(struct gdb_session *s, bool *how)
{
    *how = true;
    gdb_answer(s, "OK");
    return LEAVE;
}

static enum todo verbose(struct gdb_session *s, const char *packet)
{
    const char *rest = behind(packet, "vCont;");
    if (rest != NULL) {
        return resume_v(s, rest);
    }
    if (behind(packet, "vKill") != NULL) {
        return leave(s, &s->killed);
    }
    gdb_answer(s, strcmp(packet, "vCont?") == 0 ? "vCont;c;C;s;S;r" : "");
    return STAY;
}

static enum todo handle(struct gdb_session *s, unsigned signal)
{
    const char *packet = s->wire.packet, *semicolon = strchr(packet, ';');
    switch (packet[0]) {
    case '?':
        gdb_answer_signal(s, signal);
        return STAY;
    case 'g':
        read_registers(s);
        return STAY;
    case 'G':
        write_registers(s, packet + 1);
        return STAY;
    case 'p':
        read_register(s, packet + 1);
        return STAY;
    case 'P':
        write_register(s, packet + 1);
        return STAY;
    case 'm':
        read_memory(s, packet + 1);
        return STAY;
    case 'M':
    case 'X':
        write_memory(s, packet[0] == 'M');
        return STAY;
    case 'Z':
    case 'z':
        change_point(s, packet[0] == 'Z');
        return STAY;
    case 'H':
        gdb_answer(s, "OK");
        return STAY;
    case 'q':
    case 'Q':
        query(s, packet);
        return STAY;
    case 'v':
        return verbose(s, packet);
    case 'c':
    case 's':
        return resume(s, packet[0], packet + 1);
    case 'C':
    case 'S':
        return resume(s, packet[0], semicolon != NULL ? semicolon + 1 : "");
    case 'D':
        return leave(s, &s->detached);
    case 'k':
        s->killed = true;
        return LEAVE;
    default:
        gdb_answer(s, "");
        return STAY;
    }
}

bool gdb_converse(struct gdb_session *s, unsigned signal)
{
    enum todo todo = STAY;
    s->wanted_pc = s->pc;
    while (todo == STAY) {
        if (!gdb_wire_receive(&s->wire)) {
            s->killed = true;
            return false;
        }
        todo = handle(s, signal);
    }
    s->hit = NULL;
    s->since_look = 0;
    return todo == RESUME;
}
