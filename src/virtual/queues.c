/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues and semaphores of System V, and queues of POSIX. Each call is tried without waiting, and
 * again when others have done something; who has given or taken something has others look. */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <mqueue.h>
#include <stdarg.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>

enum { SEMAPHORES_MOST = 500 }; /* in one call, of Linux (SEMOPM) */

/* A system call that does not wait. */
struct attempt {
    long number, a[5];
    long busy[2]; /* with which it says that it would have to */
    long rc;
};

static bool goes(void *attempt)
{
    struct attempt *t = attempt;
    t->rc = SYS_CALL(t->number, t->a[0], t->a[1], t->a[2], t->a[3], t->a[4]);
    return t->rc != -t->busy[0] && t->rc != -t->busy[1];
}

/* `late` is the error when the time is over. No such call is made again after a signal. */
static long go(struct attempt *t, uint64_t until, const char *what, int late)
{
    enum virtual_end end = virtual_await(goes, t, until, what);
    t->rc = end == VIRTUAL_SIGNAL ? -EINTR : end == VIRTUAL_LATE ? -late : t->rc;
    virtual_done(t->rc);
    errno = t->rc < 0 ? (int)-t->rc : errno;
    return t->rc < 0 ? -1 : t->rc;
}

/* ---- System V ---- */

static int operate(int id, struct sembuf *list, size_t n, uint64_t until)
{
    struct sembuf own[SEMAPHORES_MOST];
    memcpy(own, list, n * sizeof(*list));
    for (size_t i = 0; i < n; i++) {
        own[i].sem_flg = (short)(own[i].sem_flg | IPC_NOWAIT);
    }
    struct attempt t = {SYS_semop, {id, (long)own, (long)n}, {EAGAIN, EAGAIN}, 0};
    return (int)go(&t, until, "a semaphore", EAGAIN);
}

static bool may_wait(const struct sembuf *list, size_t n)
{
    for (size_t i = 0; i < n && n <= SEMAPHORES_MOST; i++) {
        if ((list[i].sem_flg & IPC_NOWAIT) != 0) {
            return false;
        }
    }
    return virtual_in() && n <= SEMAPHORES_MOST;
}

SHOWN int semop(int id, struct sembuf *list, size_t n)
{
    return may_wait(list, n) ? operate(id, list, n, SIM_NEVER)
                             : (int)virtual_done(OPENLY(REAL(semop)(id, list, n)));
}

SHOWN int semtimedop(int id, struct sembuf *list, size_t n, const struct timespec *t)
{
    return may_wait(list, n) ? operate(id, list, n, virtual_after(virtual_ns(t)))
                             : (int)virtual_done(OPENLY(REAL(semtimedop)(id, list, n, t)));
}

SHOWN int semctl(int id, int number, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *arg = va_arg(list, void *);
    va_end(list);
    return (int)virtual_done(OPENLY(REAL(semctl)(id, number, command, arg)));
}

SHOWN int msgsnd(int id, const void *message, size_t n, int flags)
{
    struct attempt t = {
        SYS_msgsnd, {id, (long)message, (long)n, flags | IPC_NOWAIT}, {EAGAIN, EAGAIN}, 0};
    return virtual_in() && (flags & IPC_NOWAIT) == 0
               ? (int)go(&t, SIM_NEVER, "a queue", EAGAIN)
               : (int)virtual_done(OPENLY(REAL(msgsnd)(id, message, n, flags)));
}

SHOWN ssize_t msgrcv(int id, void *message, size_t n, long type, int flags)
{
    struct attempt t = {
        SYS_msgrcv, {id, (long)message, (long)n, type, flags | IPC_NOWAIT}, {ENOMSG, EAGAIN}, 0};
    return virtual_in() && (flags & IPC_NOWAIT) == 0
               ? go(&t, SIM_NEVER, "a queue", EAGAIN)
               : virtual_done(OPENLY(REAL(msgrcv)(id, message, n, type, flags)));
}

SHOWN int msgctl(int id, int command, struct msqid_ds *arg)
{
    return (int)virtual_done(OPENLY(REAL(msgctl)(id, command, arg)));
}

/* ---- POSIX ---- */

/* The kernel waits until a time that is over: not at all. One without O_NONBLOCK says ETIMEDOUT
 * then, and one with it EAGAIN, which is an end. */
static const struct timespec over = {0, 0};

static long pass(long number, mqd_t queue, void *message, size_t n, void *priority, uint64_t until)
{
    struct attempt t = {number,
                        {queue, (long)message, (long)n, (long)priority, (long)&over},
                        {ETIMEDOUT, ETIMEDOUT},
                        0};
    return go(&t, until, "a queue", ETIMEDOUT);
}

static int send_until(mqd_t queue, const char *message, size_t n, unsigned priority, uint64_t until)
{
    return (int)pass(SYS_mq_timedsend, queue, (void *)(uintptr_t)message, n,
                     (void *)(uintptr_t)priority, until);
}

SHOWN int mq_timedsend(mqd_t queue, const char *message, size_t n, unsigned priority,
                       const struct timespec *t)
{
    return virtual_in() ? send_until(queue, message, n, priority, virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(mq_timedsend)(queue, message, n, priority, t));
}

SHOWN int mq_send(mqd_t queue, const char *message, size_t n, unsigned priority)
{
    return virtual_in() ? send_until(queue, message, n, priority, SIM_NEVER)
                        : OPENLY(REAL(mq_send)(queue, message, n, priority));
}

SHOWN ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t n,
                              unsigned *restrict priority, const struct timespec *restrict t)
{
    return virtual_in() ? pass(SYS_mq_timedreceive, queue, message, n, priority,
                               virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(mq_timedreceive)(queue, message, n, priority, t));
}

SHOWN ssize_t mq_receive(mqd_t queue, char *message, size_t n, unsigned *priority)
{
    return virtual_in() ? pass(SYS_mq_timedreceive, queue, message, n, priority, SIM_NEVER)
                        : OPENLY(REAL(mq_receive)(queue, message, n, priority));
}
