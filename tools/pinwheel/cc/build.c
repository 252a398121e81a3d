/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of `pinwheel cc` (cc.h). Each compiler runs in a process of its own, and what it prints
 * goes to the user unchanged. Intermediate files are in a folder that is removed at the end.
 */
#include "cc.h"

#include "hpu/rv32/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Options of each compilation for RV32, and with --reals; docs/rv32-handlers.md says why -mtune. */
static const char *const rv32_reals[] = {"-march=rv32imafdc_zicsr", "-ffp-contract=off"};
static const char *const rv32_options[] = {
    "-march=rv32imac_zicsr", "-mabi=ilp32", "-mno-strict-align",   "-mtune=thead-c906",
    "-ffreestanding",        "-g",          "-ffunction-sections", "-w",
    "-msmall-data-limit=0"};

/* Options of handlers in C++, for both targets. They switch off features that need a run time,
 * which an HPU does not have; and a C compiler can link the object then. */
static const char *const cxx_options[] = {"-fno-exceptions", "-fno-rtti",
                                          "-fno-threadsafe-statics"};

/* By default compilers of C++ leave out of the debug information what they expect in another
 * file's. These options forbid that: the first is clang's, the second gcc's. */
static const char *const class_debug[] = {"-fstandalone-debug", "-femit-class-debug-always"};

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

/* run() returns NOT_RUN if the program was not found, or did not end by itself: then the source is
 * not to blame. */
enum { NOT_RUN = -2, NOT_FOUND = 127 };

/* Runs a program and frees the words. Returns 0, -1 if the program has reported an error, or
 * NOT_RUN. */
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
        _exit(NOT_FOUND);
    }
    if (child < 0) {
        cc_say("fork: %s", strerror(errno));
        rc = NOT_RUN;
    } else if (waitpid(child, &status, 0) != child || status != 0) {
        rc = WIFEXITED(status) && WEXITSTATUS(status) != NOT_FOUND ? -1 : NOT_RUN;
    }
    if (child > 0 && WIFSIGNALED(status)) {
        cc_say("%s: was ended by signal %d (%s)", words->word[0], WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    }
    free(words->word);
    *words = (struct cc_words){0};
    return rc;
}

/* Like run(), but the program's standard error goes to the file `path`. */
static int run_into(struct cc_words *words, const char *path)
{
    fflush(NULL);
    int before = dup(STDERR_FILENO);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool there = before >= 0 && to >= 0 && dup2(to, STDERR_FILENO) >= 0;
    int rc = there ? run(words) : -1;
    if (before >= 0) {
        dup2(before, STDERR_FILENO);
        close(before);
    }
    if (to >= 0) {
        close(to);
    }
    if (!there) {
        free(words->word);
        *words = (struct cc_words){0};
    }
    return rc;
}

/* Returns the name of an intermediate file of the i-th source. */
static const char *scratch(struct cc_job *job, char *name, size_t i, const char *what)
{
    snprintf(name, PATH_MAX, "%s/%zu.%s", job->scratch, i, what);
    return name;
}

static bool add_includes(struct cc_job *job, struct cc_words *w)
{
    return job->include[0] == '\0' || (cc_add(w, "-isystem") && cc_add(w, job->include));
}

/* Adds the user's options for both compilers that apply to the language of the i-th source. */
static bool add_options(struct cc_job *job, struct cc_words *w, size_t i)
{
    bool cxx = cc_is_cxx(job->sources.word[i]);
    return (!cxx || add_all(w, cxx_options, sizeof(cxx_options) / sizeof(cxx_options[0]))) &&
           add_list(w, &job->common) && add_list(w, cxx ? &job->cxx : &job->c);
}

static bool begin_native(struct cc_job *job, struct cc_words *w, size_t i)
{
    return cc_add(w, cc_is_cxx(job->sources.word[i]) ? job->cxx_compiler : job->compiler) &&
           add_options(job, w, i);
}

/* ---- The image ---- */

static bool begin_rv32(struct cc_job *job, struct cc_words *w)
{
    return cc_add(w, job->rv32_compiler) &&
           add_all(w, rv32_options, sizeof(rv32_options) / sizeof(rv32_options[0])) &&
           (!job->reals || add_all(w, rv32_reals, 2));
}

