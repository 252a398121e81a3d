/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused: calls, keys that were damaged, forged or have outlived their region; and that
 * the target's memory is untouched. */
#include "region.h"

enum { LENGTH = 4096 };

static unsigned char memory[LENGTH], buffer[2 * LENGTH];

PTEST_MATCHING(calls, 1)
{
    struct ends e;
    struct pw_rma *rma;
    struct pw_rma_region *region;
    unsigned char bytes[PW_RMA_KEY];
    ends_open(&e, kind, rank, size);
    struct port *p = &e.port;
    ptl_handle_ni_t wrong = PTL_INVALID_HANDLE;
    ptl_handle_ni_t many[PW_RMA_INTERFACES + 1] = {0};
    ptl_ni_limits_t limits[PW_RMA_INTERFACES + 1];
    REFUSED(pw_rma_open(&(struct pw_rma_config){0, &p->ni, &p->limits, 0}, &rma), EINVAL);
    REFUSED(pw_rma_open(&(struct pw_rma_config){PW_RMA_INTERFACES + 1, many, limits, 0}, &rma),
            EINVAL);
    REFUSED(pw_rma_open(&(struct pw_rma_config){1, &p->ni, &p->limits, 2}, &rma), EINVAL);
    REFUSED(pw_rma_open(&(struct pw_rma_config){1, &wrong, &p->limits, 0}, &rma), EINVAL);
    REFUSED(pw_rma_register(e.rma, memory, LENGTH, 0, &region), EINVAL);
    REFUSED(pw_rma_register(e.rma, memory, LENGTH, 1u << 31, &region), EINVAL);
    REFUSED(pw_rma_register(e.rma, memory, SIZE_MAX, PW_RMA_READ, &region), EINVAL);
    region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    REFUSED(pw_rma_key_pack(region, bytes, PW_RMA_KEY - 1), ERANGE);
    key_show(region);
    struct pw_rma_key *key = key_of(e.rma, 0);
    REFUSED(pw_rma_put(key, buffer, LENGTH + 1, 0, NULL), EINVAL);
    REFUSED(pw_rma_put(key, buffer, 1, LENGTH, NULL), EINVAL);
    REFUSED(pw_rma_get(key, buffer, 2, UINT64_MAX, NULL), EINVAL);
    REFUSED(pw_rma_get(key, (void *)(UINTPTR_MAX - 1), 4, 0, NULL), EINVAL);
    DONE(pw_rma_put(key, buffer, 0, LENGTH, NULL));
    REFUSED(pw_rma_close(e.rma), EBUSY);
    region_end(region);
    REFUSED(pw_rma_close(e.rma), EBUSY);
    pw_rma_key_close(key);
    ends_close(&e);
}

/* Interfaces without matching, and addresses of two kinds. */
PTEST(kinds, 1)
{
    struct port p[3];
    static const unsigned kinds[] = {KIND_NL, KIND_ML, KIND_MP};
    struct pw_rma *rma;
    for (int i = 0; i < 3; i++) {
        port_open(&p[i], kinds[i], rank, size);
    }
    REFUSED(pw_rma_open(&(struct pw_rma_config){1, &p[0].ni, &p[0].limits, 0}, &rma), EINVAL);
    ptl_handle_ni_t two[] = {p[1].ni, p[2].ni};
    ptl_ni_limits_t limits[] = {p[1].limits, p[2].limits};
    REFUSED(pw_rma_open(&(struct pw_rma_config){2, two, limits, 0}, &rma), EINVAL);

    /* a key of ranks is none where addresses are physical */
    struct pw_rma *logical = rma_open(&p[1]), *physical = rma_open(&p[2]);
    struct pw_rma_region *region = region_of(logical, memory, LENGTH, PW_RMA_READ);
    struct pw_rma_key *key;
    unsigned char bytes[PW_RMA_KEY];
    DONE(pw_rma_key_pack(region, bytes, sizeof(bytes)));
    REFUSED(pw_rma_key_open(physical, bytes, sizeof(bytes), &key), ENXIO);
    region_end(region);
    DONE(pw_rma_close(logical));
    DONE(pw_rma_close(physical));
    OK(PtlNIFini(p[2].ni));
    OK(PtlNIFini(p[1].ni));
    port_close(&p[0]);
    PtlFini();
    PtlFini();
}

