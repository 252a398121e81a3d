/* SPDX-License-Identifier: BSD-3-Clause */
/* sPIN, appendix B: HPU memory, limits, and the calls by which a program uses the handlers of an
 * entry (RED-SEA D4.7, section 4.4). entries.c appends such entries. */
#include "base/log.h"
#include "base/nic_copy.h"
#include "base/tsan.h"
#include "nic/entry.h"
#include "nic/spin/blocks.h"
#include "nic/spin/handler_run.h"
#include "nic/spin/hpu_memory.h"
#include "nic/spin/invoke.h"
#include "nic/spin/timer.h"
#include "nic/spin_calls.h"
#include "portals/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_USER_HEADER 1024u
#define MAX_HANDLER_MEMORY (16u << 20)
#define MAX_INITIAL_STATE (1u << 20)
#define MAX_TIMER_NS (UINT64_C(1) << 60) /* 36 years */

static uint64_t max_user_header(const struct nic *nic)
{
    return nic->packet_size < MAX_USER_HEADER ? nic->packet_size : MAX_USER_HEADER;
}

static unsigned num_hpus(const struct nic *nic)
{
    return nic->sched != NULL ? hpu_sched_hpus(nic->sched) : PTL_NUM_HPUS;
}

/* PTL_HANDLER_MESSAGE_STATE() puts a number of bytes into the options, from this bit on. */
#define STATE_SHIFT 8
#define STATE_OPTIONS PTL_HANDLER_MESSAGE_STATE(UINT64_MAX)

static unsigned message_state(const ptl_handlers_t *h)
{
    return h->options >> STATE_SHIFT;
}

