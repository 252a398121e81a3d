/* SPDX-License-Identifier: BSD-3-Clause */
/* Where `pinwheel sim` writes: found out before the job starts, and told if it fails (outputs.c).
 */
#ifndef PINWHEEL_SIM_OUTPUTS_H
#define PINWHEEL_SIM_OUTPUTS_H

#include <stdbool.h>

/* outputs_can() says whether a file can be written, NULL: none is wanted; it makes the file, and
 * leaves one that is there as it is. `data`: and the one beside it that ends in .csv. False after a
 * line on stderr. */
bool outputs_can(const char *option, const char *path, bool data);
/* outputs_end() is the status of a command after all of standard output is written. */
int outputs_end(int status);

#endif
