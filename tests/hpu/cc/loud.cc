// SPDX-License-Identifier: BSD-3-Clause
// The handler of shout.c in C++, with what C++ has and a handler may use: templates, constexpr,
// classes with virtual functions, lambdas, namespaces, references, placement new.
#include "shout.h"

#ifdef LOUD_STANDARD
static_assert(__cplusplus >= LOUD_STANDARD, "both compilers are told the standard");
#endif

inline void *operator new(__SIZE_TYPE__, void *at) noexcept
{
    return at;
}

namespace loud
{

template <typename T, unsigned N> struct table {
    T item[N];
    constexpr const T &operator[](unsigned i) const
    {
        return item[i];
    }
};

constexpr table<uint8_t, 256> make_capitals()
{
    table<uint8_t, 256> made{};
    for (unsigned i = 0; i < 256; i++) {
        made.item[i] = static_cast<uint8_t>(i >= 'a' && i <= 'z' ? i - 'a' + 'A' : i);
    }
    return made;
}

constexpr auto capitals = make_capitals();
static_assert(capitals['q'] == 'Q', "made by the compiler");

class change
{
  public:
    virtual uint8_t of(uint8_t byte) const = 0;

  protected:
    constexpr change() = default;
    ~change() = default;
};

class none final : public change
{
  public:
    constexpr none() = default;
    uint8_t of(uint8_t byte) const override
    {
        return byte;
    }
};

class capital final : public change
{
  public:
    constexpr capital() = default;
    uint8_t of(uint8_t byte) const override
    {
        return capitals[byte];
    }
};

constexpr none no_change;
constexpr capital to_capital;
constexpr const change *changes[] = {&no_change, &to_capital};

template <typename F> void each_byte(const ptl_payload_t &packet, F f)
{
    for (ptl_size_t i = 0; i < packet.length; i++) {
        f(packet.base[i]);
    }
}

// shout_state with members of its own: what is compared goes through bases and template arguments.
template <typename T> struct cell {
    static constexpr T step = 1;
    T value;
    void add(T n)
    {
        value += n * step;
    }
};

struct state : shout_state {
    enum class mood : uint8_t { quiet, loud } now;
    cell<uint32_t> packets;
};
PTL_HANDLER_STATE(state);
static_assert(__is_standard_layout(cell<uint32_t>), "the host's");

struct stopwatch {
    uint32_t &into;
    uint64_t start = PtlHandlerCycles();
    explicit stopwatch(uint32_t &to) : into(to)
    {
    }
    ~stopwatch()
    {
        into = static_cast<uint32_t>(PtlHandlerCycles() - start);
    }
};

__handler int watch_payload(const ptl_payload_t p, void *memory)
{
    auto &s = *static_cast<state *>(memory);
    s.packets.add(p.length != 0);
    s.now = state::mood::loud;
    return PROCEED;
}
PTL_HANDLER(watch_payload);

} // namespace loud

__handler int shout_payload(const ptl_payload_t p, void *state)
{
    auto &s = *static_cast<shout_state *>(state);
    alignas(loud::stopwatch) uint8_t room[sizeof(loud::stopwatch)];
    auto *watch = new (room) loud::stopwatch(s.cycles);
    PtlHandlerFAdd(&s.letters, nullptr, shout_count(p.base, p.length));
    const loud::change &change = *loud::changes[p.length != 0];
    loud::each_byte(p, [&change](uint8_t &byte) { byte = change.of(byte); });
    s.pointer = sizeof(void *);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    watch->~stopwatch();
    return SUCCESS;
}
PTL_HANDLER(shout_payload);
