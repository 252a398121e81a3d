/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of the rules of an interface: one at a time. A change removes all contexts that have
 * left, if any have; else it adds those of one user, or replaces them: of the one who has waited
 * longest.
 *
 *      ASK, RULES ──► read, limits, conditions of the policy ──► kernel ──► GRANT, DONE
 *                              └──────────── why not ──────────────┴─────► REFUSED
 */
#include "raw/serve/owner.h"

#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Answers ---- */

static void settle(struct owner_guest *g)
{
    free(g->text);
    g->text = NULL;
    g->waiting = false;
}

/* A user who is refused a context is shown out; one who is refused other rules keeps his. */
static void refuse(struct owner *o, struct owner_guest *g, int error, const char *why)
{
    if (g->context < 0) {
        owner_leave(o, g, SERVE_REFUSED, error, why);
        return;
    }
    struct serve_head h = {.kind = SERVE_REFUSED, .error = error};
    settle(g);
    owner_say_no(o, &g->peer, why);
    if (serve_send(g->fd, &h, why, -1) != 0) {
        owner_leave(o, g, 0, 0, "");
    }
}

static void grant(struct owner *o, unsigned number)
{
    struct owner_context *c = &o->context[number];
    struct owner_guest *g = &o->guest[c->guest];
    const struct policy_line *line = &o->o.policy->of[c->part.line];
    struct serve_head h = {.kind = SERVE_GRANT,
                           .version = SERVE_VERSION,
                           .ring = c->ring.slots,
                           .share = c->share,
                           .priority = c->priority,
                           .frame_most = c->ring.most,
                           .sends = line->sends};
    char who[64];
    snprintf(h.iface, sizeof(h.iface), "%s", o->o.iface);
    settle(g);
    owner_say(o, "context %u: %s, %u sets, ring %u, share %u, by line %u of the policy", number,
              owner_who(&g->peer, who), c->part.sets, c->ring.slots, c->share, line->line);
    if (serve_send(g->fd, &h, "", c->ring.fd) != 0) {
        owner_leave(o, g, 0, 0, "");
    }
}

/* ---- What is asked for ---- */

static unsigned contexts_of(const struct owner *o, const struct policy_peer *peer, unsigned line)
{
    unsigned n = 0;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        const struct owner_context *c = &o->context[i];
        n += c->state != OWNER_FREE && c->guest >= 0 && c->peer.uid == peer->uid &&
             c->part.line == line;
    }
    return n;
}

static int free_context(const struct owner *o)
{
    for (unsigned i = 0; i < o->o.contexts; i++) {
        if (o->context[i].state == OWNER_FREE) {
            return (int)i;
        }
    }
    return -1;
}

/* Whether a line lets a user have what he asks for; its conditions then are added to his rules. */
static int try_line(struct owner *o, const struct owner_guest *g, struct table_part *part,
                    char error[RAW_ERROR])
{
    const struct policy_line *line = &o->o.policy->of[part->line];
    int rc = table_read(part, o->o.policy, g->text, g->length, &o->room, error);
    if (rc == 0 && g->asked.ring > line->ring) {
        snprintf(error, RAW_ERROR,
                 "a ring of %u slots is asked for, line %u of the policy allows %u", g->asked.ring,
                 line->line, line->ring);
        rc = -ENOSPC;
    } else if (rc == 0 && contexts_of(o, &g->peer, part->line) >= line->contexts) {
        snprintf(error, RAW_ERROR, "user %u has all contexts that line %u of the policy allows, %u",
                 (unsigned)g->peer.uid, line->line, line->contexts);
        rc = -ENOSPC;
    }
    if (rc != 0) {
        table_free(part);
    }
    return rc;
}

/* Finds the first line of the policy that allows this. 0, or why not: what the first line about him
 * says that allows such frames, but not so much; else what the first about him says. */
static int find_line(struct owner *o, const struct owner_guest *g, struct table_part *part,
                     char error[RAW_ERROR])
{
    int line = -1, rc = -EACCES;
    bool has_error = false;
    snprintf(error, RAW_ERROR, "the policy of %s has no line for user %u", o->o.iface,
             (unsigned)g->peer.uid);
    while ((line = policy_find(o->o.policy, (unsigned)(line + 1), &g->peer)) >= 0) {
        char why[RAW_ERROR];
        part->line = (unsigned)line;
        int now = try_line(o, g, part, why);
        if (now == 0) {
            return 0;
        }
        if (!has_error || (rc == -EACCES && now != -EACCES)) {
            memcpy(error, why, RAW_ERROR);
            rc = now;
            has_error = true;
        }
    }
    return rc;
}

