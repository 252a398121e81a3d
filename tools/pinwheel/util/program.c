/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program needs, and where libraries to preload are; see program.h. */
#include "pinwheel/util/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* True if an executable has a dynamic linker. Any other one would be run, instead of listing the
 * libraries that it needs. */
static bool is_dynamic(const char *path)
{
    Elf64_Ehdr head;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
        head.e_phentsize == sizeof(Elf64_Phdr)) {
        for (int i = 0; i < head.e_phnum && !found; i++) {
            Elf64_Phdr part;
            ssize_t n =
                pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + (size_t)i * sizeof(part)));
            found = n == (ssize_t)sizeof(part) && part.p_type == PT_INTERP;
        }
    }
    close(fd);
    return found;
}

static bool executable(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

bool program_find(const char *word, char *path, size_t size)
{
    snprintf(path, size, "%s", word);
    if (strchr(word, '/') != NULL || executable(path)) {
        return executable(path);
    }
    const char *at = getenv("PATH");
    for (; at != NULL && *at != '\0'; at += *at == ':') {
        size_t length = strcspn(at, ":");
        snprintf(path, size, "%.*s/%s", (int)length, at, word);
        at += length;
        if (executable(path)) {
            return true;
        }
    }
    return false;
}

static void list_libraries(const char *path, int to)
{
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    execl(path, path, (char *)NULL);
    _exit(127);
}

int program_needs(const char *path, const char *const libraries[], size_t count)
{
    int found = -1;
    char line[4096];
    int ends[2];
    if (!is_dynamic(path) || pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        list_libraries(path, ends[1]);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    while (lines != NULL && fgets(line, sizeof(line), lines) != NULL) {
        const char *name = line + strspn(line, " \t");
        for (size_t i = 0; i < count; i++) {
            found = strncmp(name, libraries[i], strlen(libraries[i])) == 0 ? (int)i : found;
        }
    }
    if (lines != NULL) {
        fclose(lines);
    } else {
        close(ends[0]);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    return found;
}

bool program_beside(const char *folder, const char *file, char *path, size_t size)
{
    char here[PATH_MAX], name[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    if (length < 0) {
        return false;
    }
    here[length] = '\0';
    *strrchr(here, '/') = '\0';
    for (int installed = 0; installed < 2; installed++) {
        snprintf(name, sizeof(name), installed ? "%s/../%s/%s" : "%s/../../%s/%s", here,
                 installed ? PINWHEEL_LIBDIR "/pinwheel" : folder, file);
        char *real = realpath(name, NULL);
        if (real != NULL) {
            snprintf(path, size, "%s", real);
            free(real);
            return true;
        }
    }
    return false;
}

char *program_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    bool others = before != NULL && *before != '\0';
    char *variable;
    int n =
        asprintf(&variable, "LD_PRELOAD=%s%s%s", library, others ? ":" : "", others ? before : "");
    return n >= 0 ? variable : NULL;
}

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifndef ASAN
#define ASAN 0
#endif

char *program_sanitizer(void)
{
    const char *before = getenv("ASAN_OPTIONS");
    char *variable = NULL;
    if (ASAN && asprintf(&variable, "ASAN_OPTIONS=%s:verify_asan_link_order=0:detect_leaks=0",
                         before != NULL ? before : "") < 0) {
        return NULL;
    }
    return variable;
}
