/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens an execution context: an image that is a shared object of this machine, or one of
 * `pinwheel cc --image` for RV32 cores, which its ELF header tells; HPU memory; a context to run
 * on.
 */
#include "raw/load.h"

#include "raw/message.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STACK = 65536 };

static const struct hpu_shared *const hpu = &pinwheel_hpu_shared;
static const char *const kinds[] = {"header", "payload", "completion"};

static int fail(char error[RAW_ERROR], const char *image, const char *why)
{
    snprintf(error, RAW_ERROR, "--image %.80s: %.150s", image, why);
    return -1;
}

/* Returns the machine that an ELF file is for; -1 with the error set. */
static int machine_of(const char *path, char error[RAW_ERROR])
{
    unsigned char head[20];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return fail(error, path, strerror(errno));
    }
    size_t n = fread(head, 1, sizeof(head), file);
    fclose(file);
    if (n != sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0) {
        return fail(error, path, "is no ELF file");
    }
    return head[18] | head[19] << 8;
}

/* A segment that lies beyond the end of a shared object ends the process when it is touched, so
 * that is looked for before. What the segments hold is the user's program, and trusted. */
static int check_segments(const char *path, char error[RAW_ERROR])
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -1;
    if (fd < 0 || fstat(fd, &file) != 0 || pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(segment)) {
        goto end;
    }
    uint64_t size = (uint64_t)file.st_size;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + (uint64_t)i * sizeof(segment);
        if (at > size || pread(fd, &segment, sizeof(segment), (off_t)at) != sizeof(segment) ||
            segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
            goto end;
        }
    }
    rc = 0;
end:
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? 0
                   : fail(error, path, "is no whole shared object: a segment is beyond its end");
}

static int open_native(struct raw_context *c, const char *const names[3], char error[RAW_ERROR])
{
    char path[4096];
    const char *image = c->options.image;
    /* dlopen() looks for a name without a slash elsewhere */
    snprintf(path, sizeof(path), "%s%s", strchr(image, '/') != NULL ? "" : "./", image);
    if (check_segments(path, error) != 0) {
        return -1;
    }
    c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (c->library == NULL) {
        return fail(error, image, dlerror());
    }
    int found = 0;
    for (int k = 0; k < 3; k++) {
        c->handler[k] = dlsym(c->library, names[k]);
        c->has[k] = c->handler[k] != NULL;
        found += c->has[k];
    }
    if (found == 0) {
        snprintf(error, RAW_ERROR, "--image %.80s: has none of the functions %.40s, %.40s, %.40s",
                 image, names[0], names[1], names[2]);
        return -1;
    }
    return 0;
}

static int open_device(struct raw_context *c, const char *const names[3], char error[RAW_ERROR])
{
    struct rv32_error why = {""};
    const struct rv32_timing *timing = hpu->timing_find(c->options.timing);
    if (timing == NULL) {
        return fail(error, c->options.image, "there is no such timing of RV32 cores");
    }
    c->code_device = hpu->device_create(STACK, timing, c->options.budget_us);
    if (c->code_device == NULL) {
        return fail(error, c->options.image, "no memory");
    }
    if (hpu->device_open(c->code_device, c->options.image, names, c->code, &why) != 0) {
        return fail(error, c->options.image, why.text);
    }
    for (int k = 0; k < 3; k++) {
        c->has[k] = c->code[k].pc != 0;
    }
    c->device = true;
    return 0;
}

static int open_memory(struct raw_context *c, char error[RAW_ERROR])
{
    int64_t budget = c->options.budget_us * 1000;
    c->state = hpu->mem_create(c->options.state);
    c->pool = hpu->pool_create(1, STACK);
    c->exec = calloc(1, sizeof(*c->exec));
    if (posix_memalign((void **)&c->single, 64, sizeof(*c->single)) != 0) {
        c->single = NULL;
    }
    if (c->state == NULL || c->pool == NULL || c->exec == NULL || c->single == NULL) {
        return fail(error, c->options.image, "no memory for its handlers");
    }
    memset(c->single, 0, sizeof(*c->single));
    if (!c->device && budget != 0) {
        c->watchdog = hpu->watchdog_start(c->pool, budget);
        if (c->watchdog == NULL) {
            return fail(error, c->options.image, "its handlers cannot be watched");
        }
    }
    c->exec->env = (struct hpu_env){.state = c->state->base,
                                    .state_length = c->state->length,
                                    .code = c->device ? c->code : NULL,
                                    .ops = &raw_context_ops,
                                    .owner = c};
    return 0;
}

int raw_context_open(struct raw_context *c, const struct raw_context_options *options,
                     char error[RAW_ERROR])
{
    char name[3][RAW_NAME + 16];
    const char *const names[3] = {name[0], name[1], name[2]};
    *c = (struct raw_context){.options = *options};
    list_init(&c->ages);
    snprintf(c->name, sizeof(c->name), "%s", options->name);
    if (hpu->size != sizeof(*hpu) || hpu->exec_size != sizeof(struct hpu_exec)) {
        return fail(error, options->image, "libportals is of another build than this program");
    }
    for (int k = 0; k < 3; k++) {
        snprintf(name[k], sizeof(name[k]), "%.31s_%s", options->prefix, kinds[k]);
    }
    int machine = machine_of(options->image, error);
    if (machine < 0) {
        return -1;
    }
    if (machine != EM_X86_64 && machine != EM_RISCV) {
        return fail(error, options->image, "is neither for x86-64 nor for RV32");
    }
    int rc = machine == EM_RISCV ? open_device(c, names, error) : open_native(c, names, error);
    return rc == 0 ? open_memory(c, error) : -1;
}

void raw_context_close(struct raw_context *c)
{
    struct raw_message *m;
    while ((m = LIST_FIRST(struct raw_message, &c->ages, link)) != NULL) {
        raw_message_end(c, m);
    }
    hpu->watchdog_stop(c->watchdog);
    hpu->pool_destroy(c->pool);
    hpu->mem_destroy(c->state);
    hpu->device_destroy(c->code_device);
    free(c->exec);
    free(c->single);
    if (c->library != NULL) {
        dlclose(c->library);
    }
}
