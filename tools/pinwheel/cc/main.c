/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel cc` as a program of its own, to build the handler library, which `pinwheel` is linked
 * with. */
#include "pinwheel/commands.h"

int main(int argc, char **argv)
{
    return command_cc(argc, argv);
}
