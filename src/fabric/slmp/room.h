/* SPDX-License-Identifier: BSD-3-Clause */
/* Places and memory, and which sessions give way when these are short (room.c). */
#ifndef FABRIC_SLMP_ROOM_H
#define FABRIC_SLMP_ROOM_H

#include "engine.h"

/* slmp_room_place() finds a place for a peer of this source; NULL: the peer has not proved its
 * address. slmp_room_admit() says whether a peer of this source may have a session. Both may end
 * sessions, and free other peers. slmp_room_self is the source of peers that this side wants to
 * reach. */
bool slmp_room_place(struct slmp *, const struct slmp_whose *);
bool slmp_room_admit(struct slmp *, const struct slmp_whose *);
extern const struct slmp_whose slmp_room_self;
struct slmp_whose slmp_room_whose(struct slmp *, const struct slmp_address *);
/* slmp_room_join() begins a session (false: memory is short), slmp_room_leave() ends it;
 * slmp_room_heard() notes a packet of it. */
bool slmp_room_join(struct slmp_peer *, const struct slmp_whose *);
void slmp_room_leave(struct slmp_peer *);
static inline void slmp_room_heard(struct slmp_peer *p)
{
    p->heard = p->engine->now;
    p->asked = p->absent = false;
}
/* slmp_room_spares() says whether a peer that has not answered stays known as absent, since it was
 * asked only because room is short. */
bool slmp_room_spares(struct slmp_peer *);
/* slmp_room_hold() takes memory for a packet of a session (false: its share is used up),
 * slmp_room_release() gives it back. */
bool slmp_room_hold(struct slmp_peer *, size_t);
void slmp_room_release(struct slmp_peer *, size_t);

#endif