/* Each bit of a key counts. */
PTEST(damaged, 1)
{
    struct ends e;
    struct pw_rma_key *key;
    unsigned char bytes[PW_RMA_KEY];
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_of(e.rma, memory, LENGTH, PW_RMA_READ);
    DONE(pw_rma_key_pack(region, bytes, sizeof(bytes)));
    for (int bit = 0; bit < 8 * PW_RMA_KEY; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        REFUSED(pw_rma_key_open(e.rma, bytes, sizeof(bytes), &key),
                bit / 8 <= KEY_VERSION ? EPROTO : EBADMSG);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t length = 0; length < PW_RMA_KEY; length++) {
        REFUSED(pw_rma_key_open(e.rma, bytes, length, &key), EPROTO);
    }
    bytes[KEY_VERSION]++;
    key_forge(bytes);
    REFUSED(pw_rma_key_open(e.rma, bytes, sizeof(bytes), &key), EPROTO);
    region_end(region);
    ends_close(&e);
}

/* Keys of random bytes with a right sum: none takes anything down, and none gets through. */
PTEST(random_keys, 2)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    unsigned char good[PW_RMA_KEY], bytes[PW_RMA_KEY];
    uint64_t state = 7;
    ends_open(&e, KIND_ML, rank, size);
    if (rank == 1) {
        memset(memory, 0xa5, LENGTH);
        region = region_of(e.rma, memory, LENGTH, PW_RMA_READ);
        key_show(region);
    }
    BARRIER();
    key_look(1, good);
    for (int n = 0; n < 3000 && rank == 0; n++) {
        struct pw_rma_key *key;
        memcpy(bytes, good, sizeof(bytes));
        for (int i = 0; i < 1 + n % 4; i++) {
            size_t at = KEY_RAIL + splitmix(&state) % (PW_RMA_KEY - 4 - KEY_RAIL);
            /* a process that is not there is waited for: once is enough */
            if (at < KEY_ID || at >= KEY_ID + 8 || n == 0) {
                bytes[at] = (unsigned char)splitmix(&state);
            }
        }
        key_forge(bytes);
        int rc = pw_rma_key_open(e.rma, bytes, sizeof(bytes), &key);
        CHECK(rc == 0 || rc == -EBADMSG || rc == -ENXIO);
        if (rc == 0) {
            if (pw_rma_put(key, buffer, 8, splitmix(&state) % LENGTH, NULL) == 0) {
                CHECK(pw_rma_flush(pw_rma_key_peer(key)) != 0);
            }
            pw_rma_key_close(key);
        }
    }
    BARRIER();
    if (rank == 1) {
        CHECK_BYTES(memory, LENGTH, 0xa5);
        region_end(region);
    }
    ends_close(&e);
}

static struct pw_rma_key *forged(struct pw_rma *rma, int field, unsigned char value)
{
    unsigned char bytes[PW_RMA_KEY];
    struct pw_rma_key *key;
    key_look(1, bytes);
    bytes[field] = value;
    key_forge(bytes);
    DONE(pw_rma_key_open(rma, bytes, sizeof(bytes), &key));
    return key;
}

