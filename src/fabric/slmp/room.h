/* SPDX-License-Identifier: BSD-3-Clause */
/* Places and memory, and who gives way when they are short (room.c). */
#ifndef FABRIC_SLMP_ROOM_H
#define FABRIC_SLMP_ROOM_H

#include "engine.h"

/* slmp_room_place() finds a place for a peer: of whom that is, NULL for who has not
 * proved his address. slmp_room_admit() says whether a session may be his. Both may end and free
 * other peers. slmp_room_self is for what we wish ourselves. */
bool slmp_room_place(struct slmp *, const struct slmp_whose *);
bool slmp_room_admit(struct slmp *, const struct slmp_whose *);
extern const struct slmp_whose slmp_room_self;
struct slmp_whose slmp_room_whose(struct slmp *, const struct slmp_address *);
/* A session begins (false: no memory) or has ended; a packet of it has come. */
bool slmp_room_join(struct slmp_peer *, const struct slmp_whose *);
void slmp_room_leave(struct slmp_peer *);
static inline void slmp_room_heard(struct slmp_peer *p)
{
    p->heard = p->engine->now;
    p->asked = p->absent = false;
}
/* slmp_room_spares() says that one who has not answered stays known as absent: it was asked for
 * the sake of room only. */
bool slmp_room_spares(struct slmp_peer *);
/* Memory for packets of a session; false: its share is used up. */
bool slmp_room_hold(struct slmp_peer *, size_t);
void slmp_room_release(struct slmp_peer *, size_t);

#endif
