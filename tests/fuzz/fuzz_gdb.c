/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: what comes from GDB to the stub of the RV32 core.
 *
 * An input is the bytes of a session, as they arrive, in pieces; then the other side is gone. If
 * its first byte is 'p', the rest is packets, a line each, which get their frames and sums here.
 * The program is a loop with loads, stores and calls. However the session goes, it ends;
 * nothing but the program's memory changes (canaries); and all that the stub sends is packets
 * with the right sum, or + and -. Seeds are packets that exist, with random operands.
 */
#include "fuzz.h"

#include "hpu/rv32/gdb.h"
#include "hpu/rv32/gdb_hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 0x1d000000, MEMORY = 0x10000000, BYTES = 256, GUARD = 64, BUDGET = 20000 };

/* loop: lw a0,0(a1); sw a0,4(a1); jal ra,one; addi a2,a2,-1; bnez a2,loop; unimp
 * one: amoadd.w a0,a2,(a1); ret */
static uint32_t code[] = {0x0005a503, 0x00a5a223, 0x010000ef, 0xfff60613,
                          0xfe0618e3, 0x00000000, 0x00c5a52f, 0x00008067};

static struct {
    _Alignas(4) uint8_t before[GUARD], memory[BYTES], after[GUARD];
} place;

/* ---- The link ---- */

struct session {
    const uint8_t *data;
    size_t size, at;
    int state;       /* of what is sent: 0 outside of packets, 1 inside, 2 and 3 the sum */
    uint8_t sum;     /* of the packet so far */
    uint8_t claimed; /* its first digit */
};

static long give(void *context, void *bytes, size_t room, bool wait)
{
    struct session *s = context;
    size_t left = s->size - s->at, n = left < room ? left : room;
    if (n == 0) {
        return 0;
    }
    size_t piece = 1 + s->data[s->at] % 61; /* in pieces, some of them late */
    if (!wait && piece < 20) {
        return -1;
    }
    n = n < piece ? n : piece;
    memcpy(bytes, s->data + s->at, n);
    s->at += n;
    return (long)n;
}

static void check_byte(struct session *s, uint8_t c)
{
    switch (s->state) {
    case 0:
        MUST(c == '$' || c == '+' || c == '-');
        s->state = c == '$';
        s->sum = 0;
        break;
    case 1:
        s->state = c == '#' ? 2 : 1;
        s->sum = c == '#' ? s->sum : (uint8_t)(s->sum + c);
        MUST(c != '$');
        break;
    default:
        MUST(gdb_hex_digit(c) == (s->state == 2 ? s->sum >> 4 : s->sum & 15));
        s->state = (s->state + 1) % 4;
        break;
    }
}

static bool take(void *context, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        check_byte(context, ((const uint8_t *)bytes)[i]);
    }
    return true;
}

/* ---- The program ---- */

static void run(const uint8_t *data, size_t size)
{
    static struct rv32_core core;
    struct rv32_image image = {.name = (char *)"code"};
    struct rv32_program program;
    struct rv32_error error = {""};
    struct session s = {.data = data, .size = size};
    struct gdb_link link = {.read = give, .write = take, .context = &s};
    struct rv32_gdb g = {.core = &core, .image = &image, .link = &link};
    struct rv32_call call = {
        .pc = CODE, .arguments = {0, MEMORY, 50}, .stack = MEMORY + BYTES, .budget = BUDGET};
    image.code = (struct rv32_segment){CODE, sizeof(code), false, (uint8_t *)code};
    memset(&place, 0xa5, sizeof(place));
    MUST(rv32_program_make(&program, &image, &rv32_timings[0], size % 2 ? RV32_CACHE : RV32_WARM,
                           &error) == 0);
    rv32_core_init(&core, &program);
    MUST(rv32_core_map_image(&core, &image, &error) == 0);
    MUST(rv32_core_map(&core, "memory", MEMORY, BYTES, place.memory, RV32_READ | RV32_WRITE,
                       RV32_AREA_L1, &error) == 0);
    enum rv32_gdb_end end = rv32_gdb_call(&g, &call);
    MUST(end != RV32_GDB_FAILED);
    MUST(s.state == 0);
    for (int i = 0; i < GUARD; i++) {
        MUST(place.before[i] == 0xa5 && place.after[i] == 0xa5);
    }
    MUST(code[0] == 0x0005a503 && code[7] == 0x00008067);
    rv32_program_free(&program);
}

