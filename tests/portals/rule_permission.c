/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.11, 3.12, 3.6.4: permissions of entries, and the status registers. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];
static uint64_t fetched[2];

struct registers {
    int drops, permission, operation;
};

static struct registers registers_of(struct scene *s)
{
    return (struct registers){suite_status(s, PTL_SR_DROP_COUNT),
                              suite_status(s, PTL_SR_PERMISSION_VIOLATIONS),
                              suite_status(s, PTL_SR_OPERATION_VIOLATIONS)};
}

static void expect_registers(struct scene *s, struct registers before, int drops, int permission,
                             int operation)
{
    EXPECT_STATUS(PTL_SR_DROP_COUNT, before.drops + drops);
    EXPECT_STATUS(PTL_SR_PERMISSION_VIOLATIONS, before.permission + permission);
    EXPECT_STATUS(PTL_SR_OPERATION_VIOLATIONS, before.operation + operation);
}

/* Makes one operation of a kind, of 8 bytes, and expects this end of it. */
static void operate(struct scene *s, enum suite_call call, ptl_ni_fail_t fail)
{
    struct suite_move m = suite_move_to(s, call);
    m.md = rule_md(s, from, SIZE);
    m.get_md = rule_md(s, fetched, sizeof(fetched));
    m.length = 8;
    m.ack = PTL_ACK_REQ;
    m.op = call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT64_T;
    m.user_ptr = (void *)77;
    OK(suite_move(&m));
    EXPECT(s->mdeq, call == CALL_PUT || call == CALL_ATOMIC ? PTL_EVENT_ACK : PTL_EVENT_REPLY,
           .fail = fail, .user_ptr = IS(77));
}

static unsigned needed(int call)
{
    return call == CALL_PUT || call == CALL_ATOMIC ? PTL_ME_OP_PUT
           : call == CALL_GET                      ? PTL_ME_OP_GET
                                                   : PTL_ME_OP_PUT | PTL_ME_OP_GET;
}

CASE(operations_allowed, ALL_KINDS, SELF | PAIR,
     "3.12: put and atomic need OP_PUT, get OP_GET, fetch and swap both; else PTL_NI_OP_VIOLATION, "
     "counted in its register, and nothing happens")
{
    static const unsigned options[4] = {0, PTL_ME_OP_PUT, PTL_ME_OP_GET,
                                        PTL_ME_OP_PUT | PTL_ME_OP_GET};
    for (int i = 0; i < 4; i++) {
        ptl_handle_me_t entry = 0;
        struct registers before = registers_of(s);
        int violations = 0;
        if (s->target) {
            memset(to, 0, SIZE);
            entry = suite_target(s, PTL_PRIORITY_LIST, to, SIZE, options[i], NULL);
        }
        STEP();
        from[0] = 1;
        for (int call = 0; call < CALL_COUNT; call++) {
            bool good = (options[i] & needed(call)) == needed(call);
            violations += !good;
            if (s->initiator) {
                operate(s, (enum suite_call)call, good ? PTL_NI_OK : PTL_NI_OP_VIOLATION);
            }
            if (s->target && good) {
                static const int type[CALL_COUNT] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC,
                                                     PTL_EVENT_FETCH_ATOMIC,
                                                     PTL_EVENT_FETCH_ATOMIC};
                EXPECT(s->eq, type[call], .mlength = IS(8));
            }
        }
        STEP();
        if (s->target) {
            NO_EVENT(s->eq);
            expect_registers(s, before, 0, 0, violations);
            if ((options[i] & PTL_ME_OP_PUT) == 0) {
                CHECK_BYTES(to, SIZE, 0);
            }
            suite_unlink(s, entry);
        }
        STEP();
    }
}

CASE(uid_of_entry, ALL_KINDS, SELF | PAIR,
     "3.12: an entry with a uid takes messages of that user only; else PTL_NI_PERM_VIOLATION, "
     "counted in its register, and nothing happens")
{
    struct registers before = registers_of(s);
    for (int i = 0; i < 2; i++) {
        ptl_handle_me_t entry = 0;
        if (s->target) {
            memset(to, 0, SIZE);
            ptl_me_t me =
                suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
            me.uid = i == 0 ? s->uid : s->uid + 1;
            entry = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        }
        STEP();
        for (int call = 0; call < CALL_COUNT; call++) {
            if (s->initiator) {
                operate(s, (enum suite_call)call, i == 0 ? PTL_NI_OK : PTL_NI_PERM_VIOLATION);
            }
            if (s->target && i == 0) {
                ptl_event_t e;
                OK(PtlEQWait(s->eq, &e));
            }
        }
        STEP();
        if (s->target) {
            NO_EVENT(s->eq);
            expect_registers(s, before, 0, i * CALL_COUNT, 0);
            CHECK(i == 0 || to[0] == 0);
            suite_unlink(s, entry);
        }
        STEP();
    }
}

