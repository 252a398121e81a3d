/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of `pinwheel cc` (cc.h). Each compiler run is a process; what it says goes to the
 * user as it is. Files that are made on the way lie in a folder that is removed at the end.
 */
#include "cc.h"

#include "hpu/rv32/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What every compilation for the cores has in common. The tuning is that of a core which loads
 * misaligned words at once, as these do: with the others, -mno-strict-align alone leaves copies
 * of unknown alignment byte by byte (docs/rv32-handlers.md has the figures). */
static const char *const rv32_options[] = {
    "-march=rv32imac_zicsr", "-mabi=ilp32", "-mno-strict-align",   "-mtune=thead-c906",
    "-ffreestanding",        "-g",          "-ffunction-sections", "-w",
    "-msmall-data-limit=0"};

static bool add_all(struct cc_words *to, const char *const *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!cc_add(to, from[i])) {
            return false;
        }
    }
    return true;
}

static bool add_list(struct cc_words *to, const struct cc_words *from)
{
    return add_all(to, from->word, from->count);
}

/* Runs a program and frees the words. */
static int run(struct cc_words *words)
{
    int status = 0, rc = 0;
    pid_t child = fork();
    if (child == 0) {
        execvp(words->word[0], (char *const *)words->word);
        int error = errno;
        cc_say("%s: %s%s", words->word[0], strerror(error),
               error == ENOENT && strstr(words->word[0], "riscv") != NULL
                   ? "; it is in the package gcc-riscv64-unknown-elf"
                   : "");
        _exit(127);
    }
    if (child < 0) {
        rc = cc_say("fork: %s", strerror(errno));
    } else if (waitpid(child, &status, 0) != child || status != 0) {
        rc = -1; /* it has said why */
    }
    free(words->word);
    *words = (struct cc_words){0};
    return rc;
}

/* The name of what is made on the way for the i-th source. */
static const char *scratch(struct cc_job *job, char *name, size_t i, const char *what)
{
    snprintf(name, PATH_MAX, "%s/%zu.%s", job->scratch, i, what);
    return name;
}

static bool add_includes(struct cc_job *job, struct cc_words *w)
{
    return job->include[0] == '\0' || (cc_add(w, "-isystem") && cc_add(w, job->include));
}

/* ---- The image ---- */

static bool begin_rv32(struct cc_job *job, struct cc_words *w)
{
    return cc_add(w, job->rv32_compiler) &&
           add_all(w, rv32_options, sizeof(rv32_options) / sizeof(rv32_options[0]));
}

static int rv32_compile(struct cc_job *job, size_t i, const char *object, bool check)
{
    struct cc_words w = {0};
    char deps[PATH_MAX];
    const char *checking[] = {"-O0", "-mno-relax", "-DPTL_HANDLER_CHECK"};
    const char *noting[] = {"-MD", "-MT", job->output, "-MF", scratch(job, deps, i, "d")};
    const char *making[] = {"-c", job->sources.word[i], "-o", object};
    if (!begin_rv32(job, &w) || !add_list(&w, &job->common) || !add_includes(job, &w)) {
        return -1;
    }
    bool ok = check ? add_all(&w, checking, 3) : job->depfile == NULL || add_all(&w, noting, 5);
    return ok && add_all(&w, making, 4) ? run(&w) : -1;
}

static int rv32_runtime(struct cc_job *job, const char *name, const char *object)
{
    struct cc_words w = {0};
    char source[PATH_MAX + 16];
    snprintf(source, sizeof(source), "%s/%s", job->runtime, name);
    const char *making[] = {"-O2", "-c", source, "-o", object};
    return begin_rv32(job, &w) && add_includes(job, &w) && add_all(&w, making, 5) ? run(&w) : -1;
}

/* The linker finds libgcc by the name of the instruction set, and knows none with zicsr. An image
 * has no entry point: a debugger would take the function there for the outermost one. */
static int link_image(struct cc_job *job, const char *image)
{
    struct cc_words w = {0};
    char script[PATH_MAX + 32], calls[PATH_MAX], bytes[PATH_MAX], atomics[PATH_MAX];
    char(*objects)[PATH_MAX] = calloc(job->sources.count, sizeof(*objects));
    snprintf(script, sizeof(script), "-Wl,-T,%s/image.ld", job->runtime);
    const char *linking[] = {"-march=rv32imac",
                             "-nostdlib",
                             "-static",
                             "-Wl,--gc-sections,--build-id=none,-e,0",
                             "-Wl,--wrap=__divdi3,--wrap=__moddi3",
                             script};
    const char *making[] = {scratch(job, calls, 0, "calls.rv32.o"),
                            scratch(job, bytes, 0, "bytes.rv32.o"),
                            scratch(job, atomics, 0, "atomics.rv32.o"),
                            "-lgcc",
                            "-o",
                            image};
    if (rv32_runtime(job, "calls.S", calls) != 0 || rv32_runtime(job, "bytes.c", bytes) != 0 ||
        rv32_runtime(job, "atomics.c", atomics) != 0) {
        free(objects);
        return -1;
    }
    bool ok = objects != NULL && begin_rv32(job, &w) && add_all(&w, linking, 6);
    for (size_t i = 0; ok && i < job->sources.count; i++) {
        ok = cc_add(&w, scratch(job, objects[i], i, "rv32.o"));
    }
    int rc = ok && add_all(&w, making, 6) ? run(&w) : -1;
    free(objects);
    if (rc != 0) {
        cc_say("the image is not made: handlers may call what spin_handler.h declares, and "
               "functions of the files named here; atomics are of 1, 2, 4 or 8 bytes");
    }
    return rc;
}

