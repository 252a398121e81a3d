/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 addresses, in host byte order: 127.0.0.1 is 0x7f000001. */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>

/* ip_text(ip).text is the address in dotted decimal. The text lives until the end of the full
 * expression. */
struct ip_text {
    char text[INET_ADDRSTRLEN];
};
static inline struct ip_text ip_text(uint32_t ip)
{
    struct ip_text t;
    snprintf(t.text, sizeof(t.text), "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    return t;
}

/* ip_socket() makes the sockaddr_in of an address and a port; ip_of() returns the address in
 * one. */
static inline struct sockaddr_in ip_socket(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

static inline uint32_t ip_of(const struct sockaddr *a)
{
    return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr);
}

#endif
