/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket under an SLMP engine. Many datagrams leave or come in one system call where the kernel
 * segments and joins them (UDP_SEGMENT, UDP_GRO). The fabric and the commands of `pinwheel slmp`
 * use it alike; tests put a network in memory in its place.
 *
 * A packet that the network does not take counts as lost: the engine sends it again.
 */
#ifndef FABRIC_UDP_SOCKET_H
#define FABRIC_UDP_SOCKET_H

#include "fabric/slmp/slmp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UDP_BUFFER = 1 << 16 }; /* bytes of the buffer for one udp_socket_receive() */
enum { UDP_IP_HEADERS = 28 };  /* bytes of a datagram before the payload */

/* Packets to one address that leave in one system call: all of one length, but the last, which may
 * be shorter. There is room for one packet more, which belongs to the next batch. */
enum { UDP_BATCH = 64, UDP_BATCH_BYTES = 65000 };
struct udp_batch {
    struct slmp_packet packet[UDP_BATCH + 1];
    unsigned count;
    size_t bytes;
    uint8_t row[UDP_BATCH * SLMP_HEADER_ROOM]; /* packets without parts, one behind the other */
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
    bool segments;  /* the kernel can cut packets (UDP_SEGMENT) */
    bool joins;     /* the kernel can join packets (UDP_GRO) */
    bool joining;   /* the kernel joins packets now */
    int64_t parted; /* when joining was last switched off */
    bool empty;     /* the last look found no packet */
    unsigned alone; /* packets in a row that came one at a time */
    unsigned crowd; /* packets that came with others */
    /* Set by a caller that wants single packets fast: packets that come one at a time are not
     * joined, and there may be a connected socket. */
    bool adapts;
    int receive;      /* bytes of the socket's receive buffer */
    uint32_t longest; /* longest packet that the path to the peer carries whole; 0: not known */
    uint64_t calls_out, calls_in;
    uint64_t refused;  /* times that a peer's host reported a closed port */
    uint64_t dropped;  /* packets that the kernel did not take */
    int error;         /* the last reason for that */
    uint64_t narrowed; /* times that the system reported a path with shorter packets */
    bool tells;        /* udp_socket_refusal() has an address to return */
    struct udp_batch *batch;
};

/* udp_socket_open() binds to an address (0: all) and a port (0: any), with buffers of `buffers`
 * bytes if the system allows that. 0; or -errno, with a line in `why`. */
int udp_socket_open(struct udp_socket *, uint32_t ip, uint16_t port, int buffers,
                    struct reason *why);
/* udp_socket_connect() connects the socket to one peer, and finds out how long packets to it may
 * be. */
int udp_socket_connect(struct udp_socket *, const struct slmp_address *, struct reason *why);
void udp_socket_close(struct udp_socket *);
uint16_t udp_socket_port(const struct udp_socket *);

/* udp_socket_receive() receives one datagram, or several of `each` bytes from one peer that the
 * kernel has joined, into a buffer of UDP_BUFFER bytes. Returns the number of bytes; 0 if they
 * cannot be told apart, and are lost; or -1 if there is none. */
ssize_t udp_socket_receive(struct udp_socket *, void *buffer, struct slmp_address *from,
                           size_t *each);

/* udp_socket_output() sends the packets of an engine. If the caller expects a number of packets (0:
 * it does not know), these leave before the engine is asked for more. `any` tells whether there
 * were any. 0; or -errno for an error that does not pass, with address and length of the packet:
 * -EMSGSIZE, -EACCES, -EPERM, -EINVAL, or -EFAULT for memory that cannot be read. */
struct udp_failure {
    struct slmp_address to;
    uint32_t length;
};
int udp_socket_output(struct udp_socket *, struct slmp *, int64_t now, unsigned expected, bool *any,
                      struct udp_failure *);

/* udp_socket_now() returns the time for the engine's calls. */
int64_t udp_socket_now(const struct udp_socket *);

/* udp_socket_secrets() sets the random numbers of a configuration; the incarnation only if it is
 * 0. */
void udp_socket_secrets(struct slmp_config *);

#endif