/* Names static data that handlers could write: it would be one for all messages natively,
 * and one for each core here. */
static int check_variables(struct cc_job *job, const struct rv32_image *image)
{
    int found = 0;
    size_t names;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)image->file, image->file_size);
    Elf_Scn *section = NULL;
    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0) {
        elf_end(elf);
        return cc_say("%s: its sections cannot be read", job->output);
    }
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr h, of;
        GElf_Sym s;
        const Elf_Data *data = elf_getdata(section, NULL);
        bool symbols = gelf_getshdr(section, &h) != NULL && h.sh_type == SHT_SYMTAB && data != NULL;
        for (int i = 0; symbols && gelf_getsym((Elf_Data *)data, i, &s) != NULL; i++) {
            Elf_Scn *in = elf_getscn(elf, s.st_shndx);
            if (GELF_ST_TYPE(s.st_info) == STT_OBJECT && in != NULL &&
                gelf_getshdr(in, &of) != NULL && (of.sh_flags & SHF_WRITE) != 0) {
                found++;
                cc_say("static variable %s: can be written; static data of handlers is const, "
                       "what they share is in HPU memory",
                       elf_strptr(elf, h.sh_link, s.st_name));
            }
        }
    }
    elf_end(elf);
    return found == 0 ? 0 : -1;
}

/* Reads the image as what it will be; its name in a message is that of the result. */
static int parse_image(struct cc_job *job, const char *path, struct rv32_image *image,
                       struct rv32_error *error)
{
    *image = (struct rv32_image){0};
    FILE *f = fopen(path, "rb");
    char *bytes = f != NULL ? malloc(RV32_FILE_MAX + 1) : NULL;
    size_t size = bytes != NULL ? fread(bytes, 1, RV32_FILE_MAX + 1, f) : 0;
    int rc = bytes == NULL ? rv32_fail(error, "%s: %s", path, strerror(errno))
             : size > RV32_FILE_MAX
                 ? rv32_fail(error, "%s: is larger than %d bytes", job->output, RV32_FILE_MAX)
                 : rv32_image_parse(image, job->output, bytes, size, error);
    free(bytes);
    if (f != NULL) {
        fclose(f);
    }
    return rc;
}

static int check_image(struct cc_job *job, const char *path)
{
    struct rv32_image image;
    struct rv32_table table = {0};
    struct rv32_error error = {""};
    if (parse_image(job, path, &image, &error) != 0) {
        return cc_say("%s", error.text);
    }
    int rc = check_variables(job, &image);
    if (rc == 0 && rv32_table_open(&table, &image, &error) != 0) {
        rc = cc_say("%s", error.text);
    }
    rv32_table_close(&table);
    rv32_image_close(&image);
    return rc;
}

/* ---- State structs ---- */

static int native_check(struct cc_job *job, size_t i, const char *object)
{
    struct cc_words w = {0};
    const char *checking[] = {"-O0", "-g",  "-w", "-DPTL_HANDLER_CHECK", "-c", job->sources.word[i],
                              "-o",  object};
    return cc_add(&w, job->compiler) && add_list(&w, &job->common) && add_includes(job, &w) &&
                   add_all(&w, checking, 8)
               ? run(&w)
               : -1;
}

static int compare(struct cc_job *job)
{
    char native[PATH_MAX], rv32[PATH_MAX];
    int rc = 0, handlers = 0;
    for (size_t i = 0; i < job->sources.count; i++) {
        scratch(job, native, i, "check.o");
        scratch(job, rv32, i, "check.rv32.o");
        if (rv32_compile(job, i, rv32, true) != 0 || native_check(job, i, native) != 0) {
            return -1;
        }
        if (cc_compare(job->sources.word[i], native, rv32, &handlers) != 0) {
            rc = -1;
        }
    }
    return rc != 0 || handlers != 0
               ? rc
               : cc_say("%s: registers no handler; PTL_HANDLER(its name); behind one does",
                        job->sources.word[0]);
}

/* ---- The object of this machine ---- */

