/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of unfinished messages; see message.h. */
#include "raw/message.h"

#include <stdlib.h>
#include <string.h>

static struct raw_message *begin(struct raw_message *m, const struct raw_key *key)
{
    if (m->state_used) {
        memset(m->state, 0, sizeof(m->state));
    }
    m->state_used = false;
    m->key = *key;
    m->way = RAW_WAY_PROCESS;
    m->bytes = 0;
    m->dropped = 0;
    return m;
}

/* Makes a message and puts it into the table. */
static struct raw_message *add(struct raw_context *c, const struct raw_key *key)
{
    struct raw_message *m = NULL;
    if (c->unfinished >= c->options.messages || posix_memalign((void **)&m, 64, sizeof(*m)) != 0) {
        return NULL;
    }
    memset(m, 0, sizeof(*m));
    begin(m, key);
    HASH_ADD(hh, c->table, key, sizeof(m->key), m);
    if (!hash_added(m)) {
        free(m);
        return NULL;
    }
    list_init(&m->link);
    c->unfinished++;
    return m;
}

struct raw_message *raw_message_find(struct raw_context *c, const struct raw_set *set,
                                     const struct raw_frame *frame, bool *begins)
{
    struct raw_key key = {.set = (uint32_t)frame->verdict >> 1};
    struct raw_message *m = NULL;
    *begins = true;
    if (set->ends == 0) {
        return begin(c->single, &key);
    }
    for (unsigned i = 0; i < set->ids; i++) {
        key.id[i] = raw_word_of(&set->id[i], frame->bytes, frame->length);
    }
    HASH_FIND(hh, c->table, &key, sizeof(key), m);
    *begins = m == NULL;
    m = m != NULL ? m : add(c, &key);
    if (m != NULL) {
        m->last = frame->time;
        list_remove(&m->link);
        list_push_back(&c->ages, &m->link);
    }
    return m;
}

void raw_message_end(struct raw_context *c, struct raw_message *m)
{
    if (m == c->single) {
        return;
    }
    HASH_DELETE(hh, c->table, m);
    list_remove(&m->link);
    c->unfinished--;
    free(m);
}
