/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over shared memory that fail part-way, and senders that lie in their records: whatever
 * the receiver finds, each of its polls comes back, the message ends once, with an error at both
 * ends, and those of others behind it arrive.
 *
 * A receiver that does not come back hangs the test, which its time-out ends.
 */
#include "fabric_fixture.h"

#include "fabric/shm/shm.h"
#include "fabric/shm/teardown.h"

enum { LONG_MESSAGE = 16 * FETCH_PACKETS * PACKET, FLOOD = 100000 };

static struct plan under_way;

/* Memory of whole pages, with as many behind that nobody may touch. */
static uint8_t *fenced(size_t length)
{
    uint8_t *at = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at, length, PROT_READ | PROT_WRITE), 0);
    return at;
}

/* One message whose source is fenced memory, of which the page at `hole` is not there. */
static void make_torn(struct plan *plan, size_t length, size_t hole, bool by_packets)
{
    make_plan(plan, length, WHOLE, WHOLE);
    uint8_t *at = fenced(length);
    memcpy(at, plan->payload, length);
    assert_int_equal(mprotect(at + hole / PACKET * PACKET, PACKET, PROT_NONE), 0);
    plan->tx.base = at;
    plan->by_packets = by_packets;
    plan->bad_source = true;
}

static void free_torn(struct plan *plan)
{
    munmap((void *)plan->tx.base, 2 * plan->tx.length);
    free_plan(plan);
}

static void holes(const char *way)
{
    open_both(way);
    for (unsigned i = 0; i < 200; i++) {
        size_t length = (2 + below(4 * FETCH_PACKETS)) * PACKET;
        make_torn(&under_way, length, below(length), i % 4 != 3);
        under_way.headed = below(2) == 0;
        carry(&under_way);
        free_torn(&under_way);
        carry_sound_ones();
    }
    close_both();
}

static void holes_by_reference(void **state)
{
    holes("vm");
}

static void holes_through_cells(void **state)
{
    holes("cells");
}

/* ---- a sender that lies ---- */

static struct record *record_sent(void)
{
    struct tx_channel *t = &shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST];
    return (struct record *)(t->ring + (plans[0]->tx.record & t->line_mask) * RECORD_LINE);
}

/* Of a message by reference, the record says another length, or another address. */
static void carry_lie(size_t length, uint64_t said_length, uint64_t said_address, bool by_packets)
{
    make_plan(&under_way, length, WHOLE, WHOLE);
    uint8_t *at = fenced(length);
    memcpy(at, under_way.payload, length);
    under_way.tx.base = at;
    under_way.by_packets = by_packets;
    under_way.bad_source = true;
    plans[0] = &under_way;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    assert_false(under_way.is_sent);
    record_sent()->length = under_way.length = under_way.room = said_length;
    record_sent()->address = said_address != 0 ? said_address : (uint64_t)(uintptr_t)at;
    finish(&under_way);
    check_plan(&under_way);
    free_torn(&under_way);
}

static void lies_about_references(void **state)
{
    static const uint64_t addresses[] = {1, 4096, 1ull << 47, UINTPTR_MAX, UINTPTR_MAX - 4096};
    size_t length = 3 * FETCH_PACKETS * PACKET;
    open_both("vm");
    for (unsigned by_packets = 0; by_packets < 2; by_packets++) {
        for (unsigned shift = 24; shift < 64; shift++) {
            /* A deposit of it all would write beyond what the test has. */
            if (by_packets != 0) {
                carry_lie(length, 1ull << shift, 0, true);
                carry_lie(length, UINT64_MAX >> (63 - shift), 0, true);
            }
        }
        for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
            carry_lie(length, length, addresses[i], by_packets != 0);
        }
    }
    carry_sound_ones();
    close_both();
}

/* ---- a sender without an end ---- */

static unsigned flooded; /* packets, or messages, that came after the receiver had one */
static void (*flood)(void);
static uint64_t cells_in_progress; /* of the receiver: it gives them back next */

static enum rx_step rx_packet_flooded(struct nic_peer *p, struct fabric_rx *f, void *data,
                                      uint64_t offset, size_t length)
{
    flooded++;
    cells_in_progress = length / PACKET;
    flood();
    return RX_GO;
}

static enum rx_step rx_short_flooded(struct nic_peer *p, struct fabric_rx *f, const void *payload)
{
    flooded++;
    flood();
    return RX_GO;
}

static enum rx_step rx_done_flooded(struct nic_peer *p, struct fabric_rx *f,
                                    enum fabric_status status)
{
    return RX_GO;
}

/* While the receiver has a packet of its message, the sender hands over another one: as fast as
 * the receiver, for as long as the test lets it. */
