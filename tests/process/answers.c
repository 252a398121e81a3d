/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of a peer that does not keep the rules. Rank 0 is no Portals process but an end of the
 * network fabric that says what it likes; it holds back what it chooses of its packets. Rank 1 has
 * a handler that asks it for some packets' worth.
 *
 *      rank 1 ── ask ──► rank 0
 *             ◄── reply, its first packet ──   rank 1 lends the reply the answer's memory
 *             ◄── the same again, its first ─  in a stream of its own
 *             ◄── the rest of the one ───────  the ask is over, and the answer's memory freed
 *             ◄── the rest of the other ─────  goes nowhere
 *
 *      rank 1 ── put, its first packets ► rank 0
 *             ◄── ack ────────────────────────  the put is over; its payload is the fabric's still
 *             ── the rest ──────────► rank 0
 */
#include "asking.h"

#include "fabric/fabric.h"
#include "fabric/slmp/wire.h"
#include "nic/message.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/socket.h>

enum { LENGTH = 4000, PUT_LENGTH = 60000 /* more than leaves without an acknowledgement */ };
enum { PACKET_MOST = 65536, SHOW_REST = 16, SHOW_OVER, SHOW_ENDED };

/* ---- Rank 0 ---- */

static struct {
    struct fabric_peer *peer;
    struct message ask;
    bool asked, done;
    bool silent; /* nothing is acknowledged */
    uint8_t put[PUT_LENGTH];
    unsigned sent;    /* replies whose memory is given back */
    uint32_t open;    /* replies with a lower number than this may pass whole */
    unsigned held_up; /* packets that were not sent */
} end;

ssize_t __real_sys_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sys_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_sys_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                          socklen_t length);
ssize_t __wrap_sys_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                          socklen_t length);

static bool is_held_up(const uint8_t *packet, size_t length)
{
    struct slmp_wire w;
    if (slmp_wire_parse(&w, packet, length) != SLMP_PARSED) {
        return false;
    }
    bool held = w.kind == SLMP_KIND_DATA && w.channel == FABRIC_RESPONSE && w.offset != 0 &&
                w.id >= end.open;
    held |= end.silent && w.kind == SLMP_KIND_ACK;
    end.held_up += held;
    return held;
}

/* Each packet of the network leaves alone, or not at all. */
ssize_t __wrap_sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
    static uint8_t all[PACKET_MOST];
    size_t n = 0, each = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) {
        memcpy(all + n, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
        n += m->msg_iov[i].iov_len;
    }
    if (m->msg_controllen != 0) {
        uint16_t segment;
        memcpy(&segment, CMSG_DATA(CMSG_FIRSTHDR(m)), sizeof(segment));
        each = segment;
    }
    each = each != 0 ? each : n;
    for (size_t at = 0; at < n; at += each) {
        size_t length = n - at < each ? n - at : each;
        if (!is_held_up(all + at, length)) {
            __real_sys_sendto(fd, all + at, length, flags, m->msg_name, m->msg_namelen);
        }
    }
    return (ssize_t)n;
}

ssize_t __wrap_sys_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                          socklen_t length)
{
    return is_held_up(from, n) ? (ssize_t)n : __real_sys_sendto(fd, from, n, flags, to, length);
}

static struct nic_peer *peer_up(struct nic *nic, const struct fabric_address *a,
                                struct fabric_peer *fp)
{
    end.peer = fp;
    return (struct nic_peer *)&end;
}

static void peer_down(struct nic *nic, struct nic_peer *p)
{
    end.peer = NULL;
}

static struct fabric_rx *rx_new(struct nic_peer *p, enum fabric_class class)
{
    return calloc(1, sizeof(struct fabric_rx));
}

static void rx_free(struct nic_peer *p, struct fabric_rx *f)
{
    free(f);
}

static enum rx_step rx_short(struct nic_peer *p, struct fabric_rx *f, const void *payload)
{
    return RX_FIRST;
}

static enum rx_step rx_header(struct nic_peer *p, struct fabric_rx *f)
{
    const struct message *m = (const struct message *)f->header;
    if (m->type == MESSAGE_GET || m->type == MESSAGE_PUT) {
        end.ask = *m;
        end.asked = true;
    }
    if (m->type == MESSAGE_PUT) {
        f->sink = RX_DEPOSIT;
        f->base = end.put;
        f->room = PUT_LENGTH;
    }
    return RX_GO;
}

