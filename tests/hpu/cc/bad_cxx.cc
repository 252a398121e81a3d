// SPDX-License-Identifier: BSD-3-Clause
// What C++ has and handlers have not, one of them by each -D; cc.sh expects each message.
#include "spin_handler.h"

#ifdef HEADER
#include <type_traits>
#endif

namespace bad
{

uint32_t twice(uint32_t n);

struct thing {
    uint32_t n;
    explicit thing(uint32_t m) : n(twice(m))
    {
    }
};

#ifdef VIRTUAL
struct parent {
    uint32_t first;
};
struct child : parent {
    virtual uint32_t get() const
    {
        return first;
    }
    uint32_t second;
};
using state = child;
#elif defined(BASE)
struct parent {
    uint32_t fine;
    size_t length;
};
struct child : parent {
    uint32_t first;
};
using state = child;
#elif defined(REFERENCE)
struct state {
    uint32_t &first;
};
#elif defined(MEMBER)
struct state {
    uint32_t first;
    uint32_t state::*second;
};
#elif defined(TEMPLATE)
template <typename T> class cell
{
    T value;

  public:
    void set(uint64_t n)
    {
        value = static_cast<T>(n);
    }
};
struct state {
    uint32_t first;
    cell<uint32_t> fine;
    cell<long> deep;
};
#else
struct state {
    uint32_t first;
};
#endif

#ifdef CONSTRUCTOR
static const thing made(21);
#elif defined(UNUSED_CONSTRUCTOR)
struct greeter {
    greeter()
    {
        PtlHandlerYield();
    }
};
greeter greets;
#elif defined(DESTRUCTOR) || defined(LOCAL_DESTRUCTOR)
struct leaver {
    ~leaver()
    {
        PtlHandlerYield();
    }
};
#ifdef DESTRUCTOR
leaver leaves;
#endif
#elif defined(DELETE)
struct leaver {
    virtual ~leaver()
    {
        PtlHandlerYield();
    }
};
#elif defined(DYNAMIC_CAST)
struct animal {
    virtual uint32_t legs() const
    {
        return 4;
    }
};
struct bird : animal {
    uint32_t legs() const override
    {
        return 2;
    }
};
const bird robin;
const animal *const pet = &robin;
#elif defined(PURE)
struct animal {
    virtual uint32_t legs() const = 0;
};
struct bird : animal {
    __attribute__((noinline)) bird();
    uint32_t legs() const override
    {
        return 2;
    }
};
bird::bird()
{
    __asm__ volatile("" ::: "memory");
}
#endif

#if defined(PURE) || defined(DELETE)
PTL_HANDLER_STATE(state); // not the others
#endif

__handler int bad_payload(const ptl_payload_t p, void *memory)
{
    state &s = *static_cast<state *>(memory);
    const uint32_t length = static_cast<uint32_t>(p.length);
    s.first = length;
#ifdef TEMPLATE
    s.fine.set(length);
#endif
#ifdef CONSTRUCTOR
    s.first += made.n;
#elif defined(LOCAL_STATIC)
    static const thing kept(length);
    s.first += kept.n;
#elif defined(NEW)
    auto *fresh = new thing(length);
    __asm__ volatile("" ::"r"(fresh) : "memory");
#elif defined(DELETE)
    leaver leaves;
    __asm__ volatile("" ::"r"(&leaves) : "memory");
#elif defined(LOCAL_DESTRUCTOR)
    static const leaver leaves;
    __asm__ volatile("" ::"r"(&leaves) : "memory");
#elif defined(THROW)
    if (length == 0) {
        throw 1;
    }
#elif defined(TRY)
    try {
        s.first = twice(length);
    } catch (...) {
        return FAIL;
    }
#elif defined(DYNAMIC_CAST)
    s.first = dynamic_cast<const bird *>(pet) != nullptr;
#elif defined(PURE)
    bird robin;
    const animal *volatile pet = &robin;
    s.first = pet->legs();
#elif defined(TYPO)
    return PROCED;
#endif
    return s.first == 0 ? DROP : SUCCESS;
}
PTL_HANDLER(bad_payload);

uint32_t twice(uint32_t n)
{
    return 2 * n;
}

} // namespace bad
