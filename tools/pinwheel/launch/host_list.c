/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job; see host_list.h. */
#include "host_list.h"

#include "base/number.h"
#include "boot/pmi_server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int __attribute__((format(printf, 3, 4)))
refuse(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return -1;
}

/* Checks the name of a host: ssh would take one that begins with '-' for an option. */
static int check_name(const char *name, size_t length, char *error, size_t size)
{
    if (length == 0) {
        return refuse(error, size, "a host without a name; write NAME or NAME:RANKS, as a,b:2");
    }
    for (size_t i = 0; i < length; i++) {
        if ((i == 0 && name[i] == '-') || name[i] <= ' ' || name[i] > '~' || name[i] == ':') {
            return refuse(error, size, "%.*s: not the name of a host", (int)length, name);
        }
    }
    return 0;
}

static int add_one(struct host_list *l, const char *name, size_t length, const char *ranks,
                   char *error, size_t size)
{
    int64_t number = 1;
    if (check_name(name, length, error, size) != 0) {
        return -1;
    }
    if (ranks != NULL && !number_read(ranks, 1, PMI_RANKS_MAX, &number)) {
        return refuse(error, size, "%.*s: %s ranks; must be a whole number from 1 to %d",
                      (int)length, name, ranks, PMI_RANKS_MAX);
    }
    for (int i = 0; i < l->count; i++) {
        if (strlen(l->at[i].name) == length && memcmp(l->at[i].name, name, length) == 0) {
            return refuse(error, size, "%s is listed twice; %s:2 has two ranks", l->at[i].name,
                          l->at[i].name);
        }
    }
    if (l->ranks + number > PMI_RANKS_MAX) {
        return refuse(error, size, "more than %d ranks in all", PMI_RANKS_MAX);
    }
    struct host_place *at = reallocarray(l->at, (size_t)l->count + 1, sizeof(*at));
    char *copy = strndup(name, length);
    l->at = at != NULL ? at : l->at;
    if (at == NULL || copy == NULL) {
        free(copy);
        return refuse(error, size, "no memory");
    }
    at[l->count++] = (struct host_place){copy, (int)number};
    l->ranks += (int)number;
    return 0;
}

int host_list_add(struct host_list *l, const char *text, char *error, size_t error_size)
{
    char *copy = strdup(text), *rest = copy, *entry;
    int rc = copy == NULL ? refuse(error, error_size, "no memory") : 0;
    while (rc == 0 && (entry = strsep(&rest, ",")) != NULL) {
        char *colon = strrchr(entry, ':');
        size_t length = colon != NULL ? (size_t)(colon - entry) : strlen(entry);
        rc = add_one(l, entry, length, colon != NULL ? colon + 1 : NULL, error, error_size);
    }
    free(copy);
    return rc;
}

static int add_line(struct host_list *l, char *line, char *error, size_t size)
{
    static const char blanks[] = " \t\r\n";
    line[strcspn(line, "#")] = '\0';
    char *rest, *name = strtok_r(line, blanks, &rest);
    char *more = name != NULL ? strtok_r(NULL, blanks, &rest) : NULL;
    if (name == NULL) {
        return 0;
    }
    if (more == NULL) {
        return host_list_add(l, name, error, size);
    }
    if (strncmp(more, "slots=", 6) != 0 || strtok_r(NULL, blanks, &rest) != NULL) {
        return refuse(error, size, "\"%s %s\": a line is NAME, NAME:RANKS or NAME slots=RANKS",
                      name, more);
    }
    return add_one(l, name, strlen(name), more + 6, error, size);
}

int host_list_read(struct host_list *l, const char *path, char *error, size_t error_size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return refuse(error, error_size, "cannot be read: %s", strerror(errno));
    }
    char *line = NULL, why[400];
    size_t room = 0;
    int rc = 0, number = 0;
    while (rc == 0 && getline(&line, &room, file) >= 0) {
        number++;
        rc = add_line(l, line, why, sizeof(why));
    }
    free(line);
    if (rc != 0) {
        refuse(error, error_size, "line %d: %s", number, why);
    } else if (ferror(file) != 0) {
        rc = refuse(error, error_size, "cannot be read: %s", strerror(errno));
    } else if (l->count == 0) {
        rc = refuse(error, error_size, "lists no hosts");
    }
    fclose(file);
    return rc;
}

int host_list_fit(struct host_list *l, int ranks, char *error, size_t error_size)
{
    if (ranks > l->ranks) {
        return refuse(error, error_size,
                      "%d ranks, and the hosts have room for %d; NAME:RANKS says how many a host "
                      "has (1 if nothing is said)",
                      ranks, l->ranks);
    }
    int left = ranks, count = 0;
    for (int i = 0; i < l->count; i++) {
        struct host_place *p = &l->at[i];
        p->ranks = p->ranks < left ? p->ranks : left;
        left -= p->ranks;
        if (p->ranks == 0) {
            free(p->name);
        } else {
            count++;
        }
    }
    l->count = count;
    l->ranks = ranks;
    return 0;
}

void host_list_free(struct host_list *l)
{
    for (int i = 0; i < l->count; i++) {
        free(l->at[i].name);
    }
    free(l->at);
    *l = (struct host_list){0};
}
