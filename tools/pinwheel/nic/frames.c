/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts of `pinwheel raw run` and `raw serve`, by the pages of their processes; see frames.h. */
#include "frames.h"

#include "raw/source/page.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

struct view {
    int32_t process;
    unsigned seen;
    struct json *json;
};

static const char *owner_of(const struct raw_page *p, const struct raw_page_context *c,
                            char text[48])
{
    if (p->command[0] == 's') {
        snprintf(text, 48, "user %u: %d", c->user, c->user_process);
    } else {
        snprintf(text, 48, "%s", c->name[0] != '\0' ? c->name : "(the only one)");
    }
    return text;
}

static void print_one(void *arg, const struct raw_page *p)
{
    struct view *v = arg;
    char who[48], matched[16], frames[16], sent[16], passed[16];
    if (v->process != 0 && p->process != v->process) {
        return;
    }
    if (v->seen++ == 0) {
        printf("%-14s %8s  %-9s %3s %-20s %4s %8s %8s %8s %8s %8s %7s %8s\n", "frames of",
               "process", "command", "no", "context", "sets", "matched", "handled", "sent",
               "passed", "dropped", "faults", "lost");
    }
    for (unsigned i = 0; i < p->contexts; i++) {
        const struct raw_page_context *c = &p->context[i];
        if (c->used != 0) {
            printf("%-14.14s %8d  raw %-5.5s %3u %-20.20s %4u %8s %8s %8s %8s %8" PRIu64
                   " %7" PRIu64 " %8" PRIu64 "\n",
                   p->source, p->process, p->command, i, owner_of(p, c, who), c->sets,
                   nic_number((double)c->matched, matched), nic_number((double)c->frames, frames),
                   nic_number((double)c->sent, sent), nic_number((double)c->passed, passed),
                   c->dropped, c->faults, c->lost);
        }
    }
}

unsigned nic_frames_print(const char *folder, int32_t process)
{
    struct view v = {.process = process};
    (void)raw_page_each(folder, print_one, &v);
    return v.seen;
}

static void json_one(void *arg, const struct raw_page *p)
{
    struct view *v = arg;
    struct json *j = v->json;
    if (v->process != 0 && p->process != v->process) {
        return;
    }
    json_open_object(j, NULL);
    json_number(j, "process", p->process);
    json_string(j, "command", p->command);
    json_string(j, "source", p->source);
    json_number(j, "opened", p->opened);
    json_open_array(j, "contexts");
    for (unsigned i = 0; i < p->contexts; i++) {
        const struct raw_page_context *c = &p->context[i];
        if (c->used == 0) {
            continue;
        }
        json_open_object(j, NULL);
        json_unsigned(j, "number", i);
        json_string(j, "name", c->name);
        json_unsigned(j, "sets", c->sets);
        if (p->command[0] == 's') {
            json_unsigned(j, "user", c->user);
            json_number(j, "user_process", c->user_process);
        }
        json_unsigned(j, "matched", c->matched);
        json_unsigned(j, "handled", c->frames);
        json_unsigned(j, "sent", c->sent);
        json_unsigned(j, "passed", c->passed);
        json_unsigned(j, "dropped", c->dropped);
        json_unsigned(j, "faults", c->faults);
        json_unsigned(j, "lost", c->lost);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

void nic_frames_json(struct json *j, const char *folder, int32_t process)
{
    struct view v = {.process = process, .json = j};
    json_open_array(j, "frames");
    (void)raw_page_each(folder, json_one, &v);
    json_close_array(j);
}