static int native_compile(struct cc_job *job, size_t i, const char *image, const char *object)
{
    struct cc_words w = {0};
    char define[PATH_MAX + 64];
    snprintf(define, sizeof(define), "-DPTL_HANDLER_IMAGE_FILE=\"%s\"", image);
    const char *making[] = {"-g", define, "-c", job->sources.word[i], "-o", object};
    return cc_add(&w, job->compiler) && add_list(&w, &job->common) && add_list(&w, &job->native) &&
                   add_includes(job, &w) && add_all(&w, making, 6)
               ? run(&w)
               : -1;
}

static int native_object(struct cc_job *job, const char *image)
{
    struct cc_words w = {0};
    size_t count = job->sources.count;
    if (count == 1) {
        return native_compile(job, 0, image, job->output);
    }
    char(*objects)[PATH_MAX] = calloc(count, sizeof(*objects));
    const char *linking[] = {job->compiler, "-nostdlib", "-r", "-o", job->output};
    bool ok = objects != NULL && add_all(&w, linking, 5);
    for (size_t i = 0; ok && i < count; i++) {
        scratch(job, objects[i], i, "o");
        ok = native_compile(job, i, image, objects[i]) == 0 && cc_add(&w, objects[i]);
    }
    int rc = ok ? run(&w) : -1;
    free(objects);
    return rc;
}

/* ---- All of it ---- */

static int copy_file(FILE *to, const char *from)
{
    char bytes[4096];
    size_t n;
    FILE *f = fopen(from, "rb");
    if (f == NULL) {
        return -1;
    }
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0) {
        fwrite(bytes, 1, n, to);
    }
    fclose(f);
    return 0;
}

static int write_depfile(struct cc_job *job)
{
    char name[PATH_MAX];
    FILE *f = fopen(job->depfile, "wb");
    int rc = f != NULL ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < job->sources.count; i++) {
        rc = copy_file(f, scratch(job, name, i, "d"));
    }
    if (f != NULL && fclose(f) != 0) {
        rc = -1;
    }
    return rc == 0 ? 0 : cc_say("%s: %s", job->depfile, strerror(errno));
}

/* Only what has passed all checks gets there. */
static int put_in_place(struct cc_job *job, const char *image)
{
    FILE *f = fopen(job->output, "wb");
    int rc = f != NULL ? copy_file(f, image) : -1;
    if (f != NULL && fclose(f) != 0) {
        rc = -1;
    }
    return rc == 0 ? 0 : cc_say("%s: %s", job->output, strerror(errno));
}

/* Whether a command succeeds; what it has to say is not told. */
static bool succeeds(struct cc_words *w)
{
    bool ok = cc_add(w, "-fsyntax-only");
    fflush(NULL);
    int before = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ok = ok && before >= 0 && nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0;
    ok = ok && run(w) == 0;
    if (before >= 0) {
        dup2(before, STDERR_FILENO);
        close(before);
    }
    if (nowhere >= 0) {
        close(nowhere);
    }
    return ok;
}

/* After the compiler has said what is wrong: a source that this machine's compiler takes lacks
 * what the cores lack, any other one is simply wrong. */
static int say_uncompiled(struct cc_job *job, size_t i)
{
    struct cc_words w = {0};
    bool here = cc_add(&w, job->compiler) && add_list(&w, &job->common) &&
                add_list(&w, &job->native) && add_includes(job, &w) && cc_add(&w, "-w") &&
                cc_add(&w, job->sources.word[i]) && succeeds(&w);
    return here
               ? cc_say("%s: is compiled for this machine, but not for RV32, which has 32 bits and "
                        "no libc: handlers have files of their own, which include spin_handler.h",
                        job->sources.word[i])
               : cc_say("%s: is not compiled", job->sources.word[i]);
}

static int build(struct cc_job *job)
{
    char image[PATH_MAX], object[PATH_MAX];
    scratch(job, image, 0, "image.elf");
    for (size_t i = 0; i < job->sources.count; i++) {
        if (rv32_compile(job, i, scratch(job, object, i, "rv32.o"), false) != 0) {
            return say_uncompiled(job, i);
        }
    }
    if (compare(job) != 0 || link_image(job, image) != 0 || check_image(job, image) != 0 ||
        (job->depfile != NULL && write_depfile(job) != 0)) {
        return -1;
    }
    return job->image_only ? put_in_place(job, image) : native_object(job, image);
}

static void remove_folder(const char *folder)
{
    char name[2 * PATH_MAX];
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
        unlink(name);
    }
    if (d != NULL) {
        closedir(d);
    }
    rmdir(folder);
}

int cc_build(struct cc_job *job)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(job->scratch, sizeof(job->scratch), "%s/pinwheel-cc-XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    if (mkdtemp(job->scratch) == NULL) {
        return cc_say("%s: %s", job->scratch, strerror(errno));
    }
    int rc = build(job);
    remove_folder(job->scratch);
    return rc;
}