static int rv32_compile(struct cc_job *job, size_t i, const char *object, bool check)
{
    struct cc_words w = {0};
    char deps[PATH_MAX];
    const char *checking[] = {"-O0", "-mno-relax", "-DPTL_HANDLER_CHECK"};
    const char *noting[] = {"-MD", "-MT", job->output, "-MF", scratch(job, deps, i, "d")};
    const char *making[] = {"-c", job->sources.word[i], "-o", object};
    /* With this option destructors of static objects are registered where cc_check_constructors()
     * looks for them. */
    bool cxx = cc_is_cxx(job->sources.word[i]);
    if (!begin_rv32(job, &w) || !add_options(job, &w, i) || !add_includes(job, &w) ||
        (cxx && !cc_add(&w, "-fno-use-cxa-atexit"))) {
        return -1;
    }
    if (cxx && check && !cc_add(&w, class_debug[1])) {
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

/* Prints what the linker has printed, and explains why symbols that are missing do not exist on an
 * HPU. */
static int say_unlinked(const char *path)
{
    static const struct {
        const char *symbol, *why;
    } missing[] = {
        {"operator new", "new and delete: nothing is allocated on an HPU; what handlers keep is in "
                         "HPU memory, of a size that the host chooses"},
        {"operator delete", "delete: nothing is allocated on an HPU; a virtual destructor brings "
                            "it along, a protected one that is not virtual does not"},
        {"`__atomic_",
         "atomics: of objects of 1, 2, 4 or 8 bytes; what is larger, or a struct of "
         "another size, needs a smaller object, or a word of the state that its users "
         "take by __atomic_exchange_n() and give back by __atomic_store_n()"},
        {"`atexit'", "destructors of static objects: nothing calls them on an HPU"},
    };
    char text[4096] = "";
    bool said[sizeof(missing) / sizeof(missing[0])] = {false};
    FILE *f = fopen(path, "rb");
    while (f != NULL && fgets(text, sizeof(text), f) != NULL) {
        fputs(text, stderr);
        for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
            said[i] |= strstr(text, missing[i].symbol) != NULL;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        if (said[i]) {
            cc_say("%s", missing[i].why);
        }
    }
    return cc_say("the image is not made: handlers may call what spin_handler.h declares, and "
                  "functions of the files named here");
}

/* Links the image. The linker finds libgcc by the name of the instruction set, and has none for a
 * name with zicsr. The image has no entry point: a debugger would take the function there for the
 * outermost one. */
static int link_image(struct cc_job *job, const char *image)
{
    struct cc_words w = {0};
    char script[PATH_MAX + 32], said[PATH_MAX], calls[PATH_MAX], bytes[PATH_MAX], atomics[PATH_MAX];
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is a source */
    char(*objects)[PATH_MAX] = calloc(job->sources.count, sizeof(*objects));
    snprintf(script, sizeof(script), "-Wl,-T,%s/image.ld", job->runtime);
    const char *linking[] = {"-march=rv32imac",
                             "-nostdlib",
                             "-static",
                             "-Wl,--gc-sections,--build-id=none,-e,0,--demangle",
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
    int rc = ok && add_all(&w, making, 6) ? run_into(&w, scratch(job, said, 0, "said")) : -1;
    free(objects);
    return rc == 0 ? 0 : say_unlinked(said);
}

/* Parses an intermediate image as if it was the output; errors name the output. */
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
    int rc = cc_check_variables(job->output, image.file, image.file_size);
    if (rc == 0 && rv32_table_open(&table, &image, &error) != 0) {
        rc = cc_say("%s", error.text);
    }
    rv32_table_close(&table);
    rv32_image_close(&image);
    return rc;
}

/* ---- State structs ---- */

static bool native_checking(struct cc_job *job, struct cc_words *w, size_t i, const char *object)
{
    const char *checking[] = {"-O0", "-g",  "-w", "-DPTL_HANDLER_CHECK", "-c", job->sources.word[i],
                              "-o",  object};
    return begin_native(job, w, i) && add_includes(job, w) && add_all(w, checking, 8);
}

static int native_check(struct cc_job *job, size_t i, const char *object)
{
    for (size_t k = 0; cc_is_cxx(job->sources.word[i]) && k < 2; k++) {
        struct cc_words w = {0};
        if (native_checking(job, &w, i, object) && cc_add(&w, class_debug[k]) &&
            run_into(&w, "/dev/null") == 0) {
            return 0;
        }
    }
    struct cc_words w = {0};
    return native_checking(job, &w, i, object) ? run(&w) : -1;
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
    /* Link-time optimisation would merge the equally named image symbols of several files. */
    const char *making[] = {"-g", define, "-fno-lto", "-c", job->sources.word[i], "-o", object};
    return begin_native(job, &w, i) && add_list(&w, &job->native) && add_includes(job, &w) &&
                   add_all(&w, making, 7)
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
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is a source */
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

/* ---- The whole job ---- */

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

/* Writes the image to its place, after all checks have passed. */
static int put_in_place(struct cc_job *job, const char *image)
{
    FILE *f = fopen(job->output, "wb");
    int rc = f != NULL ? copy_file(f, image) : -1;
    if (f != NULL && fclose(f) != 0) {
        rc = -1;
    }
    return rc == 0 ? 0 : cc_say("%s: %s", job->output, strerror(errno));
}

/* True if this machine's compiler accepts a source, with up to two more options; NULL: none. */
static bool compiles_here(struct cc_job *job, size_t i, const char *option, const char *other)
{
    struct cc_words w = {0};
    return begin_native(job, &w, i) && add_list(&w, &job->native) && add_includes(job, &w) &&
           cc_add(&w, "-w") && (option == NULL || cc_add(&w, option)) &&
           (other == NULL || cc_add(&w, other)) && cc_add(&w, "-fsyntax-only") &&
           cc_add(&w, job->sources.word[i]) && run_into(&w, "/dev/null") == 0;
}

/* Explains why the RV32 compiler has refused a source. If this machine's compiler accepts it, the
 * source needs something that the cores lack; if it accepts it with exceptions or type information,
 * the source uses those; else the source is wrong. */
static int say_uncompiled(struct cc_job *job, size_t i)
{
    const char *name = job->sources.word[i];
    bool cxx = cc_is_cxx(name);
    if (compiles_here(job, i, NULL, NULL)) {
        return cc_say("%s: is compiled for this machine, but not for RV32, which has 32 bits and "
                      "%s: handlers have files of their own, which include spin_handler.h%s",
                      name, cxx ? "neither libc nor libstdc++" : "no libc",
                      cxx ? " and headers as <stdint.h>; <cstdint> and its like are not there"
                          : "");
    }
    bool both = cxx && compiles_here(job, i, "-fexceptions", "-frtti");
    bool thrown = both && !compiles_here(job, i, "-frtti", NULL);
    bool typed = both && !compiles_here(job, i, "-fexceptions", NULL);
    if (thrown) {
        cc_say("%s: exceptions (throw, try, catch) are not for handlers, which tell of an error by "
               "what they return: FAIL",
               name);
    }
    if (typed) {
        cc_say(
            "%s: type information (dynamic_cast, typeid) is not for handlers; a virtual function "
            "or a field of the object tells what it is",
            name);
    }
    return thrown || typed ? -1 : cc_say("%s: is not compiled", name);
}

static int check_constructors(struct cc_job *job)
{
    char object[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; i < job->sources.count; i++) {
        if (cc_is_cxx(job->sources.word[i]) &&
            cc_check_constructors(job->sources.word[i], scratch(job, object, i, "rv32.o")) != 0) {
            rc = -1;
        }
    }
    return rc;
}

static int build(struct cc_job *job)
{
    char image[PATH_MAX], object[PATH_MAX];
    scratch(job, image, 0, "image.elf");
    for (size_t i = 0; i < job->sources.count; i++) {
        int rc = rv32_compile(job, i, scratch(job, object, i, "rv32.o"), false);
        if (rc != 0) {
            return rc == NOT_RUN ? -1 : say_uncompiled(job, i);
        }
    }
    /* A static object with a constructor is reported by this check first; later checks may report
     * it, too. */
    bool constructed = check_constructors(job) != 0;
    if (compare(job) != 0 || link_image(job, image) != 0 || check_image(job, image) != 0 ||
        constructed || (job->depfile != NULL && write_depfile(job) != 0)) {
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