static bool make_ring(struct owner *o, struct owner_context *c, uint32_t slots)
{
    bool right = slots >= 2 && (slots & (slots - 1)) == 0;
    return right && ring_make(&c->ring, slots, o->o.source->frame_most) == 0;
}

/* A new context; its ring is there before its first frame. */
static int begin_context(struct owner *o, struct owner_guest *g, char error[RAW_ERROR])
{
    struct table_part part = {0};
    int number = free_context(o);
    int rc = find_line(o, g, &part, error);
    if (rc == 0 && number < 0) {
        snprintf(error, RAW_ERROR, "all %u contexts of %s are taken: ask when others have gone",
                 o->o.contexts, o->o.iface);
        rc = -ENOSPC;
    }
    if (rc != 0) {
        table_free(&part);
        return rc;
    }
    const struct policy_line *line = &o->o.policy->of[part.line];
    struct owner_context *c = &o->context[number];
    uint32_t slots = g->asked.ring != 0 ? g->asked.ring : line->ring;
    part.context = (unsigned)number;
    if (!make_ring(o, c, slots)) {
        snprintf(error, RAW_ERROR, "there is no ring of %u slots: a power of two, or no memory",
                 slots);
        table_free(&part);
        return -EINVAL;
    }
    c->part = part;
    c->text = g->text;
    g->text = NULL;
    c->share = g->asked.share != 0 && g->asked.share < line->share ? g->asked.share : line->share;
    c->priority = g->asked.priority > line->priority ? g->asked.priority : line->priority;
    c->peer = g->peer;
    c->guest = (int)(g - o->guest);
    c->order = g->order;
    c->counts = (struct owner_counts){0};
    c->lost_before =
        o->o.source->ops->lost != NULL ? o->o.source->ops->lost(o->o.source, (unsigned)number) : 0;
    c->state = OWNER_COMING;
    g->context = number;
    o->candidate = number;
    o->replaces = false;
    return 0;
}

static int begin_rules(struct owner *o, struct owner_guest *g, char error[RAW_ERROR])
{
    struct owner_context *c = &o->context[g->context];
    struct table_part part = {.line = c->part.line, .context = (unsigned)g->context};
    int rc = table_read(&part, o->o.policy, g->text, g->length, &o->room, error);
    if (rc != 0) {
        return rc;
    }
    c->next = part;
    c->next_text = g->text;
    g->text = NULL;
    o->candidate = g->context;
    o->replaces = true;
    return 0;
}

/* ---- One change ---- */

static bool stays(const struct owner *o, unsigned i)
{
    const struct owner_context *c = &o->context[i];
    return c->state == OWNER_LIVE || c->state == OWNER_COMING;
}

/* The contexts that are to have rules, those who came first in front. */
static unsigned list_all(struct owner *o, unsigned list[RAW_CONTEXTS])
{
    unsigned n = 0;
    o->leaving = 0;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        o->leaving |= o->context[i].state == OWNER_LEAVING ? 1u << i : 0;
        if (stays(o, i)) {
            unsigned at = n++;
            for (; at > 0 && o->context[list[at - 1]].order > o->context[i].order; at--) {
                list[at] = list[at - 1];
            }
            list[at] = i;
        }
    }
    return n;
}

/* 1: the rules are in place; 0: the installer has been asked; -errno. */
static int submit(struct owner *o, char error[RAW_ERROR])
{
    unsigned list[RAW_CONTEXTS], n = list_all(o, list);
    struct table_part part[RAW_CONTEXTS];
    struct installer_context ask[RAW_CONTEXTS];
    struct raw_wanted wanted;
    for (unsigned i = 0; i < n; i++) {
        const struct owner_context *c = &o->context[list[i]];
        bool next = o->replaces && (int)list[i] == o->candidate;
        part[i] = next ? c->next : c->part;
        ask[i] = (struct installer_context){
            .line = part[i].line, .context = list[i], .text = next ? c->next_text : c->text};
    }
    int rc = table_join(&wanted, &o->rules, part, n, o->o.contexts, error);
    if (rc != 0) {
        return rc;
    }
    if (o->o.installer != NULL) {
        rc = installer_ask(o->o.installer, ask, n);
        if (rc != 0) {
            snprintf(error, RAW_ERROR, "the process that puts rules into the kernel has ended");
        }
        return rc;
    }
    rc = o->o.source->ops->rules(o->o.source, &wanted, error);
    return rc == 0 ? 1 : -EIO;
}

