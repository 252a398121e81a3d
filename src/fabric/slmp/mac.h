/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tags by the job key: whoever holds the key can make and check the tag of a
 * packet, and nobody else can. No packets here and no sessions; auth.c has those.
 *
 *   job key ──HMAC──► key of greetings    tag = HMAC-SHA-256, its first 16 bytes
 *           ──HMAC──► key of sessions ──HMAC(names of one session)──► one key a direction:
 *                                            tag = Poly1305 with a key for this number,
 *                                                  AES-256(number, 0), AES-256(number, 1)
 *
 * Greetings are few and have no numbers that never come twice; packets of a session have
 * (RFC 8439 makes Poly1305's key from a number in the same way, with ChaCha20). Of what
 * libraries offer, this was the fastest for small packets and for large ones:
 * docs/dependencies.md has the figures.
 *
 * libcrypto is loaded when the first key is used: a process without one does without it.
 */
#ifndef FABRIC_SLMP_MAC_H
#define FABRIC_SLMP_MAC_H

#include "key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { SLMP_TAG = 16 };

struct slmp_mac;         /* of one engine, and used by no two threads at once */
struct slmp_session_key; /* one direction of one session */

/* slmp_mac_open() makes what an engine needs of a job key, which is copied. NULL
 * without libcrypto, which `why` says, or memory. */
struct slmp_mac *slmp_mac_open(const struct slmp_key *, struct reason *why);
void slmp_mac_close(struct slmp_mac *);

/* slmp_mac_greeting() makes the tag of bytes that are sent outside of a session; false
 * if libcrypto could not. */
bool slmp_mac_greeting(struct slmp_mac *, const void *bytes, size_t length, uint8_t tag[SLMP_TAG]);

/* slmp_mac_session_key() makes the key of one direction of the session that `names` names, as
 * no other session does. NULL without memory. */
struct slmp_session_key *slmp_mac_session_key(struct slmp_mac *, const void *names, size_t length);
void slmp_session_key_free(struct slmp_session_key *);

/* slmp_mac_tag() makes the tag of a packet in `count` parts. A number is used for one
 * packet only; numbers that follow each other are the fastest. */
bool slmp_mac_tag(struct slmp_mac *, struct slmp_session_key *, uint64_t number,
                  const struct iovec *part, unsigned count, uint8_t tag[SLMP_TAG]);

/* slmp_tag_equal() takes the same time wherever the first difference is. */
bool slmp_tag_equal(const uint8_t a[SLMP_TAG], const uint8_t b[SLMP_TAG]);

#endif
