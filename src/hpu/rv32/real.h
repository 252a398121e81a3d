/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of the extensions F and D: arithmetic of IEEE 754 with the five rounding modes and the
 * five flags, as the RISC-V instruction set has them (unprivileged specification, F and D). A NaN
 * that is computed is always the canonical one.
 */
#ifndef HPU_RV32_REAL_H
#define HPU_RV32_REAL_H

#include "hpu/rv32/core.h"

/* What is above a float in a register. */
#define RV32_BOXED UINT64_C(0xffffffff00000000)

/* rv32_real_run() runs an operation from RV32_REAL_FIRST to RV32_REAL_LAST. False: it is illegal,
 * because frm holds no rounding mode. */
bool rv32_real_run(struct rv32_core *core, const struct rv32_cell *ip);

/* rv32_real_rule() reads and writes fflags, frm or fcsr. */
void rv32_real_rule(struct rv32_core *core, const struct rv32_cell *ip);

#endif
