/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses cores for ranks; see cores.h. */
#include "cores.h"

#include "base/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* True if the affinity mask has all cores that the system allows: a child asks for every core, and
 * sees which it gets. */
static bool is_whole(const cpu_set_t *mask)
{
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t all, got;
        memset(&all, 0xff, sizeof(all));
        _exit(sched_setaffinity(0, sizeof(all), &all) == 0 &&
                      sched_getaffinity(0, sizeof(got), &got) == 0 && CPU_EQUAL(&got, mask)
                  ? 0
                  : 1);
    }
    int status = 1;
    pid_t ended = -1;
    do {
        ended = child > 0 ? waitpid(child, &status, 0) : -1;
    } while (ended < 0 && child > 0 && errno == EINTR);
    return ended == child && status == 0;
}

/* Opens the file of locks; -1 if it cannot be opened or belongs to another user. */
static int open_locks(void)
{
    char path[PATH_MAX];
    struct stat st;
    const char *folder = getenv(option_table[OPT_SHM_DIR].env);
    folder = folder != NULL && *folder != '\0' ? folder : option_table[OPT_SHM_DIR].fallback;
    snprintf(path, sizeof(path), "%s/" CORES_FILE "%u", folder, (unsigned)geteuid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool take(int locks, int core)
{
    struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = core, .l_len = 1};
    return fcntl(locks, F_OFD_SETLK, &one) == 0;
}

/* True if the core is the first hardware thread of its physical core. */
static bool is_first_thread(int core)
{
    char path[96];
    int first = core;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             core);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        if (fscanf(f, "%d", &first) != 1) {
            first = core;
        }
        fclose(f);
    }
    return first == core;
}

/* Takes the locks of free cores, first of those with a physical core of their own. */
static int collect(struct cores *c, int ranks)
{
    int found = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int core = 0; core < CPU_SETSIZE && found < ranks; core++) {
            if (CPU_ISSET(core, &c->allowed) && is_first_thread(core) == (pass == 0) &&
                take(c->lock, core)) {
                c->home[found++] = core;
            }
        }
    }
    return found;
}

void cores_claim(struct cores *c, int ranks)
{
    *c = (struct cores){.lock = -1};
    if (ranks < 2 || sched_getaffinity(0, sizeof(c->allowed), &c->allowed) != 0 ||
        ranks > CPU_COUNT(&c->allowed) || !is_whole(&c->allowed)) {
        return;
    }
    c->lock = open_locks();
    c->home = c->lock >= 0 ? calloc((size_t)ranks, sizeof(*c->home)) : NULL;
    if (c->home == NULL || collect(c, ranks) < ranks) {
        cores_release(c);
    }
}

void cores_release(struct cores *c)
{
    free(c->home);
    if (c->lock >= 0) {
        close(c->lock); /* closing the file releases the locks */
    }
    c->home = NULL;
    c->lock = -1;
}
