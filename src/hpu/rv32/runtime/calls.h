/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of spin_handler.h as RV32 handlers make them, and those of atomics.c beside this file:
 * a row for each call, from which calls.S makes its stub for handlers, and
 * hpu/device_calls.c its entry for the host.
 *
 *      stub: li t0, number; ecall; ret         arguments and result as ABI ilp32 has them
 *
 *      RV32_CALL(number, name, cost, result, argument...)
 *
 * A number belongs to its name for ever: images are built into programs. The result is NONE,
 * FLAG (bool), WORD or DOUBLE. An argument is
 *
 *      BYTE, WORD, DOUBLE     8, 32 or 64 bits
 *      PAIR                   64 bits that are aligned as 32: ptl_process_t
 *      OPAQUE                 a pointer that is not dereferenced: PtlHandlerUserPtr(), or a number
 *      READS(i)               a pointer to as many bytes as argument i says, which are read
 *      WRITES(i)              ... written
 *      CHANGES(n), FILLS(n)   a pointer to n bytes; that of FILLS may be NULL
 *      TAKES(n)               a pointer to n bytes, which are read
 *      OPERAND(i)             a pointer to what the swap of argument i compares with or masks: an
 *                             element of the type in the next argument; ignored for PTL_SWAP
 *      TEXT                   a pointer to a format; its arguments follow as ilp32 passes them
 *      STRUCT_16              a struct of two words of 64 bits by value: ilp32 passes its address
 *
 * and the cost a row of `struct rv32_timing`.call (timing.h).
 */
#ifndef RV32_CALLS_H
#define RV32_CALLS_H

