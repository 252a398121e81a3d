/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two messages of the socket by which memory is handed over, little-endian:
 *
 *      ask      | "PWRM" | version 4 | incarnation 8 | token 8 | match bits 8 |
 *      answer   | "PWRM" | version 4 | code 4 | access 4 | length 8 |
 */
#include "inside.h"
#include "share.h"

#include <endian.h>
#include <string.h>

enum { VERSION = 1 };

static void put32(unsigned char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, 4);
}

static void put64(unsigned char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, 8);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return le32toh(value);
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return le64toh(value);
}

static bool begins(const unsigned char *bytes)
{
    return memcmp(bytes, "PWRM", 4) == 0 && get32(bytes + 4) == VERSION;
}

void ask_write(unsigned char *bytes, const struct ask *ask)
{
    memcpy(bytes, "PWRM", 4);
    put32(bytes + 4, VERSION);
    put64(bytes + 8, ask->incarnation);
    put64(bytes + 16, ask->token);
    put64(bytes + 24, ask->bits);
}

void answer_write(unsigned char *bytes, const struct answer *answer)
{
    memcpy(bytes, "PWRM", 4);
    put32(bytes + 4, VERSION);
    put32(bytes + 8, (uint32_t)answer->code);
    put32(bytes + 12, answer->access);
    put64(bytes + 16, answer->length);
}

bool ask_read(const unsigned char *bytes, size_t size, struct ask *ask)
{
    if (size != ASK_BYTES || !begins(bytes)) {
        return false;
    }
    *ask = (struct ask){get64(bytes + 8), get64(bytes + 16), get64(bytes + 24)};
    return true;
}

bool answer_read(const unsigned char *bytes, size_t size, struct answer *answer)
{
    if (size != ANSWER_BYTES || !begins(bytes)) {
        return false;
    }
    *answer = (struct answer){(int32_t)get32(bytes + 8), get32(bytes + 12), get64(bytes + 16)};
    return answer->code <= 0 && (answer->access & ~(uint32_t)ALL_ACCESS) == 0;
}
