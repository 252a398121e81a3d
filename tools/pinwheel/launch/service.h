/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets under the PMI-1 server: one connection per rank. A rank that does
 * not read its replies is not read from either once half of what the server
 * holds for it is queued. Nothing here blocks.
 */
#ifndef PINWHEEL_SERVICE_H
#define PINWHEEL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct pmi_job;

struct service {
    struct pmi_job *server;
    int size;
    int *fds; /* our end for each rank; -1 when there is none */
};

/* service_open() makes the server of a job; `hosts` as pmi_job_create() has it. 0, -EINVAL
 * or -ENOMEM. */
int service_open(struct service *s, int size, const char *job_id, const char *hosts);
void service_free(struct service *s);

/* service_read() serves what the rank has sent; it returns whether there may be
 * more. A connection that the server closes is reported on stderr. */
bool service_read(struct service *s, int rank);

/* service_feed() serves what a rank of another host has sent. It returns false when the
 * server closes the connection, which is reported on stderr. */
bool service_feed(struct service *s, int rank, const void *bytes, size_t length);

/* service_write() sends replies to the rank. */
void service_write(struct service *s, int rank);

/* service_close() says that the rank will send no more. */
void service_close(struct service *s, int rank);

/* service_events() returns what to poll for on fds[rank]: for POLLIN call
 * service_read(), for POLLOUT service_write(), for neither service_read(). */
short service_events(const struct service *s, int rank);

#endif
