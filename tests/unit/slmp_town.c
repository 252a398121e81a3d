/* SPDX-License-Identifier: BSD-3-Clause */
/* A server and its clients in virtual time; see slmp_town.h. */
#include "slmp_town.h"

struct server server;
struct client *clients[MOST];
unsigned count;
static uint8_t body[BODY];

/* ---- Applications ---- */

static bool is_server(const void *context)
{
    return context == &server;
}

static void on_opened(void *context, struct slmp_peer *p, const struct slmp_address *a,
                      uint64_t incarnation)
{
    if (is_server(context)) {
        server.opened++;
    } else {
        ((struct client *)context)->opened++;
    }
}

static void on_closed(void *context, struct slmp_peer *p, const struct slmp_address *a)
{
    if (is_server(context)) {
        server.closed++;
    } else {
        ((struct client *)context)->closed++;
    }
}

static enum slmp_step on_begin(void *context, struct slmp_incoming *in, const void *first,
                               size_t length)
{
    return SLMP_GO;
}

static enum slmp_step on_data(void *context, struct slmp_incoming *in, uint64_t offset,
                              const void *bytes, size_t length)
{
    return SLMP_GO;
}

static void on_done(void *context, struct slmp_incoming *in, enum slmp_status status)
{
    if (is_server(context)) {
        server.received += status == SLMP_OK;
        server.torn += status != SLMP_OK;
    }
}

static void on_sent(void *context, struct slmp_message *m, enum slmp_status status)
{
    struct client *c = context;
    *(status == SLMP_OK ? is_server(c) ? &server.sent : &c->sent
      : is_server(c)    ? &server.undeliverable
                        : &c->undeliverable) += 1;
}

struct slmp_upcalls upcalls(void *context)
{
    return (struct slmp_upcalls){.context = context,
                                 .opened = on_opened,
                                 .closed = on_closed,
                                 .begin = on_begin,
                                 .data = on_data,
                                 .done = on_done,
                                 .sent = on_sent};
}

/* ---- The network ---- */

static size_t flatten(const struct slmp_packet *p, uint8_t *bytes)
{
    size_t length = p->header_length;
    memcpy(bytes, p->header, length);
    for (unsigned i = 0; i < p->parts; i++) {
        memcpy(bytes + length, p->part[i].iov_base, p->part[i].iov_len);
        length += p->part[i].iov_len;
    }
    return length;
}

static struct client *at(const struct slmp_address *a)
{
    for (unsigned i = 0; i < count; i++) {
        if (clients[i]->at.ip == a->ip && clients[i]->at.port == a->port) {
            return clients[i];
        }
    }
    return NULL;
}

static bool lives(const struct client *c)
{
    return c != NULL && c->engine != NULL && !c->stopped;
}

bool server_works(void)
{
    uint8_t bytes[SLMP_PACKET_MAX];
    struct slmp_packet p;
    struct slmp_address home = {HOME, PORT};
    bool any = false;
    if (slmp_deadline(server.engine) <= server.now) {
        slmp_advance(server.engine, server.now);
    }
    while (slmp_output(server.engine, server.now, &p)) {
        size_t length = flatten(&p, bytes);
        struct client *c = at(&p.to);
        any = true;
        if (lives(c)) {
            slmp_input(c->engine, server.now, &home, bytes, length);
        }
    }
    return any;
}

bool client_works(struct client *c)
{
    uint8_t bytes[SLMP_PACKET_MAX];
    struct slmp_packet p;
    bool any = false;
    if (!lives(c)) {
        return false;
    }
    if (slmp_deadline(c->engine) <= server.now) {
        slmp_advance(c->engine, server.now);
    }
    while (slmp_output(c->engine, server.now, &p)) {
        size_t length = flatten(&p, bytes);
        any = true;
        if (server.lost == NULL || !server.lost(bytes, length)) {
            slmp_input(server.engine, server.now, &c->at, bytes, length);
        }
    }
    return any;
}

