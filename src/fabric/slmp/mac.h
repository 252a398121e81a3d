/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tags (MACs) by the job key: only holders of the key can make and check the tag of a packet. This
 * file knows no packets and sessions; auth.c does.
 *
 *   job key ──HMAC──► key of greetings    tag = HMAC-SHA-256, its first 16 bytes
 *           ──HMAC──► key of sessions ──HMAC(names of one session)──► a key for each direction:
 *                                            tag = Poly1305 with a key for this number,
 *                                                  AES-256(number, 0), AES-256(number, 1)
 *
 * Packets of a session have numbers that are never used twice, which Poly1305 needs; greetings have
 * none, and are few (RFC 8439 makes Poly1305 keys from numbers in the same way, with ChaCha20). Of
 * the MACs in libraries this one was the fastest, for small packets and for large ones:
 * docs/dependencies.md has the figures.
 *
 * libcrypto is loaded when the first key is used: a process without a key needs none.
 */
#ifndef FABRIC_SLMP_MAC_H
#define FABRIC_SLMP_MAC_H

#include "key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { SLMP_TAG = 16 };

struct slmp_mac;         /* of one engine; only one thread at a time may use it */
struct slmp_session_key; /* of one direction of a session */

/* slmp_mac_open() makes the state that an engine needs for a job key, which it copies. NULL if
 * memory is short or libcrypto is missing; `why` says which. */
struct slmp_mac *slmp_mac_open(const struct slmp_key *, struct reason *why);
void slmp_mac_close(struct slmp_mac *);

/* slmp_mac_greeting() makes the tag of a packet outside of sessions; false if libcrypto fails. */
bool slmp_mac_greeting(struct slmp_mac *, const void *bytes, size_t length, uint8_t tag[SLMP_TAG]);

/* slmp_mac_session_key() makes the key of one direction of a session. `names` are bytes that no
 * other direction or session has. NULL if memory is short. */
struct slmp_session_key *slmp_mac_session_key(struct slmp_mac *, const void *names, size_t length);
void slmp_session_key_free(struct slmp_session_key *);

/* slmp_mac_tag() makes the tag of a packet in `count` parts. Each number must be used for one
 * packet only; consecutive numbers are the fastest. */
bool slmp_mac_tag(struct slmp_mac *, struct slmp_session_key *, uint64_t number,
                  const struct iovec *part, unsigned count, uint8_t tag[SLMP_TAG]);

/* slmp_tag_equal() compares tags in the same time wherever they differ. */
bool slmp_tag_equal(const uint8_t a[SLMP_TAG], const uint8_t b[SLMP_TAG]);

#endif