/* clang-format off */
#define RV32_CALLS \
RV32_CALL(1,  PtlHandlerDMAToHostB,       TO_HOST_WAIT,   WORD, READS(2), DOUBLE, DOUBLE, WORD) \
RV32_CALL(2,  PtlHandlerDMAToHostNB,      TO_HOST,        WORD, READS(2), DOUBLE, DOUBLE, WORD) \
RV32_CALL(3,  PtlHandlerDMAFromHostB,     FROM_HOST_WAIT, WORD, DOUBLE, WRITES(2), DOUBLE, WORD) \
RV32_CALL(4,  PtlHandlerDMAFromHostNB,    FROM_HOST,      WORD, DOUBLE, WRITES(2), DOUBLE, WORD) \
RV32_CALL(5,  PtlHandlerDMACASB,          HOST_ATOMIC_WAIT, WORD, DOUBLE, CHANGES(8), DOUBLE, WORD) \
RV32_CALL(6,  PtlHandlerDMACASNB,         HOST_ATOMIC,    WORD, DOUBLE, CHANGES(8), DOUBLE, WORD) \
RV32_CALL(7,  PtlHandlerDMAFetchAddB,     HOST_ATOMIC_WAIT, WORD, DOUBLE, DOUBLE, FILLS(8), BYTE, WORD) \
RV32_CALL(8,  PtlHandlerDMAFetchAddNB,    HOST_ATOMIC,    WORD, DOUBLE, DOUBLE, FILLS(8), BYTE, WORD) \
RV32_CALL(9,  PtlHandlerDMATest,          TEST,           FLAG, WORD) \
RV32_CALL(10, PtlHandlerDMAWait,          WAIT,           NONE, WORD) \
RV32_CALL(11, PtlHandlerCAS,              LOCAL_ATOMIC,   FLAG, CHANGES(8), DOUBLE, DOUBLE) \
RV32_CALL(12, PtlHandlerFAdd,             LOCAL_ATOMIC,   WORD, CHANGES(8), FILLS(8), DOUBLE) \
RV32_CALL(13, PtlHandlerMyHPU,            REGISTER,       WORD) \
RV32_CALL(14, PtlHandlerYield,            REGISTER,       NONE) \
RV32_CALL(15, PtlHandlerCounterAdd,       COUNTER,        WORD, WORD, DOUBLE) \
RV32_CALL(16, PtlHandlerPutFromDevice,    SEND,           WORD, READS(1), DOUBLE, BYTE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE) \
RV32_CALL(17, PtlHandlerPutFromDeviceEx,  SEND,           WORD, READS(1), DOUBLE, BYTE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE) \
RV32_CALL(18, PtlHandlerPutFromHost,      SEND,           WORD, DOUBLE, DOUBLE, BYTE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE) \
RV32_CALL(19, PtlHandlerPutFromHostEx,    SEND,           WORD, DOUBLE, DOUBLE, BYTE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE) \
RV32_CALL(20, PtlHandlerUserPtr,          REGISTER,       WORD, DOUBLE) \
RV32_CALL(21, PtlHandlerCTGet,            REGISTER,       WORD, WORD, FILLS(16)) \
RV32_CALL(22, PtlHandlerCTSet,            REGISTER,       WORD, WORD, STRUCT_16) \
RV32_CALL(23, PtlHandlerCTInc,            REGISTER,       WORD, WORD, STRUCT_16) \
RV32_CALL(24, PtlHandlerGetToDevice,      SEND,           WORD, WRITES(1), DOUBLE, PAIR, DOUBLE, DOUBLE) \
RV32_CALL(25, PtlHandlerGetToDeviceEx,    SEND,           WORD, WRITES(1), DOUBLE, PAIR, WORD, DOUBLE, DOUBLE) \
RV32_CALL(26, PtlHandlerGetToHost,        SEND,           WORD, DOUBLE, DOUBLE, PAIR, DOUBLE, DOUBLE, OPAQUE) \
RV32_CALL(27, PtlHandlerGetToHostEx,      SEND,           WORD, DOUBLE, DOUBLE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE) \
RV32_CALL(28, PtlHandlerAtomicFromDevice, SEND,           WORD, READS(1), DOUBLE, BYTE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(29, PtlHandlerAtomicFromDeviceEx, SEND,         WORD, READS(1), DOUBLE, BYTE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(30, PtlHandlerAtomicFromHost,   SEND,           WORD, DOUBLE, DOUBLE, BYTE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(31, PtlHandlerAtomicFromHostEx, SEND,           WORD, DOUBLE, DOUBLE, BYTE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(32, PtlHandlerFetchAtomicFromDevice, SEND,      WORD, WRITES(2), READS(2), DOUBLE, PAIR, DOUBLE, DOUBLE, DOUBLE, BYTE, BYTE) \
RV32_CALL(33, PtlHandlerFetchAtomicFromDeviceEx, SEND,    WORD, WRITES(2), READS(2), DOUBLE, PAIR, WORD, DOUBLE, DOUBLE, DOUBLE, BYTE, BYTE) \
RV32_CALL(34, PtlHandlerFetchAtomicFromHost, SEND,        WORD, DOUBLE, DOUBLE, DOUBLE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(35, PtlHandlerFetchAtomicFromHostEx, SEND,      WORD, DOUBLE, DOUBLE, DOUBLE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE, BYTE, BYTE) \
RV32_CALL(36, PtlHandlerSwapFromDevice,   SEND,           WORD, WRITES(2), READS(2), DOUBLE, PAIR, DOUBLE, DOUBLE, DOUBLE, OPERAND(8), BYTE, BYTE) \
RV32_CALL(37, PtlHandlerSwapFromDeviceEx, SEND,           WORD, WRITES(2), READS(2), DOUBLE, PAIR, WORD, DOUBLE, DOUBLE, DOUBLE, OPERAND(9), BYTE, BYTE) \
RV32_CALL(38, PtlHandlerSwapFromHost,     SEND,           WORD, DOUBLE, DOUBLE, DOUBLE, PAIR, DOUBLE, DOUBLE, OPAQUE, DOUBLE, OPERAND(9), BYTE, BYTE) \
RV32_CALL(39, PtlHandlerSwapFromHostEx,   SEND,           WORD, DOUBLE, DOUBLE, DOUBLE, PAIR, WORD, DOUBLE, DOUBLE, OPAQUE, DOUBLE, OPERAND(10), BYTE, BYTE) \
RV32_CALL(40, PtlHandlerPrintf,           PRINT,          WORD, TEXT) \
RV32_CALL(41, pinwheel_load_8,            LOCAL_ATOMIC,   DOUBLE, TAKES(8)) \
RV32_CALL(42, pinwheel_exchange_8,        LOCAL_ATOMIC,   DOUBLE, CHANGES(8), DOUBLE) \
RV32_CALL(43, pinwheel_cas_1,             LOCAL_ATOMIC,   WORD, CHANGES(1), WORD, WORD) \
RV32_CALL(44, pinwheel_cas_2,             LOCAL_ATOMIC,   WORD, CHANGES(2), WORD, WORD) \
RV32_CALL(45, pinwheel_cas_8,             LOCAL_ATOMIC,   DOUBLE, CHANGES(8), DOUBLE, DOUBLE) \
RV32_CALL(46, PtlHandlerHeader,           HEADER,         WORD, CHANGES(72)) \
RV32_CALL(47, PtlHandlerMessageState,     REGISTER,       WORD) \
RV32_CALL(48, PtlHandlerFrameReply,       REGISTER,       WORD, DOUBLE) \
RV32_CALL(49, PtlHandlerFrameSend,        SEND,           WORD, READS(1), DOUBLE) \
RV32_CALL(50, PtlHandlerFramePass,        REGISTER,       WORD)
/* clang-format on */

#endif
