/* SPDX-License-Identifier: BSD-3-Clause */
/* Tags of packets, by libcrypto; see mac.h. */
#include "mac.h"
#include "slmp.h"

#include "base/forks.h"
#include "base/library.h"
#include "base/log.h"

#include <dlfcn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GROUP packet numbers have their Poly1305 keys made in one call, which costs little more than one
 * key does. */
enum { GROUP = 8, POLY_KEY = 32, DIGEST = 32, NO_GROUP = -1 };

/* The functions of libcrypto that this file uses, with its own names for them. */
#define FUNCTIONS(USE)                                                                             \
    USE(mac_fetch, EVP_MAC_fetch)                                                                  \
    USE(mac_free, EVP_MAC_free)                                                                    \
    USE(mac_new, EVP_MAC_CTX_new)                                                                  \
    USE(mac_drop, EVP_MAC_CTX_free)                                                                \
    USE(mac_init, EVP_MAC_init)                                                                    \
    USE(mac_update, EVP_MAC_update)                                                                \
    USE(mac_final, EVP_MAC_final)                                                                  \
    USE(cipher_new, EVP_CIPHER_CTX_new)                                                            \
    USE(cipher_drop, EVP_CIPHER_CTX_free)                                                          \
    USE(encrypt_init, EVP_EncryptInit_ex)                                                          \
    USE(encrypt, EVP_EncryptUpdate)                                                                \
    USE(no_padding, EVP_CIPHER_CTX_set_padding)                                                    \
    USE(aes, EVP_aes_256_ecb)
#define MEMBER(ours, theirs) __typeof__(theirs) *ours;
#define SYMBOL(ours, theirs) {#theirs, &crypto.ours},
static struct {
    FUNCTIONS(MEMBER)
} crypto;
static struct mutex loading; /* taken by forks_take(), for: */
static bool crypto_loaded;   /* false: the next engine tries again */

static const struct library_symbol symbols[] = {FUNCTIONS(SYMBOL)};

/* Loads libcrypto. The linker's message says why it cannot be loaded, which may be for other
 * reasons than that it is missing. */
static bool load(struct reason *trouble)
{
    static const char library[] = "libcrypto.so.3";
    const char *missing = library_load(library, symbols, sizeof(symbols) / sizeof(symbols[0]));
    if (missing == library) {
        const char *why = dlerror();
        reason_say(trouble, 0, "a job key needs a library: %s%s", why,
                   strstr(why, strerror(EMFILE)) != NULL ? log_remedy(EMFILE)
                                                         : " (it is of the package libssl3)");
    } else if (missing != NULL) {
        reason_say(trouble, 0, "a job key needs %s of OpenSSL 3: this one has no %s", library,
                   missing);
    }
    return missing == NULL;
}

static bool crypto_there(struct reason *why)
{
    forks_take(&loading); /* so that no child is forked with a library half loaded */
    bool there = crypto_loaded = crypto_loaded || load(why);
    forks_give(&loading);
    return there;
}

struct slmp_mac {
    EVP_MAC_CTX *hash, *poly;
    uint8_t greetings[DIGEST], sessions[DIGEST];
};

struct slmp_session_key {
    EVP_CIPHER_CTX *cipher;
    int64_t group; /* the group of numbers for which the keys were made; NO_GROUP: none */
    uint8_t keys[GROUP][POLY_KEY];
};

static EVP_MAC_CTX *fetch(const char *name)
{
    EVP_MAC *mac = crypto.mac_fetch(NULL, name, NULL);
    EVP_MAC_CTX *c = mac != NULL ? crypto.mac_new(mac) : NULL;
    crypto.mac_free(mac);
    return c;
}

static bool hash(struct slmp_mac *g, const uint8_t *key, size_t key_length, const void *bytes,
                 size_t length, uint8_t digest[DIGEST])
{
    char sha[] = "SHA256";
    size_t made;
    const OSSL_PARAM p[] = {OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, sha, sizeof(sha) - 1),
                            OSSL_PARAM_END};
    return crypto.mac_init(g->hash, key, key_length, p) == 1 &&
           crypto.mac_update(g->hash, bytes, length) == 1 &&
           crypto.mac_final(g->hash, digest, &made, DIGEST) == 1 && made == DIGEST;
}

