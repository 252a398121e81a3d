/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * max_unexpected_headers: as many messages as it says wait in the overflow list; the next one
 * is refused, with flow control the index is disabled; a header that is taken leaves room.
 */
#include "limits_kit.h"

enum { SMALL = 16 };

static unsigned char memory[256];

static ptl_ni_limits_t few_headers, no_headers;

/* One put of 8 bytes, and how it was acknowledged. */
static void put_ends(struct scene *s, ptl_handle_md_t md, int fail)
{
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = fail);
}

static void headers(struct scene *s)
{
    int limit = (int)s->c->number;
    int refusal = s->c->pt_options & PTL_PT_FLOWCTRL ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    if (s->target) {
        CHECK_EQ(s->limits.max_unexpected_headers, limit);
        suite_target(s, PTL_OVERFLOW_LIST, memory, sizeof(memory), PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, memory + 128, 8, PTL_MD_EVENT_SEND_DISABLE);
        for (int i = 0; i < limit; i++) {
            put_ends(s, md, PTL_NI_OK);
        }
        for (int i = 0; i < 3; i++) {
            put_ends(s, md, refusal);
        }
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < limit; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT);
        }
        if (refusal == PTL_NI_PT_DISABLED) {
            EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
        NO_EVENT(s->eq);
        /* one header is taken: room for one */
        ptl_me_t once = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        if (limit > 0) {
            suite_append(s, PTL_PRIORITY_LIST, &once, NULL);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW);
            EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        }
    }
    STEP();
    if (s->initiator && limit > 0) {
        ptl_handle_md_t md = suite_md(s, memory + 128, 8, PTL_MD_EVENT_SEND_DISABLE);
        put_ends(s, md, PTL_NI_OK);
        put_ends(s, md, refusal);
    }
    STEP();
    if (s->target && limit > 0) {
        EXPECT(s->eq, PTL_EVENT_PUT);
    }
}

/* Without headers there is no limit. */
static void headers_disabled(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, memory, sizeof(memory),
                     PTL_ME_OP_PUT | PTL_ME_UNEXPECTED_HDR_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, memory + 128, 8, PTL_MD_EVENT_SEND_DISABLE);
        for (int i = 0; i < SMALL + 5; i++) {
            put_ends(s, md, PTL_NI_OK);
        }
    }
}

static void add_headers(const ptl_ni_limits_t *desired, int limit, unsigned pt_options,
                        const char *name)
{
    suite_add_each((struct suite_case){.rule = "3.12: max_unexpected_headers are kept, the next "
                                               "message is refused",
                                       .body = headers,
                                       .number = limit,
                                       .pt_options = pt_options,
                                       .desired = desired},
                   ALL_KINDS, SELF | PAIR, "max_unexpected_headers.%s", name);
}

GENERATE(header_limits)
{
    few_headers = limits_with(LIMIT_OF(max_unexpected_headers), SMALL);
    no_headers = limits_with(LIMIT_OF(max_unexpected_headers), 0);
    add_headers(&few_headers, SMALL, 0, "few");
    add_headers(&few_headers, SMALL, PTL_PT_FLOWCTRL, "few_flow_control");
    add_headers(&no_headers, 0, 0, "none");
    add_headers(&no_headers, 0, PTL_PT_FLOWCTRL, "none_flow_control");
    suite_add_each((struct suite_case){.rule = "3.12: an overflow entry with "
                                               "PTL_ME_UNEXPECTED_HDR_DISABLE needs no header",
                                       .body = headers_disabled,
                                       .desired = &no_headers},
                   ALL_KINDS, SELF | PAIR, "max_unexpected_headers.disabled");
}