/* What an origin forges the target checks. */
PTEST_MATCHING(forged_rights, 2)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    ends_open(&e, kind, rank, size);
    for (unsigned access = PW_RMA_READ; access <= PW_RMA_WRITE; access++) {
        if (rank == 1) {
            memset(memory, 0xa5, LENGTH);
            region = region_of(e.rma, memory, LENGTH / 2, access);
            key_show(region);
        }
        BARRIER();
        if (rank == 0) {
            struct pw_rma_request request;
            bool reads = access == PW_RMA_READ;
            struct pw_rma_key *key = key_of(e.rma, 1);
            memset(buffer, 0x11, sizeof(buffer));
            REFUSED(reads ? pw_rma_put(key, buffer, 8, 0, NULL)
                          : pw_rma_get(key, buffer, 8, 0, NULL),
                    EACCES);
            pw_rma_key_close(key);

            key = forged(e.rma, KEY_ACCESS, PW_RMA_READ | PW_RMA_WRITE);
            struct pw_rma_peer *peer = pw_rma_key_peer(key);
            DONE(reads ? pw_rma_put(key, buffer, 8, 0, NULL) : pw_rma_get(key, buffer, 8, 0, NULL));
            REFUSED(pw_rma_flush(peer), EACCES);
            DONE(pw_rma_flush(peer));
            REFUSED(pw_rma_flush_all(e.rma), EACCES);
            DONE(pw_rma_flush_all(e.rma));
            DONE(reads ? pw_rma_put(key, buffer, 8, 0, &request)
                       : pw_rma_get(key, buffer, 8, 0, &request));
            REFUSED(pw_rma_wait(&request), EACCES);
            DONE(pw_rma_flush(peer));
            pw_rma_key_close(key);

            /* the second byte of the length: beyond the region's end, all or nothing */
            key = forged(e.rma, KEY_LENGTH + 1, LENGTH >> 8);
            peer = pw_rma_key_peer(key);
            DONE(reads ? pw_rma_get(key, buffer, 8, LENGTH / 2 - 4, NULL)
                       : pw_rma_put(key, buffer, 8, LENGTH / 2 - 4, NULL));
            REFUSED(pw_rma_flush(peer), ESTALE);
            REFUSED(pw_rma_flush_all(e.rma), ESTALE);
            CHECK_BYTES(buffer, 8, 0x11);
            pw_rma_key_close(key);
        }
        BARRIER();
        if (rank == 1) {
            CHECK_BYTES(memory, LENGTH, 0xa5);
            region_end(region);
        }
        BARRIER();
    }
    ends_close(&e);
}

/* A key outlives its region, and the struct pw_rma that has packed it. */
PTEST_MATCHING(stale, 2)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    struct pw_rma_key *key = NULL;
    ends_open(&e, kind, rank, size);
    if (rank == 1) {
        memset(memory, 0xa5, LENGTH);
        region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
        key_show(region);
    }
    BARRIER();
    if (rank == 0) {
        key = key_of(e.rma, 1);
        DONE(pw_rma_get(key, buffer, LENGTH, 0, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
    }
    BARRIER();
    for (int again = 0; again < 2; again++) {
        if (rank == 1) {
            region_end(region);
            if (again == 1) {
                DONE(pw_rma_close(e.rma));
                e.rma = rma_open(&e.port);
            }
            region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
        }
        BARRIER();
        if (rank == 0) {
            DONE(pw_rma_put(key, buffer, 8, 0, NULL));
            REFUSED(pw_rma_flush(pw_rma_key_peer(key)), ESTALE);
        }
        BARRIER();
    }
    if (rank == 0) {
        pw_rma_key_close(key);
    } else {
        CHECK_BYTES(memory, LENGTH, 0xa5);
        region_end(region);
    }
    ends_close(&e);
}

/* Memory that is not there, at either end. */
PTEST(faults, 2)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    ends_open(&e, KIND_ML, rank, size);
    if (rank == 1) {
        region = region_of(e.rma, (void *)4096, 4096, PW_RMA_READ | PW_RMA_WRITE);
        key_show(region);
        BARRIER();
        BARRIER();
        region_end(region);
        region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
        key_show(region);
        BARRIER();
        BARRIER();
        region_end(region);
    } else {
        struct pw_rma_request request;
        BARRIER();
        struct pw_rma_key *key = key_of(e.rma, 1);
        DONE(pw_rma_put(key, buffer, 100, 0, NULL));
        REFUSED(pw_rma_flush(pw_rma_key_peer(key)), EFAULT);
        DONE(pw_rma_get(key, buffer, 100, 0, &request));
        REFUSED(pw_rma_wait(&request), EFAULT);
        pw_rma_key_close(key);
        BARRIER();
        BARRIER();
        key = key_of(e.rma, 1);
        for (size_t length = 8; length <= 4096; length *= 8) {
            DONE(pw_rma_put(key, (void *)4096, length, 0, NULL));
            REFUSED(pw_rma_flush(pw_rma_key_peer(key)), EFAULT);
            DONE(pw_rma_get(key, (void *)4096, length, 0, &request));
            REFUSED(pw_rma_wait(&request), EFAULT);
        }
        pw_rma_key_close(key);
        BARRIER();
    }
    ends_close(&e);
}
