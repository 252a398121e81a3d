/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets of the PMI-1 server; see service.h. */
#include "service.h"

#include "boot/pmi_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection is not read while QUEUE_BYTES of replies are queued for it. The replies to one read
 * of REQUEST_BYTES fit into the other half of the server's bound: the shortest request for a value
 * has 34 bytes, and the longest reply is below PMI_LINE_MAX. */
enum { REQUEST_BYTES = 1024, QUEUE_BYTES = PMI_OUTPUT_MAX / 2 };
_Static_assert(REQUEST_BYTES / 34 * PMI_LINE_MAX < PMI_OUTPUT_MAX - QUEUE_BYTES, "replies fit");

int service_open(struct service *s, int size, const char *job_id, const char *hosts)
{
    s->size = size;
    s->fds = malloc((size_t)size * sizeof(*s->fds));
    if (s->fds == NULL) {
        return -ENOMEM;
    }
    for (int r = 0; r < size; r++) {
        s->fds[r] = -1;
    }
    return pmi_job_create(&s->server, size, job_id, hosts);
}

void service_free(struct service *s)
{
    for (int r = 0; r < s->size; r++) {
        service_close(s, r);
    }
    free(s->fds);
    pmi_job_free(s->server);
}

void service_close(struct service *s, int rank)
{
    if (s->fds[rank] >= 0) {
        close(s->fds[rank]);
        s->fds[rank] = -1;
    }
    pmi_rank_gone(s->server, rank);
}

bool service_feed(struct service *s, int rank, const void *bytes, size_t length)
{
    pmi_feed(s->server, rank, bytes, length);
    const char *error = pmi_error(s->server, rank);
    if (error != NULL) {
        fprintf(stderr, "pinwheel run: closed the PMI connection of rank %d: %s\n", rank, error);
        service_close(s, rank);
    }
    return error == NULL;
}

bool service_read(struct service *s, int rank)
{
    char bytes[REQUEST_BYTES];
    if (s->fds[rank] < 0) {
        return false;
    }
    ssize_t n = recv(s->fds[rank], bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) {
        return service_feed(s, rank, bytes, (size_t)n);
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        service_close(s, rank);
    }
    return false;
}

void service_write(struct service *s, int rank)
{
    size_t length;
    const char *bytes = pmi_output(s->server, rank, &length);
    if (s->fds[rank] < 0 || length == 0) {
        return;
    }
    ssize_t n = send(s->fds[rank], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        pmi_output_sent(s->server, rank, (size_t)n);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        service_close(s, rank);
    }
}

short service_events(const struct service *s, int rank)
{
    size_t replies;
    pmi_output(s->server, rank, &replies);
    return (short)((replies > 0 ? POLLOUT : 0) | (replies < QUEUE_BYTES ? POLLIN : 0));
}
