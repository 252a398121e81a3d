/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank whose child has left its process group, session and all:
 *
 *      ends waits          the child waits for what never comes; its parent ends
 *      ends ROUNDS         both sleep, so often, and end
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    bool waits = argc > 1 && strcmp(argv[1], "waits") == 0;
    long rounds = argc > 1 && !waits ? strtol(argv[1], NULL, 10) : 0;
    int ends[2];
    char byte;
    if (pipe(ends) != 0) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (waits) {
            return read(ends[0], &byte, 1) == 1;
        }
    }
    for (long i = 0; i < rounds; i++) {
        usleep(child == 0 ? 7 : 11);
    }
    return child < 0;
}