static void hand_over_more(void)
{
    struct tx_channel *t = &shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST];
    if (flooded < FLOOD) {
        uint64_t taken = atomic_load(&t->index->cells_head) + cells_in_progress;
        atomic_store(&t->index->cells_tail, taken + t->cells.mask + 1);
    }
}

static void send_more(void)
{
    static const _Alignas(8) uint8_t header[FABRIC_HEADER];
    if (flooded < FLOOD) {
        assert_int_equal(
            fabric->send_short(ends[OUT].peer, FABRIC_REQUEST, header, header, sizeof(header)),
            SHORT_SENT);
    }
}

static void send_nothing(void)
{
}

static struct fabric_upcalls flooded_upcalls;
static struct fabric_ops flooded_ops;

static int open_flooded(const struct fabric_setup *setup, struct fabric **f, uint32_t *pid,
                        struct reason *why)
{
    struct fabric_setup other = *setup;
    other.up = setup->nic == (struct nic *)&ends[IN] ? &flooded_upcalls : setup->up;
    return fabric_shm.open(&other, f, pid, why);
}

/* Two ends, of which the receiver's upcalls make the sender send more. */
static void open_flood(const char *way, void (*more)(void))
{
    flooded = 0;
    flood = more;
    flooded_upcalls = upcalls;
    flooded_upcalls.rx_packet = rx_packet_flooded;
    flooded_upcalls.rx_done = rx_done_flooded;
    flooded_ops = fabric_shm;
    flooded_ops.open = open_flooded;
    open_ends(way);
    fabric->close(ends[IN].fabric);
    fabric = &flooded_ops;
    open_end(&ends[IN]);
    connect_end(&ends[OUT]);
}

/* A message that never ends takes no more of a poll than others do. */
static void message_without_end(void **state)
{
    open_flood("cells", hand_over_more);
    cells_in_progress = 0;
    make_plan(&under_way, LONG_MESSAGE, WHOLE, WHOLE);
    under_way.by_packets = true;
    plans[0] = &under_way;
    assert_true(send_plan(FABRIC_REQUEST, 0, 0));
    record_sent()->length = UINT64_MAX;
    while (ends[IN].peer == NULL || flooded == 0) {
        fabric->poll(ends[IN].fabric);
    }
    assert_true(flooded < FLOOD);
    unsigned before = flooded;
    fabric->poll(ends[IN].fabric);
    assert_true(flooded > before && flooded < FLOOD);
    close_both();
    free_plan(&under_way);
}

/* A sender that has left, so it says, and sends on is torn down when it does no more: the polls
 * that see to that come back, and the receiver serves others. */
static void sends_on_after_its_end(void **state)
{
    open_flood("cells", send_more);
    flooded_upcalls.rx_short = rx_short_flooded;
    send_more();
    while (ends[IN].peer == NULL) {
        poll_both();
    }
    struct fabric_peer *dead = ends[IN].peer;
    peer_lost(shm_peer_of(dead), NULL);
    send_more();
    for (unsigned i = 0; i < 10; i++) {
        fabric->poll(ends[IN].fabric);
        assert_true(flooded < FLOOD);
    }
    assert_true(flooded != 0 && ends[IN].peer == dead);
    flood = send_nothing;
    for (unsigned i = 0; i < 1000 && ends[IN].peer != NULL; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_null(ends[IN].peer);
    close_both();
}

/* ---- a sender that dies while a message of it waits ---- */

/* Polls of the receiver alone, whose sender does nothing any more, until it is torn down. */
static void await_teardown(void)
{
    for (unsigned i = 0; i < 1000 && ends[IN].peer != NULL; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_null(ends[IN].peer);
    uint32_t word;
    assert_true(fabric->arm(ends[IN].fabric, DOORBELL_FD, &word)); /* nothing is left to do */
    fabric->disarm(ends[IN].fabric, false);
}

/* One message takes all cells, so that the payload of the one behind it has not begun to come. */
static void make_two(struct plan *first, struct plan *second)
{
    open_both("cells");
    make_plan(first, 4 * PACKET, WHOLE, WHOLE);
    make_plan(second, 2 * PACKET, WHOLE, WHOLE);
    plans[0] = first;
    plans[1] = second;
}

/* Its header waited, then wants the first packet, which the sender has no cell for before it is
 * killed: the receiver is not what it waits for any more. */
static void killed_before_the_first_packet(void **state)
{
    struct plan first, second;
    for (unsigned waits = 0; waits < 3; waits++) {
        make_two(&first, &second);
        second.waits = waits;
        second.wants_first = true;
        uint64_t turn = arrived[FABRIC_REQUEST];
        assert_true(send_plan(FABRIC_REQUEST, 0, turn));
        assert_true(send_plan(FABRIC_REQUEST, 1, turn + 1));
        for (unsigned i = 0; i < 10; i++) {
            fabric->poll(ends[IN].fabric);
        }
        assert_true(first.is_done && !second.is_done && second.waits == 0);
        peer_lost(shm_peer_of(ends[IN].peer), NULL);
        await_teardown();
        assert_int_equal(first.done, FABRIC_OK);
        assert_true(second.is_done);
        assert_int_equal(second.done, FABRIC_UNDELIVERABLE);
        close_both();
        free_plan(&first);
        free_plan(&second);
    }
}

static void take_cells_back(void)
{
    struct channel_index *index = shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST].index;
    atomic_store(&index->cells_tail, shm_peer_of(ends[IN].peer)->rx[FABRIC_REQUEST].cells_taken);
}

static void damage_cells(void)
{
    atomic_store(&shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST].index->cells_tail,
                 UINT64_MAX / 2);
}