/* Lines to packets; gives how many bytes these are. */
static size_t frame(const uint8_t *lines, size_t size, uint8_t *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n + 4 < room; i++) {
        uint8_t sum = 0;
        out[n++] = '$';
        for (; i < size && lines[i] != '\n' && n + 3 < room; i++) {
            sum = (uint8_t)(sum + lines[i]);
            out[n++] = lines[i];
        }
        out[n++] = '#';
        out[n++] = (uint8_t)gdb_hex_digits[sum >> 4];
        out[n++] = (uint8_t)gdb_hex_digits[sum & 15];
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t framed[65536];
    if (size > 0 && data[0] == 'p') {
        run(framed, frame(data + 1, size - 1, framed, sizeof(framed)));
    } else {
        run(data, size);
    }
    return 0;
}

/* ---- Seeds ---- */

static uint64_t random_state;

static uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

/* An address that means something, near it, or any. */
static uint32_t random_address(void)
{
    static const uint32_t places[] = {CODE,       CODE + 12,          CODE + 24,   MEMORY,
                                      MEMORY + 4, MEMORY + BYTES - 4, RV32_RETURN, 0};
    uint32_t a = places[next_random() % (sizeof(places) / sizeof(places[0]))];
    return next_random() % 4 != 0 ? a : a + next_random() % 64 - 32;
}

static int random_packet(char *text, size_t room)
{
    static const char *const plain[] = {"?",
                                        "g",
                                        "s",
                                        "c",
                                        "vCont;s",
                                        "vCont;c",
                                        "s",
                                        "s",
                                        "vCont?",
                                        "D",
                                        "k",
                                        "QStartNoAckMode",
                                        "Hg0",
                                        "qAttached",
                                        "qSymbol::",
                                        "G00000000",
                                        "qRcmd,6379636c6573",
                                        "qRcmd,77686572650000",
                                        "qSupported:xmlRegisters=i386"};
    uint32_t a = random_address(), n = next_random() % 20;
    switch (next_random() % 12) {
    case 0:
        return snprintf(text, room, "m%x,%x", a, n);
    case 1:
        return snprintf(text, room, "M%x,2:%04x", a, n);
    case 2:
        return snprintf(text, room, "X%x,%x:%.*s", a, n, (int)n, "}]#$abc*}\003defghijklmno");
    case 3:
    case 4:
        return snprintf(text, room, "%c%u,%x,%x", n % 3 == 0 ? 'z' : 'Z', next_random() % 6, a,
                        next_random() % 8);
    case 5:
        return snprintf(text, room, "p%x", next_random() % 42);
    case 6:
        return snprintf(text, room, "P%x=%08x", next_random() % 42, __builtin_bswap32(a));
    case 7:
        return snprintf(text, room, "vCont;r%x,%x:1", a, a + n);
    case 8:
        return snprintf(text, room, "%c%x", n % 2 ? 's' : 'c', a);
    case 9:
        return snprintf(text, room, "qXfer:features:read:target.xml:%x,%x", a % 4096, n * 100);
    default:
        return snprintf(text, room, "%s",
                        plain[next_random() % (sizeof(plain) / sizeof(plain[0]))]);
    }
}

size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    char packet[256];
    size_t size = 0;
    random_state = number * 0x9e3779b97f4a7c15u + 1;
    data[size++] = 'p';
    for (uint32_t count = 1 + next_random() % 40; count > 0; count--) {
        int n = random_packet(packet, sizeof(packet));
        if (n < 0 || (size_t)n >= sizeof(packet) || size + (size_t)n + 1 > max) {
            break;
        }
        memcpy(data + size, packet, (size_t)n);
        size += (size_t)n;
        data[size++] = '\n';
    }
    return size;
}
