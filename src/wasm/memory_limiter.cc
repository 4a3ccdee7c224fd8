// A limiter with a store in the module's memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/numbers.h"
#include "memory/memory_store.h"
#include "wasm/exchange.h"

namespace rollgate::wasm {
namespace {

struct MemoryLimiter {
  MemoryLimiter(const Policy& policy, MemoryStoreOptions store_options)
      : options(std::move(store_options)), uses(policy.windows().size()) {
    options.on_eviction = [this] { has_evicted = true; };
    store = CreateMemoryStore(policy, options);
  }

  /// What a call that may have dropped an id returns.
  std::int32_t Done() { return std::exchange(has_evicted, false) ? kEvicted : kDone; }

  MemoryStoreOptions options;
  std::unique_ptr<MemoryStore> store;
  std::vector<WindowUse> uses;  // for decisions
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> actual_costs;
  bool has_evicted = false;
};

}  // namespace
}  // namespace rollgate::wasm

using namespace rollgate;
using namespace rollgate::wasm;

/// A limiter with the policy in Numbers and the secret in Bytes; 0 if there is no memory.
ROLLGATE_EXPORT(memory_new)
MemoryLimiter* MemoryNew(double max_keys, bool clock_may_step_back) {
  try {
    MemoryStoreOptions options;
    // More would never fit.
    options.max_keys = static_cast<std::size_t>(std::min(max_keys, double{1 << 30}));
    options.secret = ReadSecret();
    options.clock_may_step_back = clock_may_step_back;
    return new MemoryLimiter(Policy(ReadPolicy()), options);
  } catch (...) {
    return nullptr;
  }
}

ROLLGATE_EXPORT(memory_delete) void MemoryDelete(MemoryLimiter* limiter) {
  delete limiter;
}

/// Attempts an action of cost 1. Returns the time left in ms; -1 if there is no memory; -2 - the
/// time left if an id was dropped.
ROLLGATE_EXPORT(memory_check)
double MemoryCheck(MemoryLimiter* limiter, std::int32_t length, double now) {
  try {
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    const Micros time_left = limiter->store->Check(identity, TimeFromJs(now));
    const auto result = static_cast<double>(CeilToMillis(time_left));
    return limiter->Done() == kDone ? result : -2 - result;
  } catch (...) {
    return -1;
  }
}

/// Writes a decision to Numbers, which has the costs, if they are `count` of them. `max` is 0
/// unless the policy sets it with each attempt.
ROLLGATE_EXPORT(memory_decide)
std::int32_t MemoryDecide(MemoryLimiter* limiter, std::int32_t length, double now,
                          std::int32_t records, std::size_t count, double cost, double max) {
  return Guarded([&] {
    MemoryStore& store = *limiter->store;
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    const auto recording = static_cast<Recording>(records);
    if (max != 0) {
      store.SetMax(static_cast<std::uint64_t>(max), RecordsActions(recording));
    }
    double* const numbers = Numbers();
    const Costs costs = ReadCosts(numbers, count, cost, limiter->costs);
    Decision decision;
    decision.windows = limiter->uses;
    store.Decide(identity, TimeFromJs(now), costs, recording, decision);
    WriteDecision(decision, numbers);
    return limiter->Done();
  });
}

/// Settles an attempt. Numbers has its costs, if they are `count` of them, followed by the actual
/// costs in the same way.
ROLLGATE_EXPORT(memory_settle)
std::int32_t MemorySettle(MemoryLimiter* limiter, std::int32_t length, double now, double at,
                          double token, std::size_t count, double cost, std::size_t actual_count,
                          double actual) {
  return Guarded([&]() -> std::int32_t {
    const double* const numbers = Numbers();
    const Receipt receipt{TimeFromJs(at), ReadCosts(numbers, count, cost, limiter->costs),
                          static_cast<std::uint64_t>(token)};
    const Costs costs = ReadCosts(numbers + count, actual_count, actual, limiter->actual_costs);
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    return limiter->store->Settle(identity, receipt, costs, TimeFromJs(now)) ? kFound : kDone;
  });
}

ROLLGATE_EXPORT(memory_block)
std::int32_t MemoryBlock(MemoryLimiter* limiter, std::int32_t length, double now, double duration) {
  return Guarded([&]() -> std::int32_t {
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    limiter->store->BlockFor(identity, TimeFromJs(now), TimeFromJs(duration));
    return kDone;
  });
}

/// Takes the limits of the policy in Numbers, which has the same shape.
ROLLGATE_EXPORT(memory_set_limits)
std::int32_t MemorySetLimits(MemoryLimiter* limiter, double now) {
  return Guarded([&]() -> std::int32_t {
    limiter->store = WithLimits(*limiter->store, ReadPolicy(), limiter->options, TimeFromJs(now));
    return kDone;
  });
}

ROLLGATE_EXPORT(memory_clear)
std::int32_t MemoryClear(MemoryLimiter* limiter, std::int32_t length) {
  return Guarded([&]() -> std::int32_t {
    return limiter->store->Clear(ReadIdentity(length, limiter->options.secret)) ? kFound : kDone;
  });
}

ROLLGATE_EXPORT(memory_clear_all)
std::int32_t MemoryClearAll(MemoryLimiter* limiter) {
  return Guarded([&]() -> std::int32_t {
    limiter->store->ClearAll();
    return kDone;
  });
}

/// Writes keys, allowed, blocked, evicted and bytes to Numbers.
ROLLGATE_EXPORT(memory_stats)
void MemoryStats(const MemoryLimiter* limiter) {
  const StoreStats stats = limiter->store->stats();
  double* next = Numbers();
  for (const std::uint64_t number :
       {stats.keys, stats.allowed, stats.blocked, stats.evicted, std::uint64_t{stats.bytes}}) {
    *next++ = static_cast<double>(number);
  }
}

/// Bits of the algorithm with this number: 1 if its windows begin at multiples of the interval
/// since the epoch, 2 if settling depends on the time; kExhausted.
ROLLGATE_EXPORT(traits)
std::int32_t Traits() {
  return Guarded([&] {
    const AlgorithmTraits traits = TraitsOf(Policy(ReadPolicy()));
    return (traits.aligns_to_epoch ? 1 : 0) | (traits.settles_ask_time ? 2 : 0);
  });
}
