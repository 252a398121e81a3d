/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that must succeed; fail() is the program's own. */
#ifndef TESTS_OK_H
#define TESTS_OK_H

#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != PTL_OK) {                                                                     \
            fail("%s gives %d (line %d)", #call, code_, __LINE__);                                 \
        }                                                                                          \
    } while (0)

#endif
