/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket under an SLMP engine: datagrams in and out, many in one system call where the
 * kernel segments and joins them (UDP_SEGMENT, UDP_GRO). A fabric and the commands of
 * `pinwheel slmp` use it alike; tests put a network in memory in its place.
 *
 * What the network does not take is as good as lost on it: the engine sends it again.
 */
#ifndef FABRIC_UDP_SOCKET_H
#define FABRIC_UDP_SOCKET_H

#include "fabric/slmp/slmp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UDP_BUFFER = 1 << 16 }; /* room for what one udp_socket_receive() can bring */
enum { UDP_IP_HEADERS = 28 };  /* bytes of a datagram before the payload */

/* Packets to one address that leave in one system call: all of one length, but the last,
 * which may be shorter. One more has room that belongs to the next batch. */
enum { UDP_BATCH = 64, UDP_BATCH_BYTES = 65000 };
struct udp_batch {
    struct slmp_packet packet[UDP_BATCH + 1];
    unsigned count;
    size_t bytes;
    uint8_t row[UDP_BATCH * SLMP_HEADER_ROOM]; /* packets that are all header, in a row */
};

/* The second socket, see connected.c. */
struct udp_connected {
    bool on; /* there is such a socket */
    int fd;
    struct slmp_address to;    /* the peer that it is connected to */
    struct slmp_address often; /* the peer that may be next */
    int votes;                 /* votes for that peer */
};

struct udp_socket {
    int fd;
    struct udp_connected connected;
    bool segments;  /* the kernel cuts (UDP_SEGMENT) */
    bool joins;     /* the kernel can join packets (UDP_GRO) */
    bool joining;   /* the kernel joins packets now */
    int64_t parted; /* when it was last told not to join any */
    bool empty;     /* nothing was there at the last look */
    unsigned alone; /* packets that came one at a time */
    unsigned crowd; /* packets that came with others */
    bool adapts; /* set by a caller that wants single packets soon: there may be a connected socket,
                  * and packets that come one at a time are not joined */
    int receive; /* bytes of its receive buffer */
    uint32_t longest; /* packet that the way to the peer carries whole; 0: not known */
    uint64_t calls_out, calls_in;
    uint64_t refused;  /* times that a peer's host said that nobody listens */
    uint64_t dropped;  /* packets that the kernel did not take */
    int error;         /* the last reason for that */
    uint64_t narrowed; /* times that the system said that a path takes shorter packets */
    bool tells;        /* udp_socket_refusal() has something to say */
    struct udp_batch *batch;
};

/* udp_socket_open() binds to an address (0: all) and a port (0: any), with buffers of
 * `buffers` bytes if the system allows so many. 0; or -errno, with a line in `why`. */
int udp_socket_open(struct udp_socket *, uint32_t ip, uint16_t port, int buffers,
                    struct reason *why);
/* udp_socket_connect() talks to one peer only, and finds out how long packets may be. */
int udp_socket_connect(struct udp_socket *, const struct slmp_address *, struct reason *why);
void udp_socket_close(struct udp_socket *);
uint16_t udp_socket_port(const struct udp_socket *);

/* udp_socket_receive() brings one datagram, or several of `each` bytes from one peer that
 * the kernel has joined, to a buffer of UDP_BUFFER bytes. Gives how many bytes came, 0 if they
 * cannot be told apart and are lost, or -1 if nothing is there. */
ssize_t udp_socket_receive(struct udp_socket *, void *buffer, struct slmp_address *from,
                           size_t *each);

/* udp_socket_output() sends what an engine has to send; where the caller expects so many packets,
 * these leave before the engine is asked for more (0: it cannot tell). `any` says whether there
 * was anything. 0; or -errno for what is not lost but cannot work, with the packet's address and
 * length: -EMSGSIZE, -EACCES, -EPERM, -EINVAL, or -EFAULT for memory that cannot be read. */
struct udp_failure {
    struct slmp_address to;
    uint32_t length;
};
int udp_socket_output(struct udp_socket *, struct slmp *, int64_t now, unsigned expected, bool *any,
                      struct udp_failure *);

/* udp_socket_now() is the clock that goes with it. */
int64_t udp_socket_now(const struct udp_socket *);

/* udp_socket_secrets() draws the random numbers of a configuration; the incarnation only
 * if it is 0. */
void udp_socket_secrets(struct slmp_config *);

#endif