static void break_rules(void)
{
    peer_lost(shm_peer_of(ends[IN].peer), "it is a test");
}

static void find_a_hole(void)
{
    atomic_store(&record_sent()->status, FABRIC_SEGV);
}

/* A handler is suspended in a packet that lies in a cell. Its sender then says that it never handed
 * that cell over, or damages its words, or breaks the rules elsewhere, or finds what it has to send
 * next unreadable, and dies: the handler comes
 * to its end, with the packet that it had, and so does the message. */
static void suspended_in_a_packet(void **state)
{
    static void (*const harm[])(void) = {take_cells_back, damage_cells, break_rules, find_a_hole};
    for (unsigned i = 0; i < sizeof(harm) / sizeof(harm[0]); i++) {
        struct plan plan;
        open_both("cells");
        make_plan(&plan, 6 * PACKET, WHOLE, WHOLE);
        plan.by_packets = true;
        plan.suspends = 100;
        plans[0] = &plan;
        assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
        for (unsigned k = 0; k < 10; k++) {
            fabric->poll(ends[IN].fabric);
        }
        assert_true(!plan.is_done && plan.suspends < 100 && plan.seen == 0);
        harm[i]();
        for (unsigned k = 0; k < 10; k++) {
            fabric->poll(ends[IN].fabric);
        }
        assert_true(!plan.is_done && ends[IN].peer != NULL);
        peer_lost(shm_peer_of(ends[IN].peer), NULL);
        await_teardown();
        assert_true(plan.is_done && plan.suspends == 0);
        assert_true(plan.seen == 4 * PACKET); /* those that it had */
        assert_int_equal(plan.done, FABRIC_UNDELIVERABLE);
        close_both();
        free_plan(&plan);
    }
}

/* A sender dies in the middle of a request, with a short one behind it, while a response of it has
 * to wait: its connection outlives the first request, and the second one does not come after it. */
static void nothing_comes_behind_a_gap(void **state)
{
    struct plan torn, behind, waits;
    make_two(&torn, &behind);
    free_plan(&torn);
    free_plan(&behind);
    make_plan(&torn, 8 * PACKET, WHOLE, WHOLE);
    make_plan(&behind, 5, WHOLE, WHOLE);
    make_plan(&waits, 5, WHOLE, WHOLE);
    waits.waits = UINT_MAX;
    plans[2] = &waits;
    uint64_t turn = arrived[FABRIC_REQUEST];
    assert_true(send_plan(FABRIC_REQUEST, 0, turn) && send_plan(FABRIC_REQUEST, 1, turn + 1));
    assert_true(send_plan(FABRIC_RESPONSE, 2, arrived[FABRIC_RESPONSE]));
    for (unsigned i = 0; i < 10; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_true(!torn.is_done && !behind.is_done && waits.waits != UINT_MAX);
    peer_lost(shm_peer_of(ends[IN].peer), NULL);
    for (unsigned i = 0; i < 10; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_true(torn.is_done && !waits.is_done && ends[IN].peer != NULL);
    assert_int_equal(torn.done, FABRIC_UNDELIVERABLE);
    waits.waits = 0;
    await_teardown();
    assert_true(waits.is_done && !behind.is_done);
    assert_int_equal(waits.done, FABRIC_OK);
    close_both();
    free_plan(&torn);
    free_plan(&behind);
    free_plan(&waits);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_by_reference),     cmocka_unit_test(holes_through_cells),
        cmocka_unit_test(lies_about_references),  cmocka_unit_test(message_without_end),
        cmocka_unit_test(sends_on_after_its_end), cmocka_unit_test(killed_before_the_first_packet),
        cmocka_unit_test(suspended_in_a_packet),  cmocka_unit_test(nothing_comes_behind_a_gap),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
