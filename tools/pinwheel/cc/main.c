/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel cc` by itself, for building what `pinwheel` is linked with: the handler library. */
#include "pinwheel/commands.h"

int main(int argc, char **argv)
{
    return command_cc(argc, argv);
}
