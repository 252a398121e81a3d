/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler for command.sh, compiled for RV32 with debug information: it adds up a packet
 * in a function of a function, into HPU memory; others do what is not allowed. check_gdb.py
 * takes it, too.
 */
#include <stdint.h>

#define APART __attribute__((noinline))

APART uint32_t sum(const uint32_t *words, uint32_t count);
APART uint32_t both(const uint32_t *words, uint32_t count);
uint32_t handler(const uint32_t *packet, uint32_t bytes, uint32_t *state);
uint32_t stray(const volatile uint32_t *packet);
uint32_t deep(uint32_t n);
void spin(void);
void illegal(void);
void trap(void);
void call(void);
typedef uint32_t function(uint32_t n);
APART uint32_t through(function *f, uint32_t n);
uint32_t nowhere(uint32_t n);
uint32_t smashed(void);
APART uint32_t leaps(void);
uint32_t leaper(void);
uint32_t walks(void);
uint32_t large(void);
void astray(void);
void writes(uint32_t *code);

uint32_t sum(const uint32_t *words, uint32_t count)
{
    uint32_t s = 0;
    for (uint32_t i = 0; i < count; i++) {
        s += words[i] / 3;
    }
    return s;
}

uint32_t both(const uint32_t *words, uint32_t count)
{
    return sum(words, count) + sum(words, count / 2);
}

uint32_t handler(const uint32_t *packet, uint32_t bytes, uint32_t *state)
{
    state[0] += both(packet, bytes / 4);
    return state[0];
}

uint32_t stray(const volatile uint32_t *packet)
{
    return packet[16384]; /* beyond any packet */
}

uint32_t deep(uint32_t n)
{
    volatile uint32_t room[64];
    room[0] = n;
    return deep(n + 1) + room[0];
}

void spin(void)
{
    for (;;) {
        __asm__ volatile("");
    }
}

void illegal(void)
{
    __asm__ volatile(".word 0");
}

void trap(void)
{
    __asm__ volatile("ebreak");
}

void call(void)
{
    __asm__ volatile("ecall");
}

uint32_t through(function *f, uint32_t n)
{
    return f(n) + 1; /* a pointer to nowhere */
}

uint32_t nowhere(uint32_t n)
{
    return through((function *)(uintptr_t)(n & 0), n) * 3;
}

uint32_t smashed(void)
{
    __asm__ volatile("li ra,0x12345678; ret"); /* what an overflow leaves */
    return 0;
}

uint32_t leaps(void)
{
    __asm__ volatile("jr zero"); /* nowhere, not coming back here */
    return 0;
}

uint32_t leaper(void)
{
    return leaps() + 1; /* who called */
}

/* Down the stack and out of it, not by sp. */
uint32_t walks(void)
{
    volatile uint32_t room[8];
    volatile uint32_t *at = room + 8;
    for (;;) {
        *--at = 0;
    }
}

/* More than the stack has, entered at its far end, which is below all else. */
uint32_t large(void)
{
    volatile uint32_t room[8192];
    volatile uint32_t *at = room;
    __asm__ volatile("" : "+r"(at));
    at[0] = 1;
    return at[0];
}

/* Its stack pointer is overwritten. */
void astray(void)
{
    __asm__ volatile("li sp, 0x1000\n\tsw zero, 8(sp)");
}

void writes(uint32_t *code)
{
    *code = 0; /* what is only read */
}
