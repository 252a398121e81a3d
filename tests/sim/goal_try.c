/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules in memory, for tests; see goal_try.h. */
#include "goal_try.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        abort();
    }
}

int try_memfd(void)
{
    int fd = memfd_create("schedule", MFD_CLOEXEC);
    must(fd >= 0, "memfd_create");
    return fd;
}

struct bytes try_contents(int fd)
{
    struct stat st;
    must(fstat(fd, &st) == 0, "fstat");
    struct bytes b = {.length = (size_t)st.st_size, .at = malloc((size_t)st.st_size + 1)};
    must(b.at != NULL, "malloc");
    must(pread(fd, b.at, b.length, 0) == (ssize_t)b.length, "pread");
    b.at[b.length] = '\0';
    return b;
}

struct bytes try_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0, path);
    struct bytes b = try_contents(fd);
    close(fd);
    return b;
}

int try_compile(const char *text, size_t length, unsigned flags, struct bytes *bin,
                struct goal_error *error)
{
    struct goal_text t = {.name = "t.goal", .at = text, .length = length, .fd = -1};
    struct goal_made made;
    int fd = try_memfd();
    int rc = goal_compile(&t, flags, fd, -1, &made, error);
    *bin = rc == 0 ? try_contents(fd) : (struct bytes){0};
    close(fd);
    return rc;
}

struct bytes try_print(const struct bytes *bin)
{
    struct goal g;
    struct goal_error error;
    struct goal_stream out;
    struct goal_printer p = {.out = &out};
    int fd = try_memfd();
    must(goal_open_image(&g, bin->at, bin->length, "image", &error) == 0, error.text);
    must(goal_stream_append(&out, fd) == 0, "goal_stream_append");
    goal_print_head(&p, g.ranks);
    for (uint32_t rank = 0; rank < g.ranks; rank++) {
        struct goal_rank r = goal_rank(&g, rank);
        must(goal_print_rank(&p, rank, &r, goal_successor_count(&g, rank)) == 0, "print");
    }
    goal_printer_free(&p);
    must(goal_stream_close(&out) == 0, "goal_stream_close");
    goal_close(&g);
    struct bytes text = try_contents(fd);
    close(fd);
    return text;
}
