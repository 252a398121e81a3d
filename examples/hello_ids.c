/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs that nobody introduced: a physical id is an address.
 *
 *      $ ./hello_ids                             in one terminal
 *      waiting at 10.0.2.15:32768
 *      $ ./hello_ids 10.0.2.15:32768             in another
 *
 *      second ──put──► first      the event of the put says who sent it,
 *      second ◄──put── first      which is all that an answer needs
 *
 * No launcher, no ranks, no libpinwheel. How the first one's id gets to the
 * second is the programs' own affair: here somebody types it.
 */
#include <portals4.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 4, GREETING = 7, TEXT_SIZE = 128 };

static char inbox[TEXT_SIZE], outbox[TEXT_SIZE];

static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fprintf(stderr, "hello_ids: %s gave %d\n", call, code);
        exit(1);
    }
}

/* A network id is the IPv4 address of an interface. */
static const char *id_text(ptl_process_t id, char text[TEXT_SIZE])
{
    unsigned nid = id.phys.nid;
    snprintf(text, TEXT_SIZE, "%u.%u.%u.%u:%u", nid >> 24, nid >> 16 & 255, nid >> 8 & 255,
             nid & 255, (unsigned)id.phys.pid);
    return text;
}

static bool parse_id(const char *text, ptl_process_t *id)
{
    unsigned a, b, c, d, pid;
    char end;
    if (sscanf(text, "%3u.%3u.%3u.%3u:%5u%c", &a, &b, &c, &d, &pid, &end) != 5 || a > 255 ||
        b > 255 || c > 255 || d > 255 || pid < 1 || pid > 65534) {
        return false;
    }
    id->phys.nid = a << 24 | b << 16 | c << 8 | d;
    id->phys.pid = pid;
    return true;
}

/* Puts the text of the outbox; the ack says that it has arrived. */
static void say(ptl_handle_md_t md, ptl_process_t to)
{
    check(PtlPut(md, 0, strlen(outbox) + 1, PTL_ACK_REQ, to, INDEX, GREETING, 0, NULL, 0),
          "PtlPut");
}

/* Waits for an event of this kind; ends the program at any that is a failure. */
static ptl_event_t await(ptl_handle_eq_t queue, ptl_event_kind_t kind)
{
    ptl_event_t event;
    do {
        check(PtlEQWait(queue, &event), "PtlEQWait");
        if (event.ni_fail_type != PTL_NI_OK) {
            fprintf(stderr, "hello_ids: %s\n",
                    event.ni_fail_type == PTL_NI_UNDELIVERABLE
                        ? "nobody is at that id"
                        : "the put failed; is hello_ids at that id?");
            exit(1);
        }
    } while (event.type != kind);
    return event;
}

int main(int argc, char **argv)
{
    char text[TEXT_SIZE];
    ptl_process_t me, peer;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t received, sent;
    ptl_handle_me_t me_handle;
    ptl_handle_md_t md;
    ptl_pt_index_t index;
    if (argc > 2 || (argc == 2 && !parse_id(argv[1], &peer))) {
        fprintf(stderr, "usage: hello_ids [ADDRESS:PID]    as another hello_ids prints it\n");
        return 2;
    }

    /* An interface on which peers are named by their physical ids. */
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check(PtlGetPhysId(ni, &me), "PtlGetPhysId");

    /* Where a greeting lands, and events for it; events for what is sent. */
    check(PtlEQAlloc(ni, 16, &received), "PtlEQAlloc");
    check(PtlEQAlloc(ni, 16, &sent), "PtlEQAlloc");
    check(PtlPTAlloc(ni, 0, received, INDEX, &index), "PtlPTAlloc");
    ptl_me_t entry = {.start = inbox,
                      .length = sizeof(inbox),
                      .ct_handle = PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                      .match_id.phys = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY},
                      .match_bits = GREETING};
    check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &me_handle), "PtlMEAppend");
    ptl_md_t range = {outbox, sizeof(outbox), 0, sent, PTL_CT_NONE};
    check(PtlMDBind(ni, &range, &md), "PtlMDBind");
    snprintf(outbox, sizeof(outbox), "hello from %s", id_text(me, text));

    if (argc == 2) {
        say(md, peer);
        await(sent, PTL_EVENT_ACK);
        await(received, PTL_EVENT_PUT);
    } else {
        printf("waiting at %s\n", text);
        fflush(stdout);
        peer = await(received, PTL_EVENT_PUT).initiator;
        say(md, peer);
        await(sent, PTL_EVENT_ACK);
    }
    inbox[sizeof(inbox) - 1] = '\0';
    printf("%s received \"%s\"\n", id_text(me, text), inbox);
    PtlNIFini(ni);
    PtlFini();
    return 0;
}
