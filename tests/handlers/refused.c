/* SPDX-License-Identifier: BSD-3-Clause */
/* Images that a NIC refuses, each by its reason: a good one, spoilt in one place. */
#include "kit.h"
#include "live_images.h"

enum spoilt {
    MAGIC,
    MACHINE,
    CLASS,
    ABI,
    TRUNCATED,
    OVERLAPPING,
    SYMBOL,
    ENTRY_POINT,
    HANDLER,
    RELOCATIONS,
    WRITABLE,
    TOO_LARGE,
    NEWER,
    VARIABLES,
    SPOILT
};

/* The stub of a handler call that a later run time may have. */
static const uint32_t newer_stub[] = {0x7d000293 /* li t0, 2000 */, 0x00000073, 0x00008067};

static void spoil(struct stray_file *f, enum spoilt what)
{
    switch (what) {
    case MAGIC:
        live.magic[0] = 'X';
        break;
    case MACHINE:
        f->header.e_machine = EM_ARM;
        break;
    case CLASS:
        f->header.e_ident[EI_CLASS] = ELFCLASS64;
        break;
    case ABI:
        f->header.e_flags |= 4;
        break;
    case TRUNCATED:
        live.size = offsetof(struct stray_file, code) + 4;
        break;
    case OVERLAPPING:
        f->segments[1].p_vaddr = STRAY_CODE + 4;
        break;
    case SYMBOL:
        f->symbols[2].st_shndx = SHN_UNDEF;
        break;
    case ENTRY_POINT:
        f->header.e_entry = STRAY_CODE - 4;
        break;
    case HANDLER:
        f->data[0][3] = 0x1e;
        break;
    case RELOCATIONS:
        f->sections[3].sh_type = SHT_RELA;
        break;
    case WRITABLE:
        f->segments[0].p_flags |= PF_W;
        break;
    case NEWER:
        memcpy(f->code + (f->symbols[2].st_value - STRAY_CODE), newer_stub, sizeof(newer_stub));
        f->symbols[2].st_size = sizeof(newer_stub);
        break;
    case TOO_LARGE:
        f->segments[0].p_memsz = RV32_CODE_MAX + 4;
        break;
    default:
        f->segments[1].p_flags |= PF_W;
        break;
    }
}

/* Each is refused when an entry is to have one of its handlers, and standard error names why. */
PTEST(refused, 1)
{
    static const char *const says[SPOILT] = {
        [MAGIC] = "does not begin as one",
        [MACHINE] = "is for machine 40",
        [CLASS] = "is a 64-bit image",
        [ABI] = "ABI ilp32f, ilp32d",
        [TRUNCATED] = "is truncated: segment 0 ends at byte",
        [OVERLAPPING] = "the segments at 1d000000 and 1d000004 overlap",
        [SYMBOL] = "misses the symbol load",
        [ENTRY_POINT] = "its entry point 1cfffffc is not in the code",
        [HANDLER] = "handler head at 1e000000 is not in the code",
        [RELOCATIONS] = "has relocations",
        [WRITABLE] = "is code that can be written",
        [TOO_LARGE] = "the program memory holds 32768",
        [NEWER] = "load is handler call 2000, and this library knows 1 to 50; compile",
        [VARIABLES] = "has variables at 1c000000",
    };
    static uint8_t memory[64];
    struct kit k;
    char text[1024];
    ptl_handlers_t h = live_handlers(1);
    h.hpu_initial_length = 8;
    CHECK(setenv("PINWHEEL_HPU", "rv32", 1) == 0);
    kit_open(&k, rank, size);
    for (enum spoilt i = 0; i <= SPOILT; i++) {
        ptl_me_t me = port_entry(&k.p, memory, sizeof(memory), PTL_ME_OP_PUT);
        ptl_handle_me_t entry;
        memcpy(live.magic, "PTLRV32\1", sizeof(live.magic));
        live_make(2);
        if (i < SPOILT) {
            spoil((struct stray_file *)live.bytes, i);
        }
        begin_capture();
        int rc = PtlMEAppendHandlers(k.p.ni, k.p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &entry);
        end_capture(text, sizeof(text));
        CHECK_EQ(rc, i < SPOILT ? PTL_ARG_INVALID : PTL_OK); /* that of the good one */
        CHECK(i == SPOILT || strstr(text, "PINWHEEL_HPU=rv32: the handler head cannot be run: "
                                          "RV32 image: ") != NULL);
        if (i < SPOILT && strstr(text, says[i]) == NULL) {
            FAIL("\"%s\" is not in: %s", says[i], text);
        }
    }
    port_close(&k.p);
}