struct slmp_mac *slmp_mac_open(const struct slmp_key *key, struct reason *why)
{
    static const char greetings[] = "SLMP 1 greetings", sessions[] = "SLMP 1 sessions";
    struct slmp_mac *g = crypto_there(why) ? calloc(1, sizeof(*g)) : NULL;
    if (g == NULL) {
        return NULL;
    }
    g->hash = fetch("HMAC");
    g->poly = fetch("POLY1305");
    if (g->hash == NULL || g->poly == NULL ||
        !hash(g, key->bytes, key->length, greetings, sizeof(greetings) - 1, g->greetings) ||
        !hash(g, key->bytes, key->length, sessions, sizeof(sessions) - 1, g->sessions)) {
        slmp_mac_close(g);
        reason_say(why, 0,
                   "a job key needs HMAC with SHA-256 and Poly1305, which libcrypto.so.3 does not "
                   "offer as it is configured (openssl.cnf)");
        return NULL;
    }
    return g;
}

void slmp_mac_close(struct slmp_mac *g)
{
    if (g != NULL) {
        crypto.mac_drop(g->hash);
        crypto.mac_drop(g->poly);
        explicit_bzero(g, sizeof(*g));
        free(g);
    }
}

bool slmp_mac_greeting(struct slmp_mac *g, const void *bytes, size_t length, uint8_t tag[SLMP_TAG])
{
    uint8_t digest[DIGEST];
    bool good = hash(g, g->greetings, sizeof(g->greetings), bytes, length, digest);
    memcpy(tag, digest, SLMP_TAG);
    return good;
}

struct slmp_session_key *slmp_mac_session_key(struct slmp_mac *g, const void *names, size_t length)
{
    uint8_t key[DIGEST];
    struct slmp_session_key *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->group = NO_GROUP;
    l->cipher = crypto.cipher_new();
    if (l->cipher == NULL || !hash(g, g->sessions, sizeof(g->sessions), names, length, key) ||
        crypto.encrypt_init(l->cipher, crypto.aes(), NULL, key, NULL) != 1) {
        slmp_session_key_free(l);
        l = NULL;
    } else {
        crypto.no_padding(l->cipher, 0);
    }
    explicit_bzero(key, sizeof(key));
    return l;
}

void slmp_session_key_free(struct slmp_session_key *l)
{
    if (l != NULL) {
        crypto.cipher_drop(l->cipher);
        explicit_bzero(l, sizeof(*l));
        free(l);
    }
}

static bool make_keys(struct slmp_session_key *l, int64_t group)
{
    uint8_t plain[GROUP][POLY_KEY] = {0};
    int made;
    for (unsigned i = 0; i < GROUP; i++) {
        uint64_t number = __builtin_bswap64((uint64_t)group * GROUP + i);
        memcpy(plain[i], &number, sizeof(number));
        memcpy(plain[i] + 16, &number, sizeof(number));
        plain[i][31] = 1;
    }
    l->group = NO_GROUP;
    if (crypto.encrypt(l->cipher, l->keys[0], &made, plain[0], sizeof(plain)) != 1 ||
        made != (int)sizeof(plain)) {
        return false;
    }
    l->group = group;
    return true;
}

bool slmp_mac_tag(struct slmp_mac *g, struct slmp_session_key *l, uint64_t number,
                  const struct iovec *part, unsigned count, uint8_t tag[SLMP_TAG])
{
    int64_t group = (int64_t)(number / GROUP);
    size_t made;
    if (l->group != group && !make_keys(l, group)) {
        return false;
    }
    bool good = crypto.mac_init(g->poly, l->keys[number % GROUP], POLY_KEY, NULL) == 1;
    for (unsigned i = 0; good && i < count; i++) {
        good = crypto.mac_update(g->poly, part[i].iov_base, part[i].iov_len) == 1;
    }
    return good && crypto.mac_final(g->poly, tag, &made, SLMP_TAG) == 1 && made == SLMP_TAG;
}

bool slmp_tag_equal(const uint8_t a[SLMP_TAG], const uint8_t b[SLMP_TAG])
{
    uint64_t x[2], y[2];
    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}
