// Joins the table, the logs and the algorithm.
#include "memory/memory_store.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <new>
#include <utility>

#include "core/sliding_window_log.h"
#include "memory/block_logs.h"
#include "memory/inline_logs.h"
#include "memory/table.h"

// The check is one function: measured, the calls between its parts cost as much as the parts.
#if defined(__GNUC__)
#define ROLLGATE_FLATTEN [[gnu::flatten]]
#define ROLLGATE_NOINLINE [[gnu::noinline]]
#else
#define ROLLGATE_FLATTEN
#define ROLLGATE_NOINLINE
#endif

namespace rollgate {
namespace {

namespace algorithm = sliding_window_log;
using memory::BlockLogs;
using memory::InlineLogs;
using memory::Place;
using memory::Slot;
using memory::Table;

/// `P` is a form of the policy, `Logs` is where the ids' older actions live.
template <class P, class Logs>
class LogStore final : public MemoryStore {
 public:
  LogStore(const Policy& policy, const MemoryStoreOptions& options)
      : policy_(policy),
        logs_(policy),
        table_({logs_.payload_bytes(), std::max<std::size_t>(options.max_keys, 1),
                policy_.retention(), !options.clock_may_step_back, options.secret}),
        on_first_eviction_(options.on_first_eviction) {}

  ~LogStore() override { DestroyLogs(); }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros now) override {
    TendNowAndThen(now);
    const Place place = table_.Find(id);
    if (!place) [[unlikely]] {
      JudgeUnknown(id, now, 1, [](const auto&, const Verdict&) {});
      return 0;
    }
    const Micros newest = place.newest();
    if (Logs::kGrows && !policy_.count_blocked()) {
      // A refusal that leaves no trace takes no room either.
      const auto log = logs_.Load(*place.slot, newest);
      if (!algorithm::Decide(log, policy_, now, 1).allowed()) {
        ++blocked_;
        return algorithm::WaitFor(log, policy_, now, 1);
      }
    }
    auto log = logs_.LoadWithRoom(*place.slot, newest, 1);
    const Micros time_left = AttemptOne(log, now);
    ++(time_left == 0 ? allowed_ : blocked_);
    logs_.Save(*place.slot, log);
    if (log.Nth(1) != newest) table_.Touch(place, log.Nth(1));
    return time_left;
  }

  void Attempt(const Identity& id, Micros now, std::uint64_t cost, Decision& decision) override {
    decision.incarnation = Judge(id, now, cost, [&](const auto& log, const Verdict& verdict) {
      algorithm::Describe(log, policy_, verdict, now, cost, decision);
    });
  }

  void Peek(const Identity& id, Micros now, std::uint64_t cost, Decision& decision) override {
    if (const Place place = table_.Find(id)) {
      const auto log = logs_.Load(*place.slot, place.newest());
      algorithm::Describe(log, policy_, algorithm::Decide(log, policy_, now, cost), now, cost,
                          decision);
    } else {
      algorithm::Describe(algorithm::EmptyLog(), policy_, VerdictOnUnknown(now), now, cost,
                          decision);
    }
  }

  bool Refund(const Identity& id, const Receipt& receipt) override {
    const Place place = table_.Find(id);
    if (!place || place.slot->incarnation != receipt.incarnation) return false;
    auto log = logs_.Load(*place.slot, place.newest());
    if (!algorithm::Refund(log, policy_, receipt.at, receipt.cost)) return false;
    if (log.size() == 0) {
      Forget(place);
    } else {
      logs_.Save(*place.slot, log);
      table_.Touch(place, log.Nth(1));
    }
    return true;
  }

  bool Clear(const Identity& id) override {
    const Place place = table_.Find(id);
    if (place) Forget(place);
    return static_cast<bool>(place);
  }

  void ClearAll() override {
    DestroyLogs();
    table_.Clear();
  }

  MemoryStoreStats stats() const override {
    return {table_.live(), allowed_, blocked_, table_.evicted(),
            table_.bytes() + logs_.extra_bytes()};
  }

 private:
  /// Lets the table forget as many ids as there are attempts, if so many have expired: where no new
  /// ids come, what a flood has left must go all the same.
  void TendNowAndThen(Micros now) {
    constexpr std::size_t kAttempts = 16;
    if ((allowed_ + blocked_) % kAttempts == 0) [[unlikely]] {
      Tend(now, kAttempts);
    }
  }

  ROLLGATE_NOINLINE void Tend(Micros now, std::size_t most) {
    table_.Tend(now, most, [this](Slot& slot) { logs_.Destroy(slot); });
  }

