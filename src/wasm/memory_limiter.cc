// A limiter with a store in the module's memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/alignment.h"
#include "core/numbers.h"
#include "memory/heap_logs.h"
#include "memory/inline_logs.h"
#include "memory/memory_store.h"
#include "memory/table_store.h"
#include "wasm/exchange.h"

namespace rollgate::memory {

// The stores that most limiters have: of the default algorithm with one window. The linker takes
// them from here, because this file is compiled for speed and linked first.
using Log = ShortLog<SingleWindowPolicy>;
template class TableStore<Log, InlineLogs<Log>>;
template class TableStore<Log, HeapLogs<Log>>;

}  // namespace rollgate::memory

namespace rollgate::wasm {
namespace {

struct MemoryLimiter {
  MemoryLimiter(const Policy& policy, MemoryStoreOptions store_options)
      : options(std::move(store_options)),
        traits(TraitsOf(policy)),
        longest_interval(policy.longest_interval()),
        uses(policy.windows().size()),
        costs(uses.size()),
        actual_costs(uses.size()) {
    options.on_eviction = [this] { has_evicted = true; };
    store = CreateMemoryStore(policy, options);
  }

  Micros Time(double now) const { return TimeFromJs(now) + OffsetIn(alignment); }

  /// What a call that may have dropped an id returns.
  std::int32_t Done() { return std::exchange(has_evicted, false) ? kEvicted : kDone; }

  MemoryStoreOptions options;
  AlgorithmTraits traits;
  Micros longest_interval;
  AlignmentWords alignment = {};
  std::unique_ptr<MemoryStore> store;
  StoreStats before = {};       // attempts and evictions under earlier limits
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
    return new MemoryLimiter(Policy(PolicyFromJs(Numbers())), options);
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
    const Micros time_left = limiter->store->Check(identity, limiter->Time(now));
    const auto result = static_cast<double>(CeilToMillis(time_left));
    return limiter->Done() == kDone ? result : -2 - result;
  } catch (...) {
    return -1;
  }
}

/// Writes a decision to Numbers. For `cost`, see ReadCosts. `max` is 0 unless the policy sets it
/// with each attempt.
ROLLGATE_EXPORT(memory_decide)
std::int32_t MemoryDecide(MemoryLimiter* limiter, std::int32_t length, double now,
                          std::int32_t records, double cost, double max) {
  return Guarded([&] {
    MemoryStore& store = *limiter->store;
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    const auto recording = static_cast<Recording>(records);
    if (max != 0) {
      store.SetMax(static_cast<std::uint64_t>(max), RecordsActions(recording));
    }
    const Costs costs = ReadCosts(cost, Numbers(), limiter->costs);
    Decision decision;
    decision.windows = limiter->uses;
    store.Decide(identity, limiter->Time(now), costs, recording, decision);
    WriteDecision(decision, Numbers());
    return limiter->Done();
  });
}

/// Settles an attempt. In Numbers, the costs of `actual` follow those of `cost`.
ROLLGATE_EXPORT(memory_settle)
std::int32_t MemorySettle(MemoryLimiter* limiter, std::int32_t length, double now, double at,
                          double token, double cost, double actual) {
  return Guarded([&]() -> std::int32_t {
    const Receipt receipt{TimeFromJs(at), ReadCosts(cost, Numbers(), limiter->costs),
                          static_cast<std::uint64_t>(token)};
    const Costs costs = ReadCosts(actual, Numbers() + limiter->uses.size(), limiter->actual_costs);
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    return limiter->store->Settle(identity, receipt, costs, limiter->Time(now)) ? kFound : kDone;
  });
}

ROLLGATE_EXPORT(memory_block)
std::int32_t MemoryBlock(MemoryLimiter* limiter, std::int32_t length, double now, double duration) {
  return Guarded([&]() -> std::int32_t {
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    limiter->store->BlockFor(identity, limiter->Time(now), TimeFromJs(duration));
    return kDone;
  });
}

/// Takes the limits of the policy in Numbers, which has the same shape.
ROLLGATE_EXPORT(memory_set_limits)
std::int32_t MemorySetLimits(MemoryLimiter* limiter, double now) {
  return Guarded([&]() -> std::int32_t {
    const StoreStats last = limiter->store->stats();
    PolicyOptions policy = PolicyFromJs(Numbers());
    const Micros longest = std::ranges::max(policy.windows, {}, &Window::interval).interval;
    limiter->store =
        WithLimits(*limiter->store, std::move(policy), limiter->options, limiter->Time(now));
    limiter->longest_interval = longest;
    limiter->before.Add(last);
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
  StoreStats stats = limiter->store->stats();
  stats.Add(limiter->before);
  WriteStats(stats, Numbers());
}

/// Lets aligned windows follow the wall clock: at `now` of the clock of all other calls, it shows
/// `wall`.
ROLLGATE_EXPORT(memory_follow)
void MemoryFollow(MemoryLimiter* limiter, double now, double wall) {
  if (!limiter->traits.aligns_to_epoch) return;
  const Micros offset = TimeFromJs(wall) - TimeFromJs(now);
  FollowWall(limiter->alignment, offset, limiter->longest_interval);
}

/// Whether settling depends on the time, under the policy in Numbers; kExhausted.
ROLLGATE_EXPORT(settles_ask_time)
std::int32_t SettlesAskTime() {
  return Guarded(
      [&] { return TraitsOf(Policy(PolicyFromJs(Numbers()))).settles_ask_time ? 1 : 0; });
}