CASE(uid_before_operation, ALL_KINDS, SELF | PAIR,
     "3.12: one message counts as one violation; the uid is looked at first")
{
    struct registers before = registers_of(s);
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_EVENT_LINK_DISABLE);
        me.uid = s->uid + 1;
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    }
    STEP();
    if (s->initiator) {
        operate(s, CALL_PUT, PTL_NI_PERM_VIOLATION);
    }
    STEP();
    if (s->target) {
        expect_registers(s, before, 0, 1, 0);
    }
}

CASE(permission_after_match, ALL_KINDS, SELF | PAIR,
     "3.12: permissions are checked on the entry that matched; one behind it that would allow the "
     "message is not looked for")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_GET, (void *)1);
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, (void *)2);
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, (void *)3);
    }
    STEP();
    if (s->initiator) {
        operate(s, CALL_PUT, PTL_NI_OP_VIOLATION);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

CASE(violation_changes_nothing, ALL_KINDS, SELF | PAIR,
     "3.12: a violating message uses nothing up: a use-once entry stays, without event or count")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM, (void *)1);
    }
    STEP();
    if (s->initiator) {
        for (int i = 0; i < 5; i++) {
            operate(s, CALL_GET, PTL_NI_OP_VIOLATION);
        }
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
        EXPECT_CT(s->ct, 0, 0);
    }
    STEP();
    if (s->initiator) {
        operate(s, CALL_PUT, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        EXPECT_CT(s->ct, 1, 0);
    }
}

CASE(violation_local_offset, MATCHING_KINDS, SELF | PAIR,
     "3.12: a violating message does not move a locally managed offset")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL, NULL);
    }
    STEP();
    if (s->initiator) {
        operate(s, CALL_GET, PTL_NI_OP_VIOLATION);
        operate(s, CALL_PUT, PTL_NI_OK);
        operate(s, CALL_FETCH, PTL_NI_OP_VIOLATION);
        operate(s, CALL_PUT, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to));
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + 8));
    }
}

CASE(violation_in_overflow, ALL_KINDS, SELF | PAIR,
     "3.12: permissions hold in the overflow list; a violating message leaves no header")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        operate(s, CALL_GET, PTL_NI_OP_VIOLATION);
    }
    STEP();
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_GET);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        EXPECT(s->eq, PTL_EVENT_LINK);
        NO_EVENT(s->eq);
    }
}

CASE(violation_flow_control, ALL_KINDS, SELF | PAIR,
     "3.12: a violation does not close an index with flow control")
{
    ptl_pt_index_t index = suite_pt(s, PTL_PT_FLOWCTRL, s->eq, 20);
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        OK(PtlGet(md, 0, 8, s->to, index, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_OP_VIOLATION);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        NO_EVENT(s->eq);
    }
}

CASE(registers_begin, ALL_KINDS, BARE, "3.6.4: the registers of a new interface are 0")
{
    rule_open(s, NULL);
    expect_registers(s, (struct registers){0, 0, 0}, 0, 0, 0);
}

CASE(registers_of_drops, ALL_KINDS, SELF | PAIR,
     "3.6.4: the drop counter counts each message that no entry matches, of any kind and length")
{
    struct registers before = registers_of(s);
    STEP();
    if (s->initiator) {
        for (int call = 0; call < CALL_COUNT; call++) {
            operate(s, (enum suite_call)call, PTL_NI_DROPPED);
        }
        rule_put(s, rule_md(s, from, SIZE), SIZE, 0, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        expect_registers(s, before, CALL_COUNT + 1, 0, 0);
    } else {
        expect_registers(s, before, 0, 0, 0);
    }
}

CASE(registers_of_kinds, NO_KIND, BARE, "3.6.4: each interface has registers of its own")
{
    struct scene second = *s;
    s->options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
    s->matching = true;
    rule_open(s, NULL);
    second.options = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;
    rule_open(&second, NULL);
    operate(s, CALL_PUT, PTL_NI_DROPPED);
    operate(s, CALL_PUT, PTL_NI_DROPPED);
    EXPECT_STATUS(PTL_SR_DROP_COUNT, 2);
    CHECK_EQ(suite_status(&second, PTL_SR_DROP_COUNT), 0);
}

CASE(registers_of_success, ALL_KINDS, SELF | PAIR,
     "3.6.4: what arrives, truncated or not, and searches that find nothing, move no register")
{
    struct registers before = registers_of(s);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 10, PTL_ME_OP_PUT, NULL);
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, NULL));
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, SIZE, 0, PTL_NI_OK);
        rule_put(s, md, 0, 0, PTL_NI_OK);
    }
    STEP();
    expect_registers(s, before, 0, 0, 0);
}