static enum rx_step rx_packet(struct nic_peer *p, struct fabric_rx *f, void *data, uint64_t offset,
                              size_t length)
{
    return RX_GO;
}

static enum rx_step rx_done(struct nic_peer *p, struct fabric_rx *f, enum fabric_status status)
{
    end.done = status == FABRIC_OK;
    return RX_GO;
}

static void sent(struct nic_peer *p, struct fabric_tx *tx, enum fabric_status status)
{
    end.sent++;
}

static bool yes(struct nic_peer *p)
{
    return true;
}

static void nothing(struct nic *nic)
{
}

static const struct fabric_upcalls upcalls = {.peer_up = peer_up,
                                              .peer_down = peer_down,
                                              .rx_new = rx_new,
                                              .rx_free = rx_free,
                                              .rx_short = rx_short,
                                              .rx_header = rx_header,
                                              .rx_packet = rx_packet,
                                              .rx_done = rx_done,
                                              .sent = sent,
                                              .expects = yes,
                                              .needs = yes,
                                              .lock = nothing,
                                              .unlock = nothing};

static void begin_reply(struct fabric_tx *tx, const void *bytes)
{
    struct message *m = (struct message *)tx->header;
    *tx = (struct fabric_tx){.base = bytes, .length = LENGTH};
    *m = (struct message){
        .type = MESSAGE_REPLY, .ni = end.ask.ni, .cookie = end.ask.cookie, .length = LENGTH};
    CHECK_EQ(fabric_udp.send(end.peer, FABRIC_RESPONSE, tx), FABRIC_QUEUED);
}

static void poll_until_sent(struct fabric *f, unsigned sent_replies)
{
    while (end.sent < sent_replies) {
        fabric_udp.poll(f);
    }
}

/* Opens the end and waits until rank 1 asks. */
static struct fabric *be_asked(size_t packet_size)
{
    static struct options options;
    struct fabric *f;
    struct reason why = {""};
    char error[256];
    uint32_t pid = 0;
    CHECK_EQ(options_load(&options, error, sizeof(error)), 0);
    struct fabric_setup setup = {.nic = (struct nic *)&end,
                                 .up = &upcalls,
                                 .options = &options,
                                 .nid = INADDR_LOOPBACK,
                                 .incarnation = 4711,
                                 .packet_size = packet_size,
                                 .alone = true};
    if (fabric_udp.open(&setup, &f, &pid, &why) != 0) {
        FAIL("%s", why.text);
    }
    ptest_show(SHOW_PID, pid);
    while (!end.asked) {
        fabric_udp.poll(f);
    }
    return f;
}

static void poll_until_shown(struct fabric *f, int slot)
{
    while (ptest_look(1, slot) == 0) {
        fabric_udp.poll(f);
    }
}

static void answer_twice(void)
{
    static uint8_t first[LENGTH], second[LENGTH];
    struct fabric_tx tx[2];
    memset(first, 1, sizeof(first));
    memset(second, 2, sizeof(second));
    struct fabric *f = be_asked(4096);
    begin_reply(&tx[0], first);
    begin_reply(&tx[1], second);
    for (unsigned before = end.held_up; end.held_up < before + 6;) {
        fabric_udp.poll(f); /* the first packets of both are there, and the others tried again */
    }
    end.open = 1;
    poll_until_sent(f, 1);
    poll_until_shown(f, SHOW_ENDED);
    end.open = 2;
    poll_until_sent(f, 2);
    ptest_show(SHOW_REST, 1);
    poll_until_shown(f, SHOW_OVER);
    fabric_udp.close(f);
}

static void answer_early(void)
{
    end.silent = true;
    struct fabric *f = be_asked(PACKET_MOST);
    _Alignas(8) struct message m = {
        .type = MESSAGE_ACK, .ni = end.ask.ni, .cookie = end.ask.cookie, .length = PUT_LENGTH};
    CHECK_EQ(fabric_udp.send_short(end.peer, FABRIC_RESPONSE, &m, NULL, 0), SHORT_SENT);
    poll_until_shown(f, SHOW_ENDED);
    CHECK(!end.done);
    end.silent = false;
    while (!end.done) {
        fabric_udp.poll(f);
    }
    CHECK_BYTES(end.put, PUT_LENGTH, 1);
    ptest_show(SHOW_REST, 1);
    poll_until_shown(f, SHOW_OVER);
    fabric_udp.close(f);
}