static void empty(struct owner_context *c)
{
    struct owner_context none = {.guest = -1, .ring = {.fd = -1}};
    ring_close(&c->ring);
    table_free(&c->part);
    table_free(&c->next);
    free(c->text);
    free(c->next_text);
    *c = none;
}

static void order_turns(struct owner *o)
{
    for (unsigned i = 0; i < o->o.contexts; i++) {
        unsigned at = i;
        for (; at > 0 && o->context[o->turns[at - 1]].priority > o->context[i].priority; at--) {
            o->turns[at] = o->turns[at - 1];
        }
        o->turns[at] = i;
    }
}

static void commit(struct owner *o)
{
    for (unsigned i = 0; i < o->o.contexts; i++) {
        if ((o->leaving >> i & 1) != 0) {
            owner_report(o, i);
            empty(&o->context[i]);
        }
    }
    if (o->candidate < 0) {
        return;
    }
    struct owner_context *c = &o->context[o->candidate];
    if (o->replaces) {
        table_free(&c->part);
        free(c->text);
        c->part = c->next;
        c->text = c->next_text;
        c->next = (struct table_part){0};
        c->next_text = NULL;
        if (c->guest >= 0) {
            static const struct serve_head done = {.kind = SERVE_DONE};
            struct owner_guest *g = &o->guest[c->guest];
            settle(g);
            owner_say(o, "context %d: other rules, %u sets", o->candidate, c->part.sets);
            if (serve_send(g->fd, &done, "", -1) != 0) {
                owner_leave(o, g, 0, 0, "");
            }
        }
        return;
    }
    c->state = c->guest >= 0 ? OWNER_LIVE : OWNER_LEAVING;
    c->since = clock_ns();
    order_turns(o);
    if (c->guest >= 0) {
        grant(o, (unsigned)o->candidate);
    }
}

/* The kernel, or the table, does not take the candidate. */
static void take_back(struct owner *o, int error, const char *why)
{
    struct owner_context *c = &o->context[o->candidate];
    struct owner_guest *g = c->guest >= 0 ? &o->guest[c->guest] : NULL;
    if (o->replaces) {
        table_free(&c->next);
        free(c->next_text);
        c->next_text = NULL;
    } else {
        if (g != NULL) {
            g->context = -1;
        }
        empty(c);
    }
    if (g != NULL) {
        refuse(o, g, error, why);
    }
}

static struct owner_guest *who_waits(struct owner *o)
{
    struct owner_guest *first = NULL;
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        struct owner_guest *g = &o->guest[i];
        if (g->fd >= 0 && g->waiting && (first == NULL || g->order < first->order)) {
            first = g;
        }
    }
    return first;
}

/* Whether there is a change to be made; its candidate then is ready. */
static bool begin(struct owner *o)
{
    char error[RAW_ERROR] = "";
    struct owner_guest *g;
    bool leaving = false;
    o->candidate = -1;
    o->replaces = false;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        leaving = leaving || o->context[i].state == OWNER_LEAVING;
    }
    /* who leaves makes room for who comes */
    while (!leaving && (g = who_waits(o)) != NULL) {
        int rc = g->context < 0 ? begin_context(o, g, error) : begin_rules(o, g, error);
        if (rc == 0) {
            return true;
        }
        refuse(o, g, rc, error);
    }
    return leaving;
}

int owner_change(struct owner *o)
{
    char error[RAW_ERROR] = "";
    int rc = 0;
    if (o->o.installer != NULL) { /* an answer, or it has gone */
        rc = installer_answer(o->o.installer, error);
    }
    if (o->busy || rc == -EPIPE) {
        if (rc == 0) {
            return 0;
        }
    } else if (begin(o)) {
        rc = submit(o, error);
        o->busy = rc == 0;
        if (o->busy) {
            return 0;
        }
    } else {
        return 0;
    }
    o->busy = false;
    o->news = true; /* the next one may wait */
    if (rc == 1) {
        commit(o);
    } else if (o->candidate >= 0 && rc != -EPIPE) {
        take_back(o, rc, error);
    } else {
        snprintf(o->error, sizeof(o->error), "%s", error);
        return rc;
    }
    return 0;
}