/* An append that is refused has the same code for many reasons; the log says which it is. */
#define refuse(reason, ...)                                                                        \
    api_refuse_call("these handlers cannot be appended: " reason, ##__VA_ARGS__)

static int check_numbers(const struct nic *nic, const ptl_handlers_t *h)
{
    unsigned hpus = num_hpus(nic), state = message_state(h),
             others = h->options & ~(PTL_HANDLER_INACTIVE | PTL_HANDLER_IOVEC |
                                     PTL_HANDLER_KEEP_USER_HDR | STATE_OPTIONS);
    if (others != 0) {
        return refuse("there is no option 0x%x", others);
    }
    if (state > PTL_SPIN_MESSAGE_STATE) {
        return refuse("PTL_HANDLER_MESSAGE_STATE(%u)%s is more than PTL_SPIN_MESSAGE_STATE, %u",
                      state, state == STATE_OPTIONS >> STATE_SHIFT ? " or beyond" : "",
                      PTL_SPIN_MESSAGE_STATE);
    }
    if ((h->hpu_mask & ~(UINT64_MAX >> (64 - hpus))) != 0) {
        return refuse("hpu_mask 0x%" PRIx64 " names an HPU beyond the %u that there are "
                      "(PINWHEEL_HPUS); 0 is all of them",
                      h->hpu_mask, hpus);
    }
    if (h->user_hdr_length > max_user_header(nic)) {
        return refuse("user_hdr_length %" PRIu64 " is more than max_user_hdr_size, %" PRIu64,
                      (uint64_t)h->user_hdr_length, (uint64_t)max_user_header(nic));
    }
    if (h->hpu_initial_length > MAX_INITIAL_STATE) {
        return refuse("hpu_initial_length %" PRIu64 " is more than max_initial_state, %" PRIu64
                      "; allocate HPU memory with PtlHPUAllocMem",
                      (uint64_t)h->hpu_initial_length, (uint64_t)MAX_INITIAL_STATE);
    }
    if (h->handler_host_mem == NULL && h->handler_host_length != 0) {
        return refuse("handler_host_mem is NULL, handler_host_length %" PRIu64,
                      (uint64_t)h->handler_host_length);
    }
    return PTL_OK;
}

static int check_handlers(struct ni *ni, const ptl_handlers_t *h, struct hpu_memory **memory)
{
    struct ni *of;
    *memory = NULL;
    int rc = check_numbers(ni->nic, h);
    if (rc != PTL_OK || h->hpu_mem == PTL_HPU_MEM_NONE) {
        return rc;
    }
    rc = api_object(h->hpu_mem, HANDLE_HPU, &of, memory);
    if (rc == PTL_ARG_INVALID || (rc == PTL_OK && of != ni)) {
        return refuse("hpu_mem is no HPU memory of this interface; with PTL_HPU_MEM_NONE the entry "
                      "gets some of its own");
    }
    if (rc == PTL_OK && h->hpu_initial_length > (*memory)->mem->length) {
        return refuse("hpu_initial_length %" PRIu64 " is more than hpu_mem has, %" PRIu64,
                      (uint64_t)h->hpu_initial_length, (uint64_t)(*memory)->mem->length);
    }
    return rc;
}

/* Finds the RV32 code that the cores run for each handler. If there is none the append fails: on
 * RV32 the NIC never runs a handler's native code instead. */
static int find_device_code(struct nic *nic, struct handlers *made)
{
    void (*const handlers[])(void) = {
        [HPU_CALL_HEADER] = (void (*)(void))made->header,
        [HPU_CALL_PAYLOAD] = (void (*)(void))made->payload,
        [HPU_CALL_COMPLETION] = (void (*)(void))made->completion,
    };
    for (int i = 0; nic->device != NULL && i < 3; i++) {
        struct rv32_error error = {""};
        if (handlers[i] != NULL &&
            hpu_device_find(nic->device, handlers[i], &made->code[i], &error) != 0) {
            log_line(LOG_ERROR, "%s", error.text);
            return PTL_ARG_INVALID;
        }
    }
    return PTL_OK;
}

/* Fills in the object of handlers that were checked. If it fails, the caller frees what `made`
 * has. */
static int set_up(const char *call, struct ni *ni, const ptl_handlers_t *h, struct handlers *made)
{
    *made = (struct handlers){
        .header = h->header_handler,
        .payload = h->payload_handler,
        .completion = h->completion_handler,
        .memory = made->memory,
        .own_memory = made->memory == NULL,
        .host_base = h->handler_host_mem,
        .host_length = h->handler_host_length,
        .user_header = h->user_hdr_length,
        .hpu_mask = h->hpu_mask,
        .inactive = (h->options & PTL_HANDLER_INACTIVE) != 0,
        .slow = 1, /* taken to be slow until a message has shown otherwise */
        .keeps_header = (h->options & PTL_HANDLER_KEEP_USER_HDR) != 0,
        .message_state = message_state(h),
    };
    int rc = find_device_code(ni->nic, made);
    if (rc == PTL_OK && (h->options & PTL_HANDLER_IOVEC) != 0) {
        rc = api_vector(call, ni, h->handler_host_mem, h->handler_host_length, &made->host_vector,
                        &made->host_length);
    }
    if (rc != PTL_OK) {
        return rc;
    }
    if (made->own_memory) {
        made->memory = hpu_memory_new(ni, h->hpu_initial_length);
    }
    unsigned kind = block_kind(made);
    if (made->memory != NULL && blocks_begin(ni->nic, kind)) {
        made->block = (uint8_t)kind;
    }
    if (made->memory == NULL || made->block != kind || handlers_prepare(ni->nic) != 0) {
        return api_refuse_space(call, "max_hpu_mem", MAX_HANDLER_MEMORY);
    }
    if (h->hpu_initial_state != NULL &&
        nic_copy(made->memory->mem->base, h->hpu_initial_state, h->hpu_initial_length) != 0) {
        return refuse("hpu_initial_state %p: of its %" PRIu64 " bytes some cannot be read",
                      h->hpu_initial_state, (uint64_t)h->hpu_initial_length);
    }
    hpu_queue_init(&made->queue, h->hpu_mask);
    return PTL_OK;
}

int api_make_handlers(const char *call, struct ni *ni, const ptl_handlers_t *h,
                      struct handlers **result)
{
    struct hpu_memory *memory;
    int rc = check_handlers(ni, h, &memory);
    if (rc != PTL_OK) {
        return rc;
    }
    struct handlers *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return api_refuse_space(call, "max_hpu_mem", MAX_HANDLER_MEMORY);
    }
    made->memory = memory;
    rc = set_up(call, ni, h, made);
    if (rc != PTL_OK) {
        blocks_end(ni->nic, made->block);
        if (made->own_memory && made->memory != NULL) {
            hpu_memory_free(made->memory);
        }
        free((void *)made->host_vector.parts);
        free(made);
        return rc;
    }
    made->memory->users++;
    *result = made;
    return PTL_OK;
}

