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
  MemoryLimiter(PolicyOptions given, MemoryStoreOptions store_options)
      : options(std::move(store_options)),
        policy(std::move(given)),
        uses(policy.windows.size()),
        costs(uses.size()),
        actual_costs(uses.size()) {
    options.on_eviction = [this] { has_evicted = true; };
    policy.calendars = &calendars;
    const Policy rules(policy);
    traits = TraitsOf(rules);
    grows_to_record = LimitToRecordUnder(rules);
    store = CreateMemoryStore(rules, options);
  }

  /// Puts a store with other limits, which has taken over all ids, in place of the store.
  void ReplaceStore(PolicyOptions next, Micros now) {
    const StoreStats last = store->stats();
    store = WithLimits(*store, next, options, now);
    policy = std::move(next);
    before.Add(last);
  }

  /// As in src/binding/local_limiter.h.
  void MakeRoomToRecord(Micros now) {
    if (grows_to_record == 0) return;
    UseLimits(std::vector<std::uint64_t>(uses.size(), grows_to_record), now);
    store->UseLimits({});
  }

  void UseLimits(std::span<const std::uint64_t> limits, Micros now) {
    if (store->UseLimits(limits)) return;
    PolicyOptions wider = policy;
    wider.largest_limit = LargestLimitFor(limits);
    ReplaceStore(std::move(wider), now);
    store->UseLimits(limits);
  }

  Micros Time(double now) const { return TimeFromJs(now) + OffsetIn(alignment); }

  /// What a call that may have dropped an id returns.
  std::int32_t Done() { return std::exchange(has_evicted, false) ? kEvicted : kDone; }

  MemoryStoreOptions options;
  PolicyOptions policy;
  HostCalendars calendars;
  AlgorithmTraits traits;
  std::uint64_t grows_to_record = 0;
  AlignmentWords alignment = {};
  std::unique_ptr<MemoryStore> store;
  StoreStats before = {};       // attempts and evictions under earlier limits
  std::vector<WindowUse> uses;  // for decisions
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> actual_costs;
  bool has_evicted = false;
};

/// What a call brings of its own, as long as this lives.
class TermsOfCall {
 public:
  TermsOfCall(MemoryLimiter& limiter, std::int32_t terms, Micros now) : limiter_(limiter) {
    const auto limits = ReadLimits(terms, limiter.uses.size());
    if (!limits.empty()) limiter.UseLimits(limits, now);
    has_limits_ = !limits.empty();
    limiter.calendars.are_of_call = (terms & kCalendars) != 0;
  }
  ~TermsOfCall() {
    if (has_limits_) limiter_.store->UseLimits({});
    limiter_.calendars.are_of_call = false;
  }
  TermsOfCall(const TermsOfCall&) = delete;
  TermsOfCall& operator=(const TermsOfCall&) = delete;

 private:
  MemoryLimiter& limiter_;
  bool has_limits_ = false;
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
    return new MemoryLimiter(PolicyFromJs(Numbers()), options);
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

/// Writes a decision to Numbers. For `cost`, see ReadCosts; for `terms`, see Terms.
ROLLGATE_EXPORT(memory_decide)
std::int32_t MemoryDecide(MemoryLimiter* limiter, std::int32_t length, double now,
                          std::int32_t records, double cost, std::int32_t terms) {
  return Guarded([&] {
    const Identity identity = ReadIdentity(length, limiter->options.secret);
    const Micros time = limiter->Time(now);
    const Costs costs = ReadCosts(cost, Numbers(), limiter->costs);
    const auto recording = static_cast<Recording>(records);
    if (recording == Recording::kRecord) limiter->MakeRoomToRecord(time);
    const TermsOfCall scope(*limiter, terms, time);
    Decision decision;
    decision.windows = limiter->uses;
    limiter->store->Decide(identity, time, costs, recording, decision);
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
    const Micros time = limiter->Time(now);
    if (costs.IsUniform() && receipt.cost.IsUniform() && costs.uniform() > receipt.cost.uniform()) {
      limiter->MakeRoomToRecord(time);
    }
    return limiter->store->Settle(identity, receipt, costs, time) ? kFound : kDone;
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
    PolicyOptions policy = PolicyFromJs(Numbers());
    policy.calendars = &limiter->calendars;
    limiter->ReplaceStore(std::move(policy), limiter->Time(now));
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
  FollowWall(limiter->alignment, offset, PeriodOf(limiter->policy.windows));
}

/// Whether settling depends on the time, under the policy in Numbers; kExhausted.
ROLLGATE_EXPORT(settles_ask_time)
std::int32_t SettlesAskTime() {
  return Guarded(
      [&] { return TraitsOf(Policy(PolicyFromJs(Numbers()))).settles_ask_time ? 1 : 0; });
}
