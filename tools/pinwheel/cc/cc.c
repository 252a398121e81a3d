/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel cc`; see cc.h. They are a subset of a compiler's options. */
#include "cc.h"

#include "base/nearest.h"

#include "pinwheel/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cc_say(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "pinwheel cc: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return -1;
}

bool cc_add(struct cc_words *words, const char *word)
{
    const char **more = realloc(words->word, (words->count + 2) * sizeof(*more));
    if (more == NULL) {
        cc_say("no memory");
        return false;
    }
    words->word = more;
    words->word[words->count++] = word;
    words->word[words->count] = NULL;
    return true;
}

static void help(void)
{
    printf(
        "usage: pinwheel cc [OPTION]... FILE.c|FILE.cc...\n\n"
        "Compiles handlers for this machine and for the RV32 cores. The result is an object to\n"
        "link with; the image for the cores is in it, and PINWHEEL_HPU=rv32 runs it.\n\n"
        "options:\n"
        "  -o FILE              the result; default: FILE.o, with --image FILE.elf\n"
        "  --image              make the image only, as `pinwheel hpu` takes it\n"
        "  --reals              use the extensions F and D: for cores of PINWHEEL_HPU_TIMING=arm\n"
        "  --depfile FILE       write there, for make, what the result depends on\n"
        "  --cc PROGRAM         the compiler of this machine; default: $CC, else cc\n"
        "  --cxx PROGRAM        the one for C++ (.cc, .cpp, .cxx); default: $CXX, else c++\n"
        "  --cross-cc PROGRAM   that for RV32, of both; default: riscv64-unknown-elf-gcc\n"
        "  -I, -D, -U, -O, -std=, -include    as of a compiler, for both; default -O2;\n"
        "                       -std= of C++ is for sources in C++, and of C for those in C\n"
        "  -f..., -m..., -W...  for the compiler of this machine only\n");
}

/* Returns the value of an option "-oFILE", "-o FILE" or "--image=X"; NULL: the word is not this
 * option. */
static const char *value_of(char **argv, int *at, const char *option)
{
    size_t n = strlen(option);
    const char *word = argv[*at];
    if (strncmp(word, option, n) != 0) {
        return NULL;
    }
    if (option[1] == '-') {
        if (word[n] != '=' && word[n] != '\0') {
            return NULL;
        }
        n += word[n] == '=';
    }
    if (word[n] != '\0') {
        return word + n;
    }
    const char *next = argv[*at + 1];
    *at += next != NULL;
    return next != NULL ? next : "";
}

static int add_common(struct cc_job *job, char **argv, int *at)
{
    static const char *const joined[] = {"-I", "-D", "-U", "-include"};
    const char *word = argv[*at];
    for (size_t i = 0; i < sizeof(joined) / sizeof(joined[0]); i++) {
        const char *value = value_of(argv, at, joined[i]);
        if (value == NULL) {
            continue;
        }
        if (value[0] == '\0') {
            return cc_say("%s: needs a value", word);
        }
        return cc_add(&job->common, joined[i]) && cc_add(&job->common, value) ? 1 : -1;
    }
    if (strncmp(word, "-std=", 5) == 0) {
        return cc_add(strstr(word, "++") != NULL ? &job->cxx : &job->c, word) ? 1 : -1;
    }
    if (strncmp(word, "-O", 2) == 0) {
        return cc_add(&job->common, word) ? 1 : -1;
    }
    if (strncmp(word, "-f", 2) == 0 || strncmp(word, "-m", 2) == 0 || strncmp(word, "-W", 2) == 0 ||
        strncmp(word, "-g", 2) == 0) {
        return cc_add(&job->native, word) ? 1 : -1;
    }
    return 0;
}

/* Returns 0, -1 after an error, 1 after help was printed. */
static int parse(struct cc_job *job, int argc, char **argv)
{
    struct {
        const char *name, **value;
    } options[] = {{"--depfile", &job->depfile},
                   {"--cc", &job->compiler},
                   {"--cxx", &job->cxx_compiler},
                   {"--cross-cc", &job->rv32_compiler},
                   {"-o", &job->output}};
    for (int i = 1; i < argc; i++) {
        const char *value = NULL, *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help();
            return 1;
        }
        if (strcmp(word, "--image") == 0) {
            job->image_only = true;
            continue;
        }
        if (strcmp(word, "--reals") == 0) {
            job->reals = true;
            continue;
        }
        for (size_t k = 0; value == NULL && k < sizeof(options) / sizeof(options[0]); k++) {
            value = value_of(argv, &i, options[k].name);
            if (value != NULL) {
                *options[k].value = value;
            }
        }
        if (value != NULL && value[0] == '\0') {
            return cc_say("%s: needs a value", word);
        }
        int taken = value != NULL ? 1 : word[0] == '-' ? add_common(job, argv, &i) : 0;
        if (taken < 0) {
            return -1;
        }
        if (taken == 0 && word[0] == '-') {
            struct nearest near = nearest_to(word, strcspn(word, "="));
            char text[80];
            nearest_try(&near, "--image");
            nearest_try(&near, "--reals");
            for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
                nearest_try(&near, options[k].name);
            }
            return cc_say("unknown option %s; see `pinwheel cc --help`%s", word,
                          nearest_text(&near, text));
        }
        if (taken == 0 && !cc_add(&job->sources, word)) {
            return -1;
        }
    }
    return 0;
}

bool cc_is_cxx(const char *source)
{
    const char *dot = strrchr(source, '.');
    return dot != NULL &&
           (strcmp(dot, ".cc") == 0 || strcmp(dot, ".cpp") == 0 || strcmp(dot, ".cxx") == 0);
}

static int check_sources(const struct cc_job *job)
{
    if (job->sources.count == 0) {
        return cc_say("which FILE.c? see `pinwheel cc --help`");
    }
    for (size_t i = 0; i < job->sources.count; i++) {
        const char *name = job->sources.word[i], *dot = strrchr(name, '.');
        if ((dot == NULL || strcmp(dot, ".c") != 0) && !cc_is_cxx(name)) {
            return cc_say("%s: handlers are written in C, in a file that ends with .c, or in C++, "
                          "with .cc, .cpp or .cxx",
                          name);
        }
        if (access(name, R_OK) != 0) {
            return cc_say("%s: cannot be read", name);
        }
    }
    return 0;
}

/* Sets the name of the output, unless the user gave it: FILE.o or FILE.elf in the current folder,
 * as compilers do. */
static int name_output(struct cc_job *job, char *name, size_t size)
{
    if (job->output != NULL) {
        return 0;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check_sources() saw one */
    const char *source = job->sources.word[0], *slash = strrchr(source, '/');
    const char *base = slash != NULL ? slash + 1 : source;
    int stem = (int)(strrchr(base, '.') - base);
    int n = snprintf(name, size, "%.*s.%s", stem, base, job->image_only ? "elf" : "o");
    job->output = name;
    return n > 0 && (size_t)n < size ? 0 : cc_say("%s: is too long a name", source);
}

/* Finds the folders `runtime` and `include` relative to the command: those of an installation, or
 * of a build tree. */
static int find_folders(struct cc_job *job)
{
    static const char *const above[] = {"..", "../.."};
    char here[PATH_MAX], name[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    if (length < 0) {
        return cc_say("cannot tell where it is installed: /proc/self/exe cannot be read");
    }
    here[length] = '\0';
    *strrchr(here, '/') = '\0';
    for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
        snprintf(name, sizeof(name), "%s/%s/share/pinwheel/rv32", here, above[i]);
        if (realpath(name, job->runtime) == NULL) {
            continue;
        }
        snprintf(name, sizeof(name), "%s/%s/include", here, above[i]);
        if (realpath(name, job->include) == NULL) {
            job->include[0] = '\0';
        }
        return 0;
    }
    return cc_say("%s/../share/pinwheel/rv32: is not there; it is installed with the command",
                  here);
}

int command_cc(int argc, char **argv)
{
    const char *cc = getenv("CC"), *cxx = getenv("CXX");
    struct cc_job job = {.compiler = cc != NULL && cc[0] != '\0' ? cc : "cc",
                         .cxx_compiler = cxx != NULL && cxx[0] != '\0' ? cxx : "c++",
                         .rv32_compiler = "riscv64-unknown-elf-gcc"};
    char name[PATH_MAX];
    int rc = cc_add(&job.common, "-O2") ? parse(&job, argc, argv) : -1;
    if (rc == 0) {
        rc = check_sources(&job);
    }
    if (rc == 0) {
        rc = name_output(&job, name, sizeof(name));
    }
    int status = rc < 0 ? 2 : 0;
    if (rc == 0 && (find_folders(&job) != 0 || cc_build(&job) != 0)) {
        status = 1;
    }
    free(job.sources.word);
    free(job.common.word);
    free(job.c.word);
    free(job.cxx.word);
    free(job.native.word);
    return status;
}