  /// Attempts an action of cost 1 on an id's log; returns the time left.
  template <class Log>
  Micros AttemptOne(Log& log, Micros now) const {
    if constexpr (std::same_as<P, SingleWindowPolicy>) {
      return algorithm::AttemptOne(log, policy_, now);
    } else {
      const Verdict verdict = algorithm::Decide(log, policy_, now, 1);
      if (algorithm::Records(verdict, policy_)) algorithm::Record(log, policy_, verdict, 1);
      return verdict.allowed() ? 0 : algorithm::WaitFor(log, policy_, now, 1);
    }
  }

  /// Decides, lets `tell(log, verdict)` look at the log as it was, then records. Returns the
  /// incarnation of the id.
  template <class Tell>
  std::uint16_t Judge(const Identity& id, Micros now, std::uint64_t cost, Tell tell) {
    TendNowAndThen(now);
    const Place place = table_.Find(id);
    if (!place) return JudgeUnknown(id, now, cost, tell);

    auto log = logs_.Load(*place.slot, place.newest());
    const Verdict verdict = algorithm::Decide(log, policy_, now, cost);
    tell(std::as_const(log), verdict);
    const bool records = algorithm::Records(verdict, policy_);
    if (records) log = logs_.LoadWithRoom(*place.slot, place.newest(), cost);
    ++(verdict.allowed() ? allowed_ : blocked_);
    if (records) {
      algorithm::Record(log, policy_, verdict, cost);
      logs_.Save(*place.slot, log);
      if (verdict.at != place.newest()) table_.Touch(place, verdict.at);
    }
    return place.slot->incarnation;
  }

  template <class Tell>
  ROLLGATE_NOINLINE std::uint16_t JudgeUnknown(const Identity& id, Micros now, std::uint64_t cost,
                                               Tell tell) {
    const Verdict verdict = VerdictOnUnknown(now);
    tell(algorithm::EmptyLog(), verdict);
    const Place place = table_.Insert(id, verdict.at, [this](Slot& slot) { logs_.Destroy(slot); });
    if (table_.evicted() == 1 && on_first_eviction_) std::exchange(on_first_eviction_, nullptr)();
    place.slot->incarnation = ++incarnations_;
    logs_.Create(*place.slot);
    if (cost > 1) RecordMore(place, verdict, cost - 1);
    ++allowed_;
    return place.slot->incarnation;
  }

  /// Records what an attempt of more than 1 has left to record on a new id.
  void RecordMore(const Place& place, const Verdict& verdict, std::uint64_t cost) {
    try {
      auto log = logs_.LoadWithRoom(*place.slot, verdict.at, cost);
      algorithm::Record(log, policy_, verdict, cost);
      logs_.Save(*place.slot, log);
    } catch (const std::bad_alloc&) {
      Forget(place);  // an attempt that fails records nothing
      throw;
    }
  }

  void DestroyLogs() {
    table_.VisitAll([this](Slot& slot) { logs_.Destroy(slot); });
  }

  Verdict VerdictOnUnknown(Micros now) const {
    Verdict verdict;
    verdict.at = std::max(now, table_.forgotten_until());
    return verdict;
  }

  void Forget(const Place& place) {
    logs_.Destroy(*place.slot);
    table_.Erase(place);
  }

  P policy_;
  Logs logs_;
  Table table_;
  std::function<void()> on_first_eviction_;
  std::uint16_t incarnations_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
};

template <class Logs>
std::unique_ptr<MemoryStore> CreateWith(const Policy& policy, const MemoryStoreOptions& options) {
  if (SingleWindowPolicy::Fits(policy)) {
    return std::make_unique<LogStore<SingleWindowPolicy, Logs>>(policy, options);
  }
  return std::make_unique<LogStore<Policy, Logs>>(policy, options);
}

template <std::unsigned_integral Stamp>
std::unique_ptr<MemoryStore> CreateFor(const Policy& policy, const MemoryStoreOptions& options) {
  return InlineLogs<Stamp>::Fits(policy) ? CreateWith<InlineLogs<Stamp>>(policy, options)
                                         : CreateWith<BlockLogs<Stamp>>(policy, options);
}

}  // namespace

std::unique_ptr<MemoryStore> MemoryStore::Create(const Policy& policy,
                                                 const MemoryStoreOptions& options) {
  // Half the bytes where the longest window allows it: up to 71 minutes.
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? CreateFor<std::uint32_t>(policy, options)
             : CreateFor<std::uint64_t>(policy, options);
}

}  // namespace rollgate
