// Decides on states that are bytes in JavaScript.
#include "core/portable_limiter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/numbers.h"
#include "wasm/exchange.h"

namespace rollgate::wasm {
namespace {

struct PortableCore {
  explicit PortableCore(PolicyOptions policy)
      : uses(policy.windows.size()), costs(uses.size()), actual_costs(uses.size()) {
    policy.calendars = &calendars;
    limiter = PortableLimiter::Create(Policy(std::move(policy)));
  }

  HostCalendars calendars;
  std::unique_ptr<PortableLimiter> limiter;
  std::vector<WindowUse> uses;  // for decisions
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> actual_costs;
  std::vector<std::byte> next;  // state
};

using Outcome = PortableLimiter::Outcome;

std::span<const std::byte> StateOf(std::size_t size) {
  return {Bytes(), size};
}

}  // namespace
}  // namespace rollgate::wasm

using namespace rollgate;
using namespace rollgate::wasm;

// Each gets the size of the state in Bytes, and returns an Outcome, or kExhausted.

ROLLGATE_EXPORT(portable_new) PortableCore* PortableNew() {
  try {
    return new PortableCore(PolicyFromJs(Numbers()));
  } catch (...) {
    return nullptr;
  }
}

ROLLGATE_EXPORT(portable_delete) void PortableDelete(PortableCore* core) {
  delete core;
}

/// Writes a decision and the next state: see memory_decide.
ROLLGATE_EXPORT(portable_decide)
std::int32_t PortableDecide(PortableCore* core, std::size_t size, double now, std::int32_t records,
                            double cost, std::int32_t terms, double generation) {
  return Guarded([&] {
    core->limiter->UseLimits(ReadLimits(terms, core->uses.size()));
    core->calendars.are_of_call = (terms & kCalendars) != 0;
    const auto recording = static_cast<Recording>(records);
    const Costs costs = ReadCosts(cost, Numbers(), core->costs);
    const auto number = static_cast<Generation>(generation);
    Decision decision;
    decision.windows = core->uses;
    const Outcome outcome = core->limiter->Decide(StateOf(size), TimeFromJs(now), costs, recording,
                                                  number, decision, core->next);
    if (outcome != Outcome::kForeign) WriteDecision(decision, Numbers());
    return static_cast<std::int32_t>(outcome);
  });
}

/// See memory_settle.
ROLLGATE_EXPORT(portable_settle)
std::int32_t PortableSettle(PortableCore* core, std::size_t size, double now, double at,
                            double token, double cost, double actual) {
  return Guarded([&] {
    const Receipt receipt{TimeFromJs(at), ReadCosts(cost, Numbers(), core->costs),
                          static_cast<std::uint64_t>(token)};
    const Costs costs = ReadCosts(actual, Numbers() + core->uses.size(), core->actual_costs);
    return static_cast<std::int32_t>(
        core->limiter->Settle(StateOf(size), receipt, costs, TimeFromJs(now), core->next));
  });
}

ROLLGATE_EXPORT(portable_block)
std::int32_t PortableBlock(PortableCore* core, std::size_t size, double now, double duration,
                           double generation) {
  return Guarded([&] {
    return static_cast<std::int32_t>(
        core->limiter->BlockFor(StateOf(size), TimeFromJs(now), TimeFromJs(duration),
                                static_cast<Generation>(generation), core->next));
  });
}

/// How long the state can affect decisions, in us.
ROLLGATE_EXPORT(portable_lifetime)
double PortableLifetime(const PortableCore* core, std::size_t size, double now) {
  return static_cast<double>(core->limiter->Lifetime(StateOf(size), TimeFromJs(now)));
}

ROLLGATE_EXPORT(portable_largest_state)
double PortableLargestState(const PortableCore* core) {
  return static_cast<double>(core->limiter->largest_state());
}

/// The next state of the last call with kChanged, and its size.
ROLLGATE_EXPORT(portable_next) const std::byte* PortableNext(const PortableCore* core) {
  return core->next.data();
}
ROLLGATE_EXPORT(portable_next_size) std::size_t PortableNextSize(const PortableCore* core) {
  return core->next.size();
}