/* ---- Rank 1 ---- */

struct getting {
    ptl_process_t target;
    uint8_t bytes[LENGTH];
};

__handler static int get_much(const ptl_header_t h, void *state)
{
    struct getting *s = state;
    uint64_t wrong = 0;
    int code = PtlHandlerGetToDevice(s->bytes, LENGTH, s->target, BITS, 0);
    for (int i = 0; i < LENGTH; i++) {
        wrong += s->bytes[i] != 1;
    }
    PtlHandlerDMAToHostB(&wrong, offsetof(struct notes, before), sizeof(wrong),
                         PTL_HANDLER_HOST_MEM);
    note_end(code);
    return DROP;
}
PTL_HANDLER(get_much);

struct putting {
    ptl_process_t target;
    uint8_t bytes[PUT_LENGTH];
};

__handler static int put_much(const ptl_header_t h, void *state)
{
    struct putting *s = state;
    for (int i = 0; i < PUT_LENGTH; i++) {
        s->bytes[i] = 1;
    }
    note_end(
        PtlHandlerPutFromDevice(s->bytes, PUT_LENGTH, PTL_ACK_REQ, s->target, BITS, 0, NULL, 0));
    return DROP;
}
PTL_HANDLER(put_much);

enum { CHUNKS = 64 };

/* Takes all memory that was given back of about that length, and fills it. */
static void fill_memory(uint8_t *chunk[CHUNKS], size_t length)
{
    for (int i = 0; i < CHUNKS; i++) {
        chunk[i] = malloc(length);
        CHECK(chunk[i] != NULL);
        memset(chunk[i], 0, length);
    }
}

/* It has stayed as it was filled. */
static void free_memory(uint8_t *chunk[CHUNKS], size_t length)
{
    for (int i = 0; i < CHUNKS; i++) {
        CHECK_BYTES(chunk[i], length, 0);
        free(chunk[i]);
    }
}

static void be_answered(bool early)
{
    struct port p;
    uint8_t *chunk[CHUNKS];
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1); /* it is not patience that ends this */
    if (early) {
        setenv("PINWHEEL_PACKET_SIZE", "65536", 1);
    }
    open_alone(&p, PTL_PID_ANY);
    while (ptest_look(0, SHOW_PID) == 0) {
        ptest_sleep_ms(1);
    }
    ptl_process_t target = {
        .phys = {.nid = p.id[0].phys.nid, .pid = (ptl_pid_t)ptest_look(0, SHOW_PID)}};
    ptl_handle_me_t asking =
        early
            ? open_entry(&p, put_much, &(struct putting){.target = target}, sizeof(struct putting))
            : open_entry(&p, get_much, &(struct getting){.target = target}, sizeof(struct getting));
    ask(&p, asking);
    check_ends(1, 0, 0);
    if (early) {
        EVENT(p.eq, PTL_EVENT_ACK);
    }
    size_t length = early ? PUT_LENGTH : LENGTH + 64;
    fill_memory(chunk, length);
    CHECK_EQ(notes.before, 0);
    ptest_show(SHOW_ENDED, 1);
    while (ptest_look(0, SHOW_REST) == 0) {
        PtlEQGet(p.eq, &(ptl_event_t){0});
    }
    for (int i = 0; i < 1000; i++) {
        PtlEQGet(p.eq, &(ptl_event_t){0});
    }
    free_memory(chunk, length);
    port_unlink(&p, asking);
    OK(PtlNIFini(p.ni));
    PtlFini();
    ptest_show(SHOW_OVER, 1);
}

PTEST(a_second_answer_goes_nowhere, 2)
{
    if (rank == 0) {
        answer_twice();
    } else {
        be_answered(false);
    }
}

PTEST(an_early_answer_frees_nothing_that_leaves, 2)
{
    if (rank == 0) {
        answer_early();
    } else {
        be_answered(true);
    }
}
