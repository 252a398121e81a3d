/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts rules into the kernel for an owner that must not; see installer.h. */
#include "raw/serve/installer.h"

#include "raw/serve/protocol.h"
#include "raw/serve/table.h"
#include "raw/source/drop.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory that the owner writes and the installer reads. */
struct installer_request {
    uint32_t count;
    struct {
        uint32_t line, context, length;
        char text[SERVE_TEXT];
    } of[RAW_CONTEXTS];
};

struct answer {
    int error;
    char text[RAW_ERROR];
};

/* ---- The installer ---- */

struct work {
    struct raw_source *source;
    const struct policy *policy;
    unsigned contexts;
    const struct installer_request *shared;
    struct installer_request request; /* a copy, which nobody writes */
    struct raw_rules room, rules;
};

static int do_it(struct work *w, char error[RAW_ERROR])
{
    struct table_part part[RAW_CONTEXTS] = {0};
    struct raw_wanted wanted;
    const struct installer_request *r = &w->request;
    int rc = 0;
    memcpy(&w->request, w->shared, sizeof(w->request));
    if (r->count > RAW_CONTEXTS) {
        snprintf(error, RAW_ERROR, "%u contexts are asked for", r->count);
        return -EPROTO;
    }
    for (unsigned i = 0; i < r->count && rc == 0; i++) {
        if (r->of[i].line >= w->policy->count || r->of[i].context >= w->contexts ||
            r->of[i].length > SERVE_TEXT) {
            snprintf(error, RAW_ERROR, "context %u, line %u do not exist", r->of[i].context,
                     r->of[i].line);
            rc = -EPROTO;
            break;
        }
        part[i].line = r->of[i].line;
        part[i].context = r->of[i].context;
        rc = table_read(&part[i], w->policy, r->of[i].text, r->of[i].length, &w->room, error);
    }
    rc = rc == 0 ? table_join(&wanted, &w->rules, part, r->count, w->contexts, error) : rc;
    if (rc == 0) {
        rc = w->source->ops->rules(w->source, &wanted, error);
    }
    for (unsigned i = 0; i < RAW_CONTEXTS; i++) {
        table_free(&part[i]);
    }
    return rc;
}

__attribute__((noreturn)) static void serve(struct work *w, int fd, pid_t owner)
{
    char byte;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (raw_drop(UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_NET_ADMIN) != 0) {
        _exit(1);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != owner) {
        _exit(1);
    }
    while (recv(fd, &byte, 1, 0) == 1) {
        struct answer a = {0};
        a.error = do_it(w, a.text);
        if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a)) {
            break;
        }
    }
    _exit(0);
}

/* ---- The owner ---- */

int installer_start(struct installer *i, struct raw_source *source, const struct policy *policy,
                    unsigned contexts)
{
    int pair[2];
    pid_t owner = getpid();
    *i = (struct installer){.pid = -1, .fd = -1};
    struct installer_request *r =
        mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct work *w = calloc(1, sizeof(*w));
    if (r == MAP_FAILED || w == NULL ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        int rc = -errno;
        if (r != MAP_FAILED) {
            munmap(r, sizeof(*r));
        }
        free(w);
        return rc;
    }
    w->source = source;
    w->policy = policy;
    w->contexts = contexts;
    w->shared = r;
    i->pid = fork();
    if (i->pid == 0) {
        close(pair[0]);
        serve(w, pair[1], owner);
    }
    int rc = i->pid < 0 ? -errno : 0;
    free(w);
    close(pair[1]);
    i->fd = pair[0];
    i->request = r;
    if (rc != 0) {
        installer_stop(i);
    }
    return rc;
}

void installer_stop(struct installer *i)
{
    if (i->fd >= 0) {
        close(i->fd);
    }
    if (i->request != NULL) {
        munmap(i->request, sizeof(*i->request));
    }
    if (i->pid > 0) {
        waitpid(i->pid, NULL, 0); /* it ends by the end of the socket */
    }
    *i = (struct installer){.pid = -1, .fd = -1};
}

int installer_ask(struct installer *i, const struct installer_context *contexts, unsigned count)
{
    struct installer_request *r = i->request;
    r->count = count;
    for (unsigned n = 0; n < count; n++) {
        size_t length = strlen(contexts[n].text);
        if (length > SERVE_TEXT) {
            return -E2BIG;
        }
        r->of[n].line = contexts[n].line;
        r->of[n].context = contexts[n].context;
        r->of[n].length = (uint32_t)length;
        memcpy(r->of[n].text, contexts[n].text, length);
    }
    return send(i->fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -EPIPE;
}

int installer_answer(struct installer *i, char error[RAW_ERROR])
{
    struct answer a;
    ssize_t n = recv(i->fd, &a, sizeof(a), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n != sizeof(a)) {
        snprintf(error, RAW_ERROR,
                 "the process that puts rules into the kernel has ended: begin again");
        return -EPIPE;
    }
    memcpy(error, a.text, RAW_ERROR);
    error[RAW_ERROR - 1] = '\0';
    return a.error == 0 ? 1 : a.error;
}
