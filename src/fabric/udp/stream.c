/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: messages of a channel that are under way side by side, so that a packet that was lost
 * holds up its own message and not those behind it.
 *
 *      first stream     message in progress, complete ones behind it
 *      another stream   a message that begins while the one before is not here whole, or that was
 *                       behind one in progress that has to wait (udp_stream_split)
 *
 * While nothing is late there is the first stream alone, and messages go through it as through a
 * channel that knows no streams.
 *
 * Invariants:
 *   - The streams of a channel stand in the order of their messages; messages of one stream are
 *     taken one after the other. Only the last message of a stream may be open, and only a message
 *     that begins when the last stream has none open joins that stream.
 *   - A message begins (rx_header) when the ones before it have been matched, and ends (rx_done)
 *     when they have ended: so only the first stream ends any.
 *   - The pieces staged are bounded: STAGED_MOST in the first stream, STAGED_BEHIND in each other
 *     one. Each stream has a bound of its own, so that pieces that wait in one do not keep out the
 *     packets that the first one waits for. Without a stream to spare the next message stays in
 *     the engine.
 *   - There are UDP_STREAMS at most. Besides its pieces a message costs its stream the NIC's side
 *     of it, some 5 KiB with handlers, and a packet that is put together: eight of them 80 KiB
 *     while something is late. While nothing is, the streams of a peer take 3 KiB.
 *   - The rx of the channel is lent to the first who asks for one; others get one of the NIC's for
 *     as long as their message is in progress. So a channel that waits for nothing has no more
 *     memory than the structs here.
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

/* The first piece of the message behind the one in progress, and how many pieces are before it; the
 * head of the list if none has come. */
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
                 (l->in.fresh || l->in.row != NULL); /* and none of its pieces is here */
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
