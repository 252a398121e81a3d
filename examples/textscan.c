/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words counted in a text that passes: rank 0 puts a text to rank 1, message by message; the NIC
 * of rank 1 counts bytes and words, and nobody there ever has the text.
 *
 *      rank 0 ──message 0──► slot 0 ┐
 *             ──message 1──► slot 1 ├─ NIC of rank 1: counts, and the words over the edges
 *             ──message 2──► slot 2 │
 *             ──message 3──► slot 3 ┘
 *
 *      $ pinwheel run -n 2 ./textscan                  the numbers up to 9999, spelled out
 *      $ pinwheel run -n 2 ./textscan FILE WORD...
 */
#include "start.h"

#include <ctype.h>

#include "textscan.h"

enum { RESULT = 10, LENGTH, MESSAGE = 16384, LONGEST = 1 << 24 };

/* ---- The text ---- */

static const char *const small[] = {"zero",    "one",     "two",       "three",    "four",
                                    "five",    "six",     "seven",     "eight",    "nine",
                                    "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};

static void spell(FILE *file, int n)
{
    if (n >= 1000) {
        spell(file, n / 1000);
        fputs("thousand ", file);
        n %= 1000;
    }
    if (n >= 100) {
        fprintf(file, "%s hundred ", small[n / 100]);
        n %= 100;
    }
    if (n >= 20) {
        fprintf(file, "%s ", tens[n / 10]);
        n %= 10;
    }
    if (n > 0) {
        fprintf(file, "%s ", small[n]);
    }
}

static FILE *numbers(void)
{
    FILE *file = tmpfile();
    for (int n = 1; file != NULL && n < 10000; n++) {
        spell(file, n);
        fputc('\n', file);
    }
    if (file != NULL) {
        rewind(file);
    }
    return file;
}

/* ---- What both know ---- */

struct job {
    struct textscan_filter filter;
    char **word;
    uint64_t messages;
    struct textscan_totals result;
};

static void choose_words(struct job *job, char **word, int count)
{
    static const char *const why[] = {[TEXTSCAN_EMPTY] = "it is empty",
                                      [TEXTSCAN_LONG] = "it is too long",
                                      [TEXTSCAN_BYTE] = "it has a byte that is in no word",
                                      [TEXTSCAN_TWICE] = "it is there twice",
                                      [TEXTSCAN_FULL] = "there are too many"};
    job->word = word;
    for (int i = 0; i < count; i++) {
        enum textscan_refusal refusal = textscan_add(&job->filter, word[i], strlen(word[i]));
        if (refusal != TEXTSCAN_ADDED) {
            fail("\"%s\" cannot be looked for: %s", word[i], why[refusal]);
        }
    }
}

/* ---- Rank 1 ---- */

static int scan(const struct start *s, struct job *job)
{
    static struct textscan_state state;
    uint64_t most = LONGEST / MESSAGE;
    void *host = memory(textscan_host_size(most));
    ptl_handle_ct_t came = counter(s), told = counter(s);
    ptl_handle_me_t handle;
    for (uint64_t slot = 0; slot < TEXTSCAN_SLOTS; slot++) {
        ptl_handle_hpu_mem_t hpu;
        ptl_handlers_t handlers;
        ptl_me_t me = entry(NULL, 0, slot, came);
        check(PtlHPUAllocMem(s->ni, sizeof(state), &hpu), "PtlHPUAllocMem");
        textscan_handlers(slot, &job->filter, s->packet, hpu, host, most, &state, &handlers);
        check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    }
    ptl_me_t me = entry(&job->messages, sizeof(job->messages), LENGTH, told);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    me = entry(&job->result, sizeof(job->result), RESULT, told);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(s); /* the entries are there */
    await(told, 1);
    await(came, job->messages);
    textscan_result(host, job->messages, &job->filter, &job->result);
    meet(s); /* the result is there */
    return 0;
}

/* ---- Rank 0 ---- */

/* A slot takes a message when the one before has been acknowledged. */
static void stream(const struct start *s, struct job *job, const char *text, size_t length)
{
    ptl_handle_ct_t acks = counter(s), told = counter(s);
    ptl_handle_md_t md = source(s, text, length, acks);
    job->messages = (length + MESSAGE - 1) / MESSAGE;
    check(PtlPut(source(s, &job->messages, sizeof(job->messages), told), 0, sizeof(job->messages),
                 PTL_CT_ACK_REQ, rank_id(1), INDEX, LENGTH, 0, NULL, 0),
          "PtlPut");
    for (uint64_t m = 0; m < job->messages; m++) {
        size_t left = length - m * MESSAGE;
        if (m >= TEXTSCAN_SLOTS) {
            await(acks, m - TEXTSCAN_SLOTS + 1);
        }
        check(PtlPut(md, m * MESSAGE, left < MESSAGE ? left : MESSAGE, PTL_CT_ACK_REQ, rank_id(1),
                     INDEX, m % TEXTSCAN_SLOTS, 0, NULL, m),
              "PtlPut");
    }
    await(acks, job->messages);
    await(told, 1);
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* How often a word is in the text, by this program. */
static uint64_t plain_count(const char *text, size_t length, const char *word)
{
    uint64_t count = 0;
    for (size_t at = 0, n; at < length; at += n + (n == 0)) {
        for (n = 0; at + n < length && in_word(text[at + n]); n++) {
        }
        count += n == strlen(word) && strncasecmp(text + at, word, n) == 0;
    }
    return count;
}

static int lead(const struct start *s, struct job *job, FILE *file)
{
    char *text = memory(LONGEST);
    size_t length = fread(text, 1, LONGEST, file), bytes = 0;
    ptl_handle_ct_t came = counter(s);
    int wrong = 0;
    if (length == 0 || length == LONGEST) {
        fail("a text of 1 to %d bytes, please", LONGEST - 1);
    }
    meet(s);
    stream(s, job, text, length);
    meet(s);
    check(PtlGet(source(s, &job->result, sizeof(job->result), came), 0, sizeof(job->result),
                 rank_id(1), INDEX, RESULT, 0, NULL),
          "PtlGet");
    await(came, 1);
    for (uint32_t w = 0; w < job->filter.count; w++) {
        printf("%8llu times \"%s\"\n", (unsigned long long)job->result.words[w], job->word[w]);
        wrong += job->result.words[w] != plain_count(text, length, job->word[w]);
    }
    for (int c = 0; c < 256; c++) {
        bytes += job->result.bytes[c];
    }
    printf("%zu bytes in %llu messages, %llu lines; %d counts wrong\n", bytes,
           (unsigned long long)job->result.messages, (unsigned long long)job->result.bytes['\n'],
           wrong);
    return wrong != 0 || bytes != length;
}

int main(int argc, char **argv)
{
    static struct job job;
    static char *usual[] = {"one", "seventeen", "Ninety", "hundred", "thousand", "million"};
    struct start s;
    start(&s, 2, 2);
    if (argc == 2) {
        usage(&s, "[FILE WORD...]");
    }
    choose_words(&job, argc == 1 ? usual : argv + 2, argc == 1 ? 6 : argc - 2);
    if (s.rank == 1) {
        return finish(&s, scan(&s, &job));
    }
    FILE *file = argc == 1 ? numbers() : fopen(argv[1], "rb");
    if (file == NULL) {
        fail("%s: %s", argc == 1 ? "a temporary file" : argv[1], strerror(errno));
    }
    return finish(&s, lead(&s, &job, file));
}
