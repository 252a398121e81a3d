/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what reads recordings of MPI programs, those of our recorder and traces of liballprof. An
 * input is a byte of options and the files of up to 8 ranks, with a form feed between them. What is
 * accepted becomes a schedule that `goal run` would open; what is not has an error.
 */
#include "fuzz.h"

#include "sim/goal/goal.h"
#include "sim/mpi/goal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TWICE = 1, PARTIAL = 2, NO_GAPS = 4, FILES = 8 };

static char folder[64];

static void name_of(unsigned file, char path[128])
{
    snprintf(path, 128, "%s/trace-rank-%u.txt", folder, file);
}

static void remove_all(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        char path[128];
        name_of(i, path);
        unlink(path);
    }
    rmdir(folder);
}

/* Writes the files of an input; those of the one before have gone. */
static void write_files(const uint8_t *data, size_t size)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/dev/shm/fuzz-trace-%d", getpid());
        MUST(mkdtemp(strcat(folder, "-XXXXXX")) != NULL);
        MUST(atexit(remove_all) == 0);
    }
    for (unsigned i = 0; i < FILES; i++) {
        char path[128];
        name_of(i, path);
        unlink(path);
        if (size == 0 && i > 0) {
            continue;
        }
        const uint8_t *end = size != 0 ? memchr(data, '\f', size) : NULL;
        size_t length = end != NULL ? (size_t)(end - data) : size;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        MUST(fd >= 0 && write(fd, data, length) == (ssize_t)length && close(fd) == 0);
        data += length + (end != NULL);
        size -= length + (end != NULL);
    }
}

static void check_schedule(int fd, uint32_t ranks)
{
    struct goal g;
    struct goal_error error;
    off_t size = lseek(fd, 0, SEEK_END);
    void *image = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(image != MAP_FAILED);
    MUST(goal_open_image(&g, image, (size_t)size, "schedule", &error) == 0);
    MUST(g.ranks == ranks);
    goal_close(&g);
    munmap(image, (size_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mpi_trace t;
    struct mpi_summary s;
    struct mpi_channels *channels = NULL;
    struct goal_error error = {.text = ""};
    unsigned options = size != 0 ? data[0] : 0;
    struct mpi_config c = {.blocks = (options & TWICE) != 0 ? 2 : 1,
                           .partial = (options & (PARTIAL | TWICE)) == PARTIAL,
                           .gaps = (options & NO_GAPS) == 0,
                           .scale = {1, 1}};
    write_files(data + (size != 0), size - (size != 0));
    if (mpi_open(&t, folder, &error) != 0) {
        MUST(error.text[0] != '\0');
        return 0;
    }
    int fd = memfd_create("fuzz trace", MFD_CLOEXEC);
    MUST(fd >= 0);
    int rc = mpi_survey(&t, &c, &s, &error);
    rc = rc == 0 ? mpi_balance(&t, &c, &channels, &error) : rc;
    rc = rc == 0 ? mpi_schedule(&t, &c, channels, &s, fd, NULL, &error) : rc;
    if (rc == 0) {
        check_schedule(fd, mpi_ranks(&t, &c));
    } else {
        MUST(error.text[0] != '\0');
    }
    close(fd);
    mpi_channels_free(channels);
    mpi_close(&t);
    return 0;
}