int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_mem)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (hpu_mem == NULL || length == 0 || length > MAX_HANDLER_MEMORY) {
        rc = api_refuse_null(__func__, "hpu_mem", hpu_mem)
                 ?: api_refuse_call("PtlHPUAllocMem is refused: length %" PRIu64
                                    " is not 1 to max_handler_mem, %u",
                                    (uint64_t)length, MAX_HANDLER_MEMORY);
        return api_unlock(ni, rc);
    }
    struct hpu_memory *m = hpu_memory_new(ni, length);
    if (m != NULL) {
        *hpu_mem = m->slot.handle;
    } else {
        rc = api_refuse_space(__func__, "max_handler_mem", MAX_HANDLER_MEMORY);
    }
    return api_unlock(ni, rc);
}

int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_mem)
{
    struct ni *ni;
    struct hpu_memory *m;
    int rc = api_lock_object(__func__, hpu_mem, HANDLE_HPU, &ni, &m);
    if (rc != PTL_OK) {
        return rc;
    }
    if (m->users != 0) {
        rc = PTL_IN_USE;
    } else {
        hpu_memory_free(m);
    }
    return api_unlock(ni, rc);
}

int PtlSpinLimits(ptl_handle_ni_t ni_handle, ptl_spin_limits_t *limits)
{
    struct ni *ni;
    int rc = api_lock_ni_for(__func__, ni_handle, &ni, "limits", limits);
    if (rc != PTL_OK) {
        return rc;
    }
    *limits = (ptl_spin_limits_t){
        .max_user_hdr_size = max_user_header(ni->nic),
        .max_payload_size = ni->nic->packet_size,
        .max_handler_mem = MAX_HANDLER_MEMORY,
        .max_initial_state = MAX_INITIAL_STATE,
        .min_fragmentation_limit = 64,
        .max_cycles_per_byte = PTL_SIZE_MAX,
        .num_hpus = num_hpus(ni->nic),
    };
    return api_unlock(ni, rc);
}

int PtlSpinCounter(ptl_handle_ni_t ni_handle, unsigned int index, ptl_spin_counter_t *counter)
{
    struct ni *ni;
    int rc = api_find_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (counter == NULL || index >= PTL_SPIN_COUNTERS) {
        return api_refuse_null(__func__, "counter", counter)
                   ?: api_refuse_call("PtlSpinCounter is refused: index %u is not 0 to %d", index,
                                      PTL_SPIN_COUNTERS - 1);
    }
    const struct hpu_counter *c = &ni->counters[index];
    counter->sum = atomic_load_explicit(&c->sum, memory_order_relaxed);
    counter->count = atomic_load_explicit(&c->count, memory_order_relaxed);
    return PTL_OK;
}