static void settle(void)
{
    bool any = true;
    for (unsigned turn = 0; any; turn++) {
        assert_true(turn < 1000); /* an engine that is due and does nothing */
        any = server_works();
        for (unsigned i = 0; i < count; i++) {
            any |= client_works(clients[i]);
        }
    }
}

static int64_t next_time(void)
{
    int64_t t = slmp_deadline(server.engine);
    for (unsigned i = 0; i < count; i++) {
        int64_t due = lives(clients[i]) ? slmp_deadline(clients[i]->engine) : SLMP_NEVER;
        t = due < t ? due : t;
    }
    return t;
}

void pass(int64_t ns)
{
    int64_t until = server.now + ns;
    settle();
    for (int64_t t; (t = next_time()) <= until; settle()) {
        server.now = t > server.now ? t : server.now;
    }
    server.now = until;
}

/* ---- Life ---- */

struct slmp_config config(unsigned peers)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.ordered = true;
    c.rto_initial = 10 * MS;
    c.packet_size = 1000;
    c.window = 16;
    c.plain_window = 16;
    c.peers_max = peers;
    c.incarnation = 1;
    c.secret = 7;
    return c;
}

void begin_with(const struct slmp_config *c, const struct slmp_upcalls *up)
{
    memset(&server, 0, sizeof(server));
    server.now = SECOND;
    server.engine = slmp_open(c, up, &(struct reason){""});
    assert_non_null(server.engine);
}

void begin(unsigned peers)
{
    struct slmp_config c = config(peers);
    struct slmp_upcalls up = upcalls(&server);
    begin_with(&c, &up);
}

struct client *come(uint32_t ip, uint16_t port)
{
    static uint64_t incarnations = 1;
    struct slmp_config c = config(4);
    struct client *new = calloc(1, sizeof(*new));
    struct slmp_upcalls up = upcalls(new);
    assert_true(new != NULL &&count < MOST);
    new->at = (struct slmp_address){ip, port};
    c.incarnation = ++incarnations;
    new->engine = slmp_open(&c, &up, &(struct reason){""});
    assert_non_null(new->engine);
    return clients[count++] = new;
}

void forget(struct client *c)
{
    unsigned i = 0;
    while (clients[i] != c) {
        i++;
    }
    clients[i] = clients[--count];
    slmp_close(c->engine);
    free(c);
}

void end(void)
{
    while (count > 0) {
        forget(clients[0]);
    }
    slmp_close(server.engine);
}

void say(struct client *c, size_t length)
{
    c->message = (struct slmp_message){.to = {HOME, PORT}, .body = body, .body_length = length};
    assert_int_equal(slmp_send(c->engine, server.now, &c->message), 0);
}

/* Sends a message and waits for its acknowledgement so long at most. */
bool says(struct client *c, size_t length, int64_t longest)
{
    unsigned before = c->sent;
    say(c, length);
    for (int64_t until = server.now + longest; server.now < until && c->sent == before;) {
        pass(10 * MS);
    }
    return c->sent == before + 1;
}

bool has_session(const struct client *c)
{
    return slmp_peer_info(server.engine, &c->at).session;
}

/* Sessions of clients at an address. */
unsigned sessions(uint32_t ip)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        n += clients[i]->at.ip == ip && has_session(clients[i]);
    }
    return n;
}

/* Clients of one address come, each a while after the other, and stay. */
void many_come(uint32_t ip, unsigned many, int64_t between)
{
    for (unsigned i = 0; i < many; i++) {
        static uint16_t port;
        struct client *c = come(ip, ++port);
        if (!says(c, 16, SECOND)) {
            fail_msg("client %u of %u is not let in", i, many);
        }
        pass(between);
    }
}

void send_to(struct client *c)
{
    server.message = (struct slmp_message){.to = c->at, .body = body, .body_length = 16};
    assert_int_equal(slmp_send(server.engine, server.now, &server.message), 0);
}
