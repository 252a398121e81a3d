/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One SLMP engine, the server, and many others, each at an address of its own, that come, are
 * stopped and die, in virtual time on a network without faults.
 */
#ifndef TESTS_UNIT_SLMP_TOWN_H
#define TESTS_UNIT_SLMP_TOWN_H

#include "fabric/slmp/slmp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL
#define SECOND 1000000000LL

enum { MOST = 2048, BODY = 16000, FIRST = 0x0a000000, HOME = 0x7f000001, PORT = 9000 };

struct client {
    struct slmp *engine;
    struct slmp_address at;
    bool stopped;
    unsigned opened, closed, sent, undeliverable;
    struct slmp_message message;
};

struct server {
    struct slmp *engine;
    int64_t now;
    unsigned opened, closed, torn, received;
    unsigned sent, undeliverable;
    struct slmp_message message;
    /* Says which packets of clients do not arrive; NULL: all do. */
    bool (*lost)(const uint8_t *, size_t);
};

extern struct server server;
extern struct client *clients[MOST];
extern unsigned count;

/* begin() opens a server that knows so many peers; begin_with() one of another configuration. */
struct slmp_config config(unsigned peers);
struct slmp_upcalls upcalls(void *context);
void begin(unsigned peers);
void begin_with(const struct slmp_config *, const struct slmp_upcalls *);
void end(void);

/* come() makes a client, forget() kills it: nobody is told. */
struct client *come(uint32_t ip, uint16_t port);
void forget(struct client *);
/* many_come() has clients of one address come, each a while after the other, send a message and
 * stay. */
void many_come(uint32_t ip, unsigned many, int64_t between);

/* say() sends a message; says() also waits for its acknowledgement, so long at most. */
void say(struct client *, size_t length);
bool says(struct client *, size_t length, int64_t longest);
void send_to(struct client *); /* from the server */

/* pass() lets time pass; the others do what one of them has to do now, true if that was anything.
 */
void pass(int64_t ns);
bool server_works(void);
bool client_works(struct client *);

bool has_session(const struct client *);
unsigned sessions(uint32_t ip); /* of clients at an address */

#endif