int PtlSpinOutput(ptl_handle_ni_t ni_handle, unsigned int hpu, char *text, ptl_size_t size,
                  ptl_size_t *printed)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (text == NULL || size == 0 || printed == NULL || hpu >= num_hpus(ni->nic)) {
        rc = api_refuse_null(__func__, "text printed", text, printed)
                 ?: size == 0 ? api_refuse_call("PtlSpinOutput is refused: size is 0, and must be "
                                                "at least 1, for the text's end")
                              : api_refuse_call("PtlSpinOutput is refused: hpu %u is not one of %u",
                                                hpu, num_hpus(ni->nic));
    } else {
        size_t length = hpu_output_read(&ni->nic->stats->outputs[hpu], text, size - 1, printed);
        text[length] = '\0';
    }
    return api_unlock(ni, rc);
}

/* Copies between HPU memory and the program's. ThreadSanitizer is not told of accesses to HPU
 * memory: handlers may use it at the same time, and it is up to the program to order them. */
static int copy_beside_handlers(void *hpu, void *to, const void *from, size_t length)
{
    int rc = nic_copy_raw(to != NULL ? to : hpu, from != NULL ? from : hpu, length,
                          NIC_COPY_REP_MIN, nic_copy_wide_min);
    if (rc == 0 && to != NULL) {
        tsan_wrote(to, length);
    } else if (rc == 0) {
        tsan_read(from, length);
    }
    return rc;
}

/* Copies to or from HPU memory without the lock. As its user, the copy keeps the piece from being
 * freed; counted in ni->waiting, it keeps the NI from being closed. */
static int copy_hpu_memory(const char *call, ptl_handle_hpu_mem_t handle, ptl_size_t offset,
                           ptl_size_t length, void *to, const void *from)
{
    struct ni *ni;
    struct hpu_memory *m;
    int rc = api_lock_object(call, handle, HANDLE_HPU, &ni, &m);
    if (rc != PTL_OK) {
        return rc;
    }
    if (offset > m->mem->length || length > m->mem->length - offset) {
        return api_unlock(
            ni, api_refuse_call("%s is refused: offset %" PRIu64 " and length %" PRIu64
                                " reach beyond the %zu bytes of hpu_mem",
                                call, (uint64_t)offset, (uint64_t)length, m->mem->length));
    }
    m->users++;
    ni->waiting++;
    api_unlock(ni, rc);
    PAUSE_POINT("copies");
    void *at = (char *)m->mem->base + offset;
    if (copy_beside_handlers(at, to, from, length) != 0) {
        rc = api_refuse_call("%s is refused: length %" PRIu64 ": not all of it is at %p", call,
                             (uint64_t)length, to != NULL ? to : from);
    }
    nic_lock(ni->nic);
    m->users--;
    ni->waiting--;
    ni->nic->wakeup.due |= ni->closing; /* for the thread that closes the NI */
    return api_unlock(ni, rc);
}

int PtlHPURead(ptl_handle_hpu_mem_t hpu_mem, ptl_size_t offset, void *dst, ptl_size_t length)
{
    return dst == NULL ? api_refuse_call("PtlHPURead is refused: dst is NULL")
                       : copy_hpu_memory(__func__, hpu_mem, offset, length, dst, NULL);
}

int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_mem, ptl_size_t offset, const void *src, ptl_size_t length)
{
    return src == NULL ? api_refuse_call("PtlHPUWrite is refused: src is NULL")
                       : copy_hpu_memory(__func__, hpu_mem, offset, length, NULL, src);
}

/* Finds an entry by its handle, at either kind of NI; on PTL_OK the caller then holds the lock. */
static int lock_entry(const char *call, ptl_handle_me_t handle, struct ni **ni, struct le **le)
{
    int rc = api_lock_object(call, handle, HANDLE_LE, ni, le);
    if (rc == PTL_OK && (!(*le)->linked || (*le)->handlers == NULL)) {
        return api_unlock(*ni,
                          api_refuse_call("%s is refused: me_handle 0x%x is of an entry without "
                                          "handlers, or not in its list yet",
                                          call, handle));
    }
    return rc;
}

