/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints one look; see print.h. */
#include "print.h"
#include "frames.h"
#include "handlers.h"
#include "pinwheel/util/json.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const kind_names[STATS_KINDS] = {"matching, logical", "non-matching, logical",
                                                    "matching, physical", "non-matching, physical"};
static const char *const movement_names[STATS_MOVEMENTS] = {"puts", "gets", "atomics", "fetches"};
static const char *const register_names[PTL_SR_LAST] = {
    [PTL_SR_DROP_COUNT] = "dropped",
    [PTL_SR_PERMISSION_VIOLATIONS] = "permission_violations",
    [PTL_SR_OPERATION_VIOLATIONS] = "operation_violations"};

uint64_t nic_sum(const uint64_t *numbers, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += numbers[i];
    }
    return total;
}

uint64_t nic_dropped(const struct nic_stats *b)
{
    uint64_t total = 0;
    for (unsigned k = 0; k < STATS_KINDS; k++) {
        total += nic_sum(b->registers[k], PTL_SR_LAST);
    }
    return total;
}

/* ---- Text ---- */

static const char *id_text(uint32_t nid, uint32_t pid, char text[32])
{
    snprintf(text, 32, "%u.%u.%u.%u:%u", nid >> 24, nid >> 16 & 255, nid >> 8 & 255, nid & 255,
             pid);
    return text;
}

const char *nic_address(const struct segment_view *v, char text[32])
{
    return id_text(v->nid, v->pid, text);
}

static const char *kinds_text(uint32_t open, char text[16])
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned k = 0; k < STATS_KINDS; k++) {
        if ((open >> k & 1) != 0) {
            at += (size_t)snprintf(text + at, 16 - at, "%s%s", at == 0 ? "" : ",", nic_kind(k));
        }
    }
    return at == 0 ? "-" : text;
}

void nic_print_table(const struct nic_look *l)
{
    char address[32], kinds[16], sent[16], received[16], bytes[16];
    if (l->count == 0) {
        printf("no NIC of yours is open on this host\n");
        return;
    }
    printf("%-22s %8s  %-16s %-11s %7s %8s %8s %8s %8s %6s\n", "NIC", "process", "program",
           "interfaces", "senders", "sent", "received", "bytes in", "dropped", "closed");
    for (size_t i = 0; i < l->count; i++) {
        const struct nic_seen *s = &l->of[i];
        printf("%-22s %8d  %-16.16s %-11s %7u %8s %8s %8s %8" PRIu64 " %6" PRIu64 "\n",
               nic_address(&s->view, address), s->view.process, s->stats.program,
               kinds_text(s->stats.open, kinds), s->view.senders,
               nic_number((double)nic_sum(s->stats.sent, STATS_MOVEMENTS), sent),
               nic_number((double)nic_sum(s->stats.received, STATS_MOVEMENTS), received),
               nic_number((double)s->stats.received_bytes, bytes), nic_dropped(&s->stats),
               s->stats.closed);
    }
}

static void print_movements(const char *title, const uint64_t *movements, uint64_t bytes)
{
    printf("    %-24s", title);
    for (unsigned m = 0; m < STATS_MOVEMENTS; m++) {
        printf("%" PRIu64 " %s, ", movements[m], movement_names[m]);
    }
    printf("%" PRIu64 " bytes\n", bytes);
}

/* Returns how many peers the report has figures of. */
static uint64_t listed_peers(const struct fabric_report *net)
{
    return net->peers < FABRIC_REPORT_PEERS ? net->peers : FABRIC_REPORT_PEERS;
}

static void print_net(const struct fabric_report *net)
{
    char address[32];
    if (net->packets_in == 0 && net->packets_out == 0) {
        return;
    }
    printf("    %-24s%" PRIu64 " packets sent, %" PRIu64 " again, %" PRIu64 " timeouts\n", "UDP",
           net->packets_out, net->resent, net->timeouts);
    printf("    %-24s%" PRIu64 " packets received, %" PRIu64 " twice, %" PRIu64 " dropped\n", "",
           net->packets_in, net->duplicates, net->dropped);
    printf("    %-24s%" PRIu64 " of these forged, %" PRIu64 " replayed; %" PRIu64
           " times packets were made shorter\n",
           "", net->forged, net->replayed, net->shortened);
    for (uint64_t i = 0; i < listed_peers(net); i++) {
        const struct fabric_peer_report *p = &net->peer[i];
        printf("    %-24sround trip %.1f us, window %u packets, %u under way, %" PRIu64
               " again, %" PRIu64 " dropped\n",
               id_text(p->nid, p->pid, address), (double)p->rtt / 1e3, p->window, p->flight,
               p->resent, p->dropped);
    }
    if (net->peers > listed_peers(net)) {
        printf("    %-24s%" PRIu64 "\n", "more peers", net->peers - listed_peers(net));
    }
}

