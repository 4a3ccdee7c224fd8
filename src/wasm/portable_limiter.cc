// Decides on states that are bytes in JavaScript.
#include "core/portable_limiter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/numbers.h"
#include "wasm/exchange.h"

namespace rollgate::wasm {
namespace {

struct PortableCore {
  explicit PortableCore(const Policy& policy)
      : limiter(PortableLimiter::Create(policy)),
        uses(policy.windows().size()),
        costs(uses.size()),
        actual_costs(uses.size()) {}

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
    return new PortableCore(Policy(PolicyFromJs(Numbers())));
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
                            double cost, double max, double generation) {
  return Guarded([&] {
    PortableLimiter& limiter = *core->limiter;
    const auto recording = static_cast<Recording>(records);
    if (max != 0) {
      limiter.SetMax(static_cast<std::uint64_t>(max), RecordsActions(recording));
    }
    const Costs costs = ReadCosts(cost, Numbers(), core->costs);
    const auto number = static_cast<Generation>(generation);
    Decision decision;
    decision.windows = core->uses;
    const Outcome outcome = limiter.Decide(StateOf(size), TimeFromJs(now), costs, recording, number,
                                           decision, core->next);
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