int PtlHandlersActivate(ptl_handle_me_t me_handle)
{
    struct ni *ni;
    struct le *le;
    int rc = lock_entry(__func__, me_handle, &ni, &le);
    if (rc == PTL_OK) {
        rc = le_activate(le);
        trigger_run(ni->nic); /* the entry may have claimed headers, and counted them */
        if (rc == PTL_ARG_INVALID) {
            api_refuse_call("PtlHandlersActivate is refused: me_handle 0x%x is active; "
                            "PTL_HANDLER_INACTIVE appends one that is not",
                            me_handle);
        }
        api_unlock(ni, rc);
    }
    return rc;
}

int PtlHandlersInvoke(ptl_handle_me_t me_handle, const void *msg, ptl_size_t length)
{
    return PtlHandlersInvokeEx(me_handle, msg, length, 0);
}

int PtlHandlersInvokeEx(ptl_handle_me_t me_handle, const void *msg, ptl_size_t length,
                        ptl_hdr_data_t hdr_data)
{
    struct ni *ni;
    struct le *le;
    const struct invoke_what what = {.data = msg, .length = length, .hdr_data = hdr_data};
    if (msg == NULL && length != 0) {
        return api_refuse_call("PtlHandlersInvokeEx is refused: msg is NULL, length %" PRIu64,
                               (uint64_t)length);
    }
    int rc = lock_entry(__func__, me_handle, &ni, &le);
    if (rc == PTL_OK) {
        rc = invoke(le, &what);
        if (rc == PTL_ARG_INVALID || rc == PTL_NO_SPACE) {
            api_refuse_state(rc,
                             "PtlHandlersInvokeEx is refused: length %" PRIu64 " is more than "
                             "max_msg_size, or than is there at msg; or PINWHEEL_HPU_QUEUE "
                             "messages wait already",
                             (uint64_t)length);
        }
        if (rc == PTL_NO_SPACE) {
            (void)nic_quiet(ni->nic); /* in virtual time, a look at nothing: it may be in a loop */
        }
        nic_advance(ni->nic);
        api_unlock(ni, rc);
    }
    return rc;
}

int PtlHandlersTimer(ptl_handle_me_t me_handle, uint64_t delay_ns, uint64_t period_ns,
                     ptl_hdr_data_t hdr_data, ptl_handle_timer_t *timer)
{
    struct ni *ni;
    struct le *le;
    if (timer == NULL || delay_ns > MAX_TIMER_NS || period_ns > MAX_TIMER_NS ||
        (period_ns != 0 && period_ns < PTL_SPIN_TIMER_LEAST)) {
        return api_refuse_call("PtlHandlersTimer is refused: timer %p is NULL, delay_ns %" PRIu64
                               " or period_ns %" PRIu64
                               " more than 2^60, or period_ns less than %d",
                               (void *)timer, delay_ns, period_ns, PTL_SPIN_TIMER_LEAST);
    }
    int rc = lock_entry(__func__, me_handle, &ni, &le);
    if (rc == PTL_OK) {
        bool ready = progress_have_alarm(ni->nic) == 0;
        struct timer *t =
            ready ? timer_start(le, (int64_t)delay_ns, (int64_t)period_ns, hdr_data) : NULL;
        *timer = t != NULL ? t->slot.handle : PTL_INVALID_HANDLE;
        rc = t != NULL
                 ? PTL_OK
                 : api_refuse_state(PTL_NO_SPACE, "PtlHandlersTimer is refused: no memory, or "
                                                  "no descriptor for a timer (ulimit -n)");
        api_unlock(ni, rc);
    }
    return rc;
}

int PtlHandlersTimerCancel(ptl_handle_timer_t timer)
{
    struct ni *ni;
    struct timer *t;
    int rc = api_lock_object(__func__, timer, HANDLE_TIMER, &ni, &t);
    if (rc == PTL_OK) {
        timer_end(t);
        api_unlock(ni, rc);
    }
    return rc;
}
