/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of the PMI-1 server: one connection per rank. If a rank does not read its replies,
 * the launcher stops reading its requests when half of the replies that the server may hold for it
 * are queued. No function blocks.
 */
#ifndef PINWHEEL_SERVICE_H
#define PINWHEEL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct pmi_job;

struct service {
    struct pmi_job *server;
    int size;
    int *fds; /* by rank: the launcher's end of its connection; -1: none */
};

/* service_open() makes the server of a job; `hosts` has the form of pmi_job_create(). Returns 0,
 * -EINVAL or -ENOMEM. */
int service_open(struct service *s, int size, const char *job_id, const char *hosts);
void service_free(struct service *s);

/* service_read() serves requests that the rank has sent; it returns true if there may be more. It
 * reports on stderr if the server closes the connection. */
bool service_read(struct service *s, int rank);

/* service_feed() serves requests of a rank on another host. It returns false if the server closes
 * the connection, which it reports on stderr. */
bool service_feed(struct service *s, int rank, const void *bytes, size_t length);

/* service_write() sends queued replies to the rank. */
void service_write(struct service *s, int rank);

/* service_close() tells the server that the rank will send no more. */
void service_close(struct service *s, int rank);

/* service_events() returns the events to poll fds[rank] for. The caller calls service_write() for
 * POLLOUT, and service_read() for POLLIN and for errors. */
short service_events(const struct service *s, int rank);

#endif
