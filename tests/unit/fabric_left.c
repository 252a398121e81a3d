/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes leave behind in the folder of segments: the names of those that died in network
 * namespaces which are gone, the locks that their children keep. All of it is given back, and
 * nothing of the living. What they leave in each other's segments is in fabric_slots.c.
 */
#include "fabric_folder.h"

#include "fabric/shm/names.h"
#include "fabric/shm/segment.h"
#include "fabric/shm/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NID = 0x7f000001, PID = 77 };

static uint64_t cookie = 0x1234567890abcdef;

static unsigned names(void)
{
    unsigned n = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

/* ---- owners: processes of which each has a segment ---- */

static struct segment *create(uint32_t pid)
{
    struct reason why = {""};
    struct segment *s = NULL;
    struct segment_info info = {.magic = SEGMENT_MAGIC,
                                .version = SEGMENT_VERSION,
                                .header_bytes = sizeof(struct segment_header),
                                .incarnation = 1,
                                .cookie = cookie,
                                .cookie_at = (uint64_t)(uintptr_t)&cookie,
                                .nid = NID,
                                .pid = pid,
                                .slots = 1,
                                .ring_lines = 16,
                                .cells = 4,
                                .cells_first = 2,
                                .cell_size = PACKET};
    owner_describe(&info);
    info.slot_bytes = slot_size(info.ring_lines, info.cells, info.cell_size);
    info.file_bytes = SEGMENT_SLOTS_AT + info.slot_bytes;
    return segment_create(&options, &info, &s, &why) == 0 ? s : NULL;
}

static int open_code(uint32_t pid)
{
    struct reason why = {""};
    struct segment *s;
    int rc = segment_open(&options, NID, pid, &s, &why);
    if (rc == 0) {
        segment_release(s, false);
    }
    return rc;
}

struct owner {
    pid_t process, child; /* child: one that was made past libc, or 0 */
    int said, hears;
};

/* What the owner does before, and after it has made its segment. */
enum deed { NOTHING, LEAVES_CHILD, LEAVES_CHILD_AND_EXECS };

static _Noreturn void be_owner(int flags, enum deed deed, int say, int hear)
{
    pid_t child = 0;
    char word;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (flags != 0 && unshare(flags) != 0 && unshare(flags | CLONE_NEWUSER) != 0) {
        _exit(77);
    }
    if ((flags & CLONE_NEWPID) != 0) {
        pid_t inner = fork(); /* the first of the new namespace */
        if (inner != 0) {
            waitpid(inner, NULL, 0);
            _exit(0);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    if (create(PID) == NULL) {
        _exit(1);
    }
    if (deed != NOTHING) {
        child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) { /* until this test is no more, however it ends */
            struct pollfd end = {.fd = hear};
            poll(&end, 1, -1);
            _exit(0);
        }
    }
    if (write(say, &child, sizeof(child)) != sizeof(child)) {
        _exit(1);
    }
    if (deed == LEAVES_CHILD_AND_EXECS && read(hear, &word, 1) == 1) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
    }
    for (;;) {
        pause();
    }
}

static bool begin(struct owner *o, int flags, enum deed deed)
{
    int said[2], hears[2];
    assert_true(pipe(said) == 0 && pipe(hears) == 0);
    o->process = fork();
    if (o->process == 0) {
        close(said[0]);
        close(hears[1]);
        be_owner(flags, deed, said[1], hears[0]);
    }
    close(said[1]);
    close(hears[0]);
    o->said = said[0];
    o->hears = hears[1];
    if (read(o->said, &o->child, sizeof(o->child)) == sizeof(o->child)) {
        return true;
    }
    int status;
    waitpid(o->process, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
    return false;
}

/* Dead, but its parent, which is this process, has not asked for it yet. */
static void make_zombie(const struct owner *o)
{
    siginfo_t info;
    assert_int_equal(kill(o->process, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)o->process, &info, WEXITED | WNOWAIT), 0);
}

static void end(struct owner *o)
{
    kill(o->process, SIGKILL);
    waitpid(o->process, NULL, 0);
    if (o->child != 0) {
        kill(o->child, SIGKILL);
    }
    close(o->said);
    close(o->hears);
}

/* ---- network namespaces that are gone ---- */

/* One who makes a segment removes those that died in other network namespaces, and leaves alone
 * those that live there, and what only looks like a segment. */
static void names_of_other_namespaces(void **state)
{
    struct owner dead, alive;
    char other[128];
    if (!begin(&dead, CLONE_NEWNET, NOTHING)) {
        skip();
    }
    assert_true(begin(&alive, CLONE_NEWNET, NOTHING));
    snprintf(other, sizeof(other), "%s/pinwheel-00000000-f0000000-7f000001-77", directory);
    FILE *f = fopen(other, "w"); /* of another kernel */
    assert_non_null(f);
    fclose(f);
    assert_int_equal(names(), 3);
    end(&dead);
    assert_int_equal(names(), 3);
    struct segment *mine = create(PID);
    assert_non_null(mine);
    assert_int_equal(names(), 3);
    segment_release(mine, true);
    end(&alive);
    mine = create(PID);
    assert_int_equal(names(), 2);
    segment_release(mine, true);
    assert_int_equal(unlink(other), 0);
}

/* ---- locks that children keep ---- */

static void the_address_is_free(void)
{
    assert_int_equal(open_code(PID), -ENOENT);
    struct segment *mine = create(PID);
    assert_non_null(mine);
    assert_int_equal(names(), 1);
    segment_release(mine, true);
    assert_int_equal(names(), 0);
}

static void a_child_outlives_its_parent(void **state)
{
    struct owner o;
    assert_true(begin(&o, 0, LEAVES_CHILD));
    assert_int_equal(open_code(PID), 0);
    assert_null(create(PID));
    make_zombie(&o);
    the_address_is_free();
    end(&o);
    assert_true(begin(&o, 0, LEAVES_CHILD));
    assert_int_equal(open_code(PID), 0);
    assert_int_equal(kill(o.process, SIGKILL), 0);
    assert_int_equal(waitpid(o.process, NULL, 0), o.process);
    assert_int_equal(kill(o.child, 0), 0);
    the_address_is_free();
    end(&o);
}

/* A peer that has it open sees that its owner is dead. */
static void a_peer_sees_it(void **state)
{
    struct reason why = {""};
    struct owner o;
    struct segment *s;
    assert_true(begin(&o, 0, LEAVES_CHILD));
    assert_int_equal(segment_open(&options, NID, PID, &s, &why), 0);
    assert_true(segment_alive(s));
    make_zombie(&o);
    assert_false(segment_alive(s));
    segment_release(s, false);
    the_address_is_free();
    end(&o);
}

/* The process goes on with another program; its child has the lock. */
static void a_child_outlives_its_program(void **state)
{
    struct owner o;
    assert_true(begin(&o, 0, LEAVES_CHILD_AND_EXECS));
    assert_int_equal(open_code(PID), 0);
    assert_int_equal(write(o.hears, "", 1), 1);
    while (open_code(PID) == 0) { /* until it has */
        usleep(1000);
    }
    assert_int_equal(kill(o.process, 0), 0);
    the_address_is_free();
    end(&o);
}

/* The number of a process of another PID namespace says nothing here. */
static void other_pid_namespaces_live(void **state)
{
    struct owner o;
    if (!begin(&o, CLONE_NEWPID, NOTHING)) {
        skip();
    }
    assert_int_equal(open_code(PID), 0);
    assert_null(create(PID));
    assert_int_equal(open_code(PID), 0);
    end(&o);
    while (open_code(PID) == 0) { /* until the last of the namespace is gone */
        usleep(1000);
    }
    the_address_is_free();
}

/* ---- versions ---- */

static void another_layout_is_refused(void **state)
{
    struct reason why = {""};
    char both[64];
    struct owner o;
    struct segment *s;
    assert_true(begin(&o, 0, NOTHING));
    assert_int_equal(segment_open(&options, NID, PID, &s, &why), 0);
    s->header->info.version = SEGMENT_VERSION - 1;
    segment_release(s, false);
    assert_int_equal(segment_open(&options, NID, PID, &s, &why), -EPROTO);
    snprintf(both, sizeof(both), "version %u, this Pinwheel's is %u", SEGMENT_VERSION - 1,
             SEGMENT_VERSION);
    assert_non_null(strstr(why.text, both));
    end(&o);
    the_address_is_free();
}

/* What has the name of a peer, and is no segment, is told as what it is. */
static void what_has_a_name_is_told(void **state)
{
    struct reason why = {""};
    char path[384];
    struct segment *s;
    assert_int_equal(segment_path(&options, NID, PID, path, sizeof(path), &why), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(segment_open(&options, NID, PID, &s, &why) != 0);
    assert_non_null(strstr(why.text, "no regular file"));
    unlink(path);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_true(segment_open(&options, NID, PID, &s, &why) != 0);
    assert_non_null(strstr(why.text, "too short"));
    unlink(path);
}

/* ---- a child that ends as programs do ---- */

/* Made past libc, by a process that lives on: what it does at its exit is not its parent's end. It
 * may have its parent's number, in a PID namespace of its own. */
static void a_child_that_exits_leaves_names(void **state)
{
    static const int flags[] = {0, CLONE_NEWPID, CLONE_NEWPID | CLONE_NEWUSER};
    char path[400];
    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct segment *s = create(PID);
        assert_non_null(s);
        snprintf(path, sizeof(path), "%s", s->path);
        fflush(NULL);
        pid_t own = s->info.process;
        s->info.process = flags[i] != 0 ? 1 : own; /* as that of the first one there */
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD | flags[i], 0, 0, 0, 0);
        if (child == 0) {
            exit(0);
        }
        s->info.process = own;
        assert_true(child > 0 || flags[i] != 0); /* else namespaces are not to be had here */
        if (child > 0) {
            waitpid(child, NULL, 0);
        }
        assert_int_equal(access(path, F_OK), 0);
        segment_release(s, true);
        assert_int_equal(names(), 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_other_namespaces),
        cmocka_unit_test(a_child_outlives_its_parent),
        cmocka_unit_test(a_peer_sees_it),
        cmocka_unit_test(a_child_outlives_its_program),
        cmocka_unit_test(other_pid_namespaces_live),
        cmocka_unit_test(another_layout_is_refused),
        cmocka_unit_test(a_child_that_exits_leaves_names),
        cmocka_unit_test(what_has_a_name_is_told),
    };
    return cmocka_run_group_tests(tests, set_up_folder, tear_down_folder);
}
