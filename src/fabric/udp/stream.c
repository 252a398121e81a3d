/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: messages of a channel are put together side by side, so that a lost packet holds up its
 * own message, and not those behind it.
 *
 *      first stream     message in progress, complete ones behind it
 *      another stream   a message that begins while the one before has not come whole, or that was
 *                       behind one in progress that has to wait (udp_stream_split())
 *
 * While no packet is late the channel has only the first stream, and works like one without
 * streams.
 *
 * Invariants:
 *   - The streams of a channel are in the order of their messages; the messages of one stream are
 *     taken one after the other. Only the last message of a stream may be incomplete. A new message
 *     joins the last stream only if that has no incomplete message.
 *   - A message begins (rx_header) when the ones before it have been matched, and ends (rx_done)
 *     when they have ended: so only the first stream ends any.
 *   - The pieces staged are bounded: STAGED_MOST in the first stream, STAGED_BEHIND in each other
 *     one. Each stream has a bound of its own, so that pieces that wait in one do not keep out the
 *     packets that the first one waits for. If no stream is free the next message stays in the
 *     engine.
 *   - There are UDP_STREAMS at most. Besides its pieces, a stream with a message needs the NIC's
 *     object for that, some 5 KiB with handlers, and memory to put a packet together: for eight of
 *     them 80 KiB while packets are late. Otherwise the streams of a peer take 3 KiB.
 *   - The channel lends its own rx to the first stream that needs one; further streams get one from
 *     the NIC while their message is in progress. So an idle channel has no memory besides its
 *     structs.
 */
#include "fabric/udp/stream.h"

#include "fabric/udp/stage.h"

#include <stdlib.h>

static void stream_init(struct udp_stream *l, const struct rx_source *source,
                        enum fabric_class class)
{
    *l = (struct udp_stream){.class = (uint8_t) class, .m.source = source};
    list_init(&l->pieces);
    list_init(&l->kept);
}

void udp_channel_init(struct udp_channel *c, const struct rx_source *source,
                      enum fabric_class class)
{
    list_init(&c->streams);
    list_init(&c->spare);
    for (unsigned i = 0; i < UDP_STREAMS; i++) {
        stream_init(&c->stream[i], source, class);
        list_push_back(i == 0 ? &c->streams : &c->spare, &c->stream[i].link);
    }
}

static void free_buffers(struct udp_fabric *f, struct udp_stream *l)
{
    if (l->gather != NULL) {
        udp_memory_drop(f, l->gather);
        l->gather = NULL;
    }
    free(l->keeper);
    l->keeper = NULL;
}

void udp_channel_free(struct udp_fabric *f, struct udp_channel *c)
{
    for (unsigned i = 0; i < UDP_STREAMS; i++) {
        struct udp_stream *l = &c->stream[i];
        udp_stream_clear(f, l);
        for (struct udp_kept *k; (k = LIST_POP(struct udp_kept, &l->kept, link)) != NULL; free(k)) {
            udp_memory_drop(f, k->memory);
        }
        free_buffers(f, l);
    }
}

struct udp_stream *udp_stream_begin(struct udp_channel *c)
{
    if (udp_stream_last(c)->in.open == NULL) {
        return udp_stream_last(c);
    }
    struct udp_stream *l = LIST_POP(struct udp_stream, &c->spare, link);
    if (l != NULL) {
        list_push_back(&c->streams, &l->link);
    }
    return l;
}

/* Finds the first piece of the message behind the one in progress, and counts the pieces before it.
 * Returns the head of the list if it has not come. */
static struct list *next_message(struct udp_stream *l, unsigned *before)
{
    struct list *item = l->pieces.next;
    for (*before = 0; item != &l->pieces; item = item->next, ++*before) {
        if (container_of(item, struct udp_piece, link)->first) {
            break;
        }
    }
    return item;
}

bool udp_stream_split(struct udp_channel *c, struct udp_stream *l)
{
    unsigned before;
    struct list *item = next_message(l, &before);
    bool begun = l->in.open != NULL &&
                 (l->in.fresh || l->in.row != NULL); /* and none of its pieces was staged */
    if (item == &l->pieces && !begun) {
        return true;
    }
    struct udp_stream *behind = LIST_POP(struct udp_stream, &c->spare, link);
    if (behind == NULL) {
        return false;
    }
    list_insert_after(&l->link, &behind->link);
    if (item != &l->pieces) {
        list_splice_back(&behind->pieces, item, l->pieces.prev);
    }
    behind->count = l->count - before;
    l->count = before;
    behind->in = l->in;
    l->in = (struct udp_incoming){0};
    if (behind->in.open != NULL) {
        behind->in.open->user = behind;
    }
    return true;
}

bool udp_stream_retire(struct udp_fabric *f, struct udp_channel *c)
{
    struct udp_stream *l = udp_stream_first(c);
    if (udp_stream_alone(c) || l->m.phase != RX_IDLE || l->in.open != NULL ||
        !list_empty(&l->pieces)) {
        return false;
    }
    list_remove(&l->link);
    free_buffers(f, l);
    stream_init(l, l->m.source, (enum fabric_class)l->class);
    list_push_back(&c->spare, &l->link);
    return true;
}
