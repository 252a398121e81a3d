/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluates ICMP messages which say that a port is closed; see socket.h. */
#include "fabric/udp/refusal.h"

#include "base/cancel.h"
#include "base/sys.h"
#include "fabric/udp/socket.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <string.h>

/* Whether the ICMP message comes from the host to which the packet went. The copy of the packet in
 * it proves nothing: anyone who has seen the packet can send that. */
static bool said_by(const struct sock_extended_err *error, const struct sockaddr_in *to)
{
    const struct sockaddr_in *by = (const void *)SO_EE_OFFENDER(error);
    return error->ee_errno == ECONNREFUSED && error->ee_origin == SO_EE_ORIGIN_ICMP &&
           by->sin_family == AF_INET && by->sin_addr.s_addr == to->sin_addr.s_addr;
}

bool udp_socket_refusal(struct udp_socket *u, struct slmp_address *who)
{
    NOT_CANCELLED;
    union {
        struct cmsghdr align;
        char bytes[512];
    } control;
    struct sockaddr_in to;
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof(to)};
    do {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        ssize_t length = sys_recvmsg(u->fd, &m, MSG_ERRQUEUE);
        if (length < 0) {
            u->tells = false;
            return false;
        }
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
            struct {
                struct sock_extended_err error;
                struct sockaddr_in by;
            } e = {0};
            if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR &&
                c->cmsg_len >= CMSG_LEN(sizeof(e))) {
                memcpy(&e, CMSG_DATA(c), sizeof(e));
                if (said_by(&e.error, &to)) {
                    *who = (struct slmp_address){ntohl(to.sin_addr.s_addr), ntohs(to.sin_port)};
                    return true;
                }
            }
        }
    } while (true);
}
