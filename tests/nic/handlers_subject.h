/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers_subject.c appends: handlers that count and print, one that faults, one alone. */
#ifndef HANDLERS_SUBJECT_H
#define HANDLERS_SUBJECT_H

#include "spin.h"
#include "spin_handler.h"

extern const ptl_handlers_t subject_normal, subject_faulty, subject_once;

#endif