void nic_print_full(const struct nic_seen *s)
{
    const struct nic_stats *b = &s->stats;
    char address[32], opened[32] = "?";
    time_t at = (time_t)b->opened;
    struct tm tm;
    if (localtime_r(&at, &tm) != NULL) {
        strftime(opened, sizeof(opened), "%F %T", &tm);
    }
    printf("NIC %s of process %d (%s), interface number %u, open since %s\n",
           nic_address(&s->view, address), s->view.process, b->program, b->index, opened);
    printf("    %-24s%u of %u\n", "senders", s->view.senders, s->view.most);
    print_movements("requests sent", b->sent, b->sent_bytes);
    print_movements("requests received", b->received, b->received_bytes);
    printf("    %-24s%" PRIu64 " messages waited, %" PRIu64 " entries closed\n", "flow control",
           b->waited, b->closed);
    printf("    %-24s%" PRIu64 "\n", "events lost", b->events_lost);
    printf("    %-24s%" PRIu64 "\n", "malformed messages", b->malformed);
    print_net(&b->net);
    for (unsigned k = 0; k < STATS_KINDS; k++) {
        if ((b->open >> k & 1) != 0) {
            printf("    %-24s", kind_names[k]);
            for (unsigned r = 0; r < PTL_SR_LAST; r++) {
                printf("%s%s %" PRIu64, r == 0 ? "" : ", ", register_names[r], b->registers[k][r]);
            }
            putchar('\n');
        }
    }
    nic_handlers_print(b);
}

/* ---- JSON ---- */

static void json_movements(struct json *j, const char *name, const uint64_t *movements,
                           uint64_t bytes)
{
    json_open_object(j, name);
    for (unsigned m = 0; m < STATS_MOVEMENTS; m++) {
        json_unsigned(j, movement_names[m], movements[m]);
    }
    json_unsigned(j, "bytes", bytes);
    json_close_object(j);
}

static void json_net(struct json *j, const struct fabric_report *net)
{
    json_open_object(j, "udp");
    json_unsigned(j, "packets_sent", net->packets_out);
    json_unsigned(j, "packets_received", net->packets_in);
    json_unsigned(j, "resent", net->resent);
    json_unsigned(j, "timeouts", net->timeouts);
    json_unsigned(j, "duplicates", net->duplicates);
    json_unsigned(j, "dropped", net->dropped);
    json_unsigned(j, "forged", net->forged);
    json_unsigned(j, "replayed", net->replayed);
    json_unsigned(j, "shortened", net->shortened);
    json_unsigned(j, "peer_count", net->peers);
    json_open_array(j, "peers");
    for (uint64_t i = 0; i < listed_peers(net); i++) {
        const struct fabric_peer_report *p = &net->peer[i];
        json_open_object(j, NULL);
        json_unsigned(j, "nid", p->nid);
        json_unsigned(j, "pid", p->pid);
        json_number(j, "rtt_ns", p->rtt);
        json_unsigned(j, "window", p->window);
        json_unsigned(j, "flight", p->flight);
        json_unsigned(j, "resent", p->resent);
        json_unsigned(j, "dropped", p->dropped);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void json_seen(struct json *j, const struct nic_seen *s)
{
    char address[32];
    const struct nic_stats *b = &s->stats;
    json_open_object(j, NULL);
    json_unsigned(j, "nid", s->view.nid);
    json_unsigned(j, "pid", s->view.pid);
    json_number(j, "process", s->view.process);
    json_string(j, "address", nic_address(&s->view, address));
    json_string(j, "program", b->program);
    json_unsigned(j, "index", b->index);
    json_number(j, "opened", b->opened);
    json_unsigned(j, "senders", s->view.senders);
    json_unsigned(j, "senders_most", s->view.most);
    json_movements(j, "sent", b->sent, b->sent_bytes);
    json_movements(j, "received", b->received, b->received_bytes);
    json_unsigned(j, "waited", b->waited);
    json_unsigned(j, "closed", b->closed);
    json_unsigned(j, "events_lost", b->events_lost);
    json_unsigned(j, "malformed", b->malformed);
    json_net(j, &b->net);
    json_open_array(j, "interfaces");
    for (unsigned k = 0; k < STATS_KINDS; k++) {
        if ((b->open >> k & 1) != 0) {
            json_open_object(j, NULL);
            json_string(j, "kind", nic_kind(k));
            for (unsigned r = 0; r < PTL_SR_LAST; r++) {
                json_unsigned(j, register_names[r], b->registers[k][r]);
            }
            json_close_object(j);
        }
    }
    json_close_array(j);
    nic_handlers_json(j, b);
    json_close_object(j);
}

int nic_print_json(const struct nic_look *l, const char *folder)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_open_array(&j, "nics");
    for (size_t i = 0; i < l->count; i++) {
        json_seen(&j, &l->of[i]);
    }
    json_close_array(&j);
    nic_frames_json(&j, folder, l->process);
    json_close_object(&j);
    return json_end(&j) == 0 ? 0 : 1;
}
