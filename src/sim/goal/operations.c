/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of operations and parts; see operations.h. */
#include "operations.h"

enum {
    MOVES = GOAL_HAS_BYTES | GOAL_HAS_PEER | GOAL_HAS_TAG | GOAL_HAS_NIC | GOAL_MAY_WAIT |
            GOAL_MAY_COUNT,
    MEETS = GOAL_HAS_BYTES | GOAL_HAS_PEER | GOAL_HAS_TAG | GOAL_HAS_ANY_TAG | GOAL_HAS_NIC,
};

static const struct goal_kind kinds[GOAL_TYPES + 1] = {
    [GOAL_SEND] = {"send", "to", MEETS},
    [GOAL_RECV] = {"recv", "from", MEETS | GOAL_HAS_ANY},
    [GOAL_CALC] = {"calc", NULL, 0},
    [GOAL_PUT] = {"put", "to", MOVES},
    [GOAL_GET] = {"get", "from", MOVES},
    [GOAL_ATOMIC] = {"atomic", "to", MOVES},
    [GOAL_FETCH] = {"fetch", "from", MOVES},
    [GOAL_SWAP] = {"swap", "with", MOVES},
    [GOAL_CAS] = {"cas", "with", MOVES},
    [GOAL_APPEND] = {"append", "allowed",
                     GOAL_HAS_BYTES | GOAL_HAS_PEER | GOAL_HAS_ANY | GOAL_HAS_TAG |
                         GOAL_HAS_ANY_TAG | GOAL_HAS_NIC | GOAL_MAY_COUNT},
    [GOAL_TEST] = {"test", NULL, GOAL_HAS_COUNTER},
    [GOAL_COUNT] = {"count", NULL, GOAL_HAS_COUNTER | GOAL_MAY_WAIT},
    [GOAL_HEADER_HANDLER] = {"hh", NULL, 0},
    [GOAL_PAYLOAD_HANDLER] = {"ph", NULL, 0},
    [GOAL_COMPLETION_HANDLER] = {"ch", NULL, 0},
    [GOAL_DOES_PUT] = {"put", "to", GOAL_HAS_BYTES | GOAL_HAS_PEER | GOAL_HAS_TAG},
    [GOAL_DOES_HOST_PUT] = {"hostput", "to", GOAL_HAS_BYTES | GOAL_HAS_PEER | GOAL_HAS_TAG},
    [GOAL_DOES_WRITE] = {"write", NULL, GOAL_HAS_BYTES},
    [GOAL_DOES_COUNT] = {"count", NULL, GOAL_HAS_COUNTER},
    [GOAL_WHEN] = {"when", NULL, GOAL_HAS_COUNTER},
    [GOAL_COUNTS] = {"ct", NULL, GOAL_HAS_COUNTER},
    [GOAL_USE_ONCE] = {"use_once", NULL, 0},
};

const struct goal_kind *goal_kind_of(uint8_t type)
{
    return &kinds[type < GOAL_TYPES ? type : GOAL_TYPES];
}

bool goal_follows(uint8_t operation, uint8_t handler, uint8_t before, uint8_t part)
{
    unsigned has = goal_kind_of(operation)->has;
    bool append = operation == GOAL_APPEND;
    switch (part) {
    case GOAL_HEADER_HANDLER:
    case GOAL_PAYLOAD_HANDLER:
    case GOAL_COMPLETION_HANDLER: /* handlers have their order, and all but they come later */
        return append && handler < part && before < GOAL_WHEN;
    case GOAL_DOES_PUT:
    case GOAL_DOES_HOST_PUT:
    case GOAL_DOES_WRITE:
    case GOAL_DOES_COUNT:
        return handler != 0 && before < GOAL_WHEN;
    case GOAL_WHEN:
        return (has & GOAL_MAY_WAIT) != 0 && before == operation;
    case GOAL_COUNTS:
        return (has & GOAL_MAY_COUNT) != 0 && before < GOAL_COUNTS;
    case GOAL_USE_ONCE:
        return append && before < GOAL_USE_ONCE;
    default:
        return false;
    }
}
