/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of atomics, on memory that the program or a peer has named.
 *
 *   size of an element   at a multiple of it             elsewhere
 *   1, 2, 4, 8           one locked instruction, or      under a lock, copied
 *                        a compare-and-swap loop         in and out
 *   16, 32               under a lock, copied in and out
 *
 * What is done by a locked instruction is atomic towards all of the machine: the program's
 * own atomics, NICs of other processes that share the memory. What is done under a lock
 * is atomic towards the same elements in other calls of this process, and nothing else:
 * the locks are striped by the address at which an element begins, and to the
 * processor these are plain loads and stores.
 *
 * Arithmetic is that of C, with these choices where C leaves one:
 *   integers   wrap around; LOR, LAND, LXOR give 0 or 1
 *   CSWAP...   "operand OP target" decides, compared as numbers: -0 equals 0, and NaN
 *              is less than, equal to, greater than nothing, so that it is CSWAP_NE only
 *   MIN, MAX   store the data if it is less (greater) than the target: a NaN on either
 *              side leaves the target as it is, and so does -0 against 0
 *   rounding   to nearest, no traps, no flags left behind, whatever the calling thread
 *              has set: any thread may come to carry out an operation
 * A long double is 16 bytes, of which SUM and PROD write 10 and all others 16 or none.
 */
#ifndef NIC_ATOMIC_H
#define NIC_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nic_copy.h"
#include "portals4.h"

/* The call of the program by which an operation came: PtlAtomic, PtlFetchAtomic, PtlSwap. */
enum atomic_call { ATOMIC_PLAIN, ATOMIC_FETCH, ATOMIC_SWAP };

/* Classes of datatypes; each operation is defined for some of them. */
enum { ATOMIC_INTEGER = 1, ATOMIC_REAL = 2, ATOMIC_COMPLEX = 4 };

/* atomic_size() returns the size of an element in bytes, or 0 if there is no such type. */
struct atomic_kind {
    uint8_t size;
    uint8_t class;
    bool is_signed;
};
extern const struct atomic_kind atomic_kinds[PTL_DATATYPE_LAST];
static inline size_t atomic_size(ptl_datatype_t type)
{
    return type < PTL_DATATYPE_LAST ? atomic_kinds[type].size : 0;
}

/* atomic_rest() returns by how many bytes `length` exceeds whole elements. Sizes are powers of
 * two. */
static inline size_t atomic_rest(size_t length, ptl_datatype_t type)
{
    return length & (atomic_size(type) - 1);
}

/* An operation: the classes of types for which it is defined, and how it is done. */
struct atomic_operation {
    uint8_t classes;
    /* outcomes of the comparison (atomic.c) with which the data replaces the target */
    uint8_t takes;
    /* The instruction that does it to an integer, or NULL. Only that of PTL_SUM returns the old
     * value. */
    nic_word_raw *instruction;
};
extern const struct atomic_operation atomic_operations[PTL_OP_LAST];
/* atomic_is_defined() tells whether any call takes this operation on this type, atomic_is_legal()
 * whether the given call does. Both take any values, as op and type may have come from the
 * network. */
static inline bool atomic_is_defined(ptl_op_t op, ptl_datatype_t type)
{
    return op < PTL_OP_LAST && type < PTL_DATATYPE_LAST &&
           (atomic_operations[op].classes & atomic_kinds[type].class) != 0;
}
static inline bool atomic_is_legal(enum atomic_call call, ptl_op_t op, ptl_datatype_t type)
{
    return atomic_is_defined(op, type) && (op >= PTL_SWAP) == (call == ATOMIC_SWAP);
}

/* atomic_operand_size() returns the size of the operand that an operation has besides the data, or
 * 0 if it has none. */
static inline size_t atomic_operand_size(ptl_op_t op, ptl_datatype_t type)
{
    return op > PTL_SWAP && op < PTL_OP_LAST ? atomic_size(type) : 0;
}

/* atomic_fits() tells whether a legal operation takes so many bytes: whole elements, or one where
 * there is an operand. */
static inline bool atomic_fits(size_t length, ptl_op_t op, ptl_datatype_t type)
{
    return atomic_operand_size(op, type) != 0 ? length == atomic_size(type)
                                              : atomic_rest(length, type) == 0;
}

/*
 * nic_atomic() does `op` to each element of the `length` bytes at `target`. `data` has the other
 * operands, element by element; `before`, unless NULL, gets the old values. `operand` is the
 * compare value or mask of CSWAP... and MSWAP, one element for all of `data`; other operations
 * ignore it. The program or a peer has named `target`, so it may be no memory at all. `data`,
 * `operand` and `before` are memory of the NIC and need no alignment; `before` may be `data`
 * itself.
 *
 * Returns 0; -EFAULT if some of `target` cannot be read and written, where some elements may have
 * been done; or -EINVAL, with nothing done, if no call takes `op` on `type`, `length` is no
 * multiple of the element, or the operand is missing.
 */
int nic_atomic(void *target, const void *data, const void *operand, void *before, size_t length,
               ptl_op_t op, ptl_datatype_t type);

/* atomic_instruction() returns the instruction by which nic_word() does an operation on one aligned
 * element of `length` bytes, with the data in the low bytes of a word; NULL if no one instruction
 * does it. */
static inline nic_word_raw *atomic_instruction(ptl_op_t op, ptl_datatype_t type, size_t length)
{
    bool one = op < PTL_OP_LAST && type < PTL_DATATYPE_LAST && atomic_kinds[type].size == length &&
               atomic_kinds[type].class == ATOMIC_INTEGER;
    return one ? atomic_operations[op].instruction : NULL;
}
static inline bool atomic_is_aligned(const void *target, size_t size)
{
    return ((uintptr_t)target & (size - 1)) == 0;
}

#endif
