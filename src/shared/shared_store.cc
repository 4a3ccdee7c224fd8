// Joins region, table, what is kept of each id, and the algorithm.
#include "shared/shared_store.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/account_algorithms.h"
#include "core/inlining.h"
#include "shared/account_state.h"
#include "shared/configuration.h"
#include "shared/log_state.h"
#include "shared/region.h"
#include "shared/shared_error.h"
#include "shared/table.h"

namespace rollgate::shared {

std::uint32_t SharedLogCapacity(const Policy& policy) {
  const std::size_t most = policy.sets_max() ? kLongestSharedVaryingLog : kLongestSharedLog;
  return static_cast<std::uint32_t>(std::min<std::size_t>(policy.log_capacity(), most));
}

namespace {

/// Counts the tries of a loop that ends unless others are faster again and again, and leaves them
/// alone for some ten microseconds. Measured with two processes on one id: each change needs three
/// cache lines that the other has, unless it comes right after one's own. So long turns take a
/// third of the time of single changes.
class Tries {
 public:
  void Next() {
    if (++tries_ > kMost) {
      throw SharedError(SharedError::Kind::kCorrupt, "the region is corrupt: nothing can change");
    }
    for (int i = 0; i < 256 << std::min(tries_, 2); ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

 private:
  static constexpr int kMost = 1 << 16;
  int tries_ = 0;
};

View ViewOf(const Region& region) {
  return {&region.header(), region.entries(), region.buckets(), region.records(),
          region.geometry()};
}

/// `State` is what is kept of an id under a form of the policy: log_state.h, account_state.h.
template <class State>
class StoreOf final : public SharedStore {
 public:
  StoreOf(State state, Region region, std::function<void()> on_eviction)
      : state_(std::move(state)),
        region_(std::move(region)),
        table_(ViewOf(region_), region_.entry()),
        on_eviction_(std::move(on_eviction)) {}

  const Secret& secret() const override { return table_.secret(); }
  Micros epoch_offset() const override { return region_.header().epoch_offset; }
  std::size_t max_keys() const override { return region_.header().max_keys; }

  void SetMax(std::uint64_t max, bool records) override { state_.SetMax(max, records); }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = State::Cut(reading);
    BeforeCall();
    for (Tries tries;; tries.Next()) {
      Micros time_left = 0;
      if (table_.Find(id)) [[likely]] {
        const bool changes = state_.Check(table_.state(), now, time_left);
        if (changes && !Replace()) continue;
      } else if (!Insert(now, 1, nullptr)) {
        continue;
      }
      Count(time_left == 0);
      return time_left;
    }
  }

  ROLLGATE_FLATTEN void Attempt(const Identity& id, Micros reading, std::uint64_t cost,
                                Decision& decision) override {
    const Micros now = State::Cut(reading);
    BeforeCall();
    for (Tries tries;; tries.Next()) {
      if (table_.Find(id)) {
        const bool changes = state_.Attempt(table_.state(), now, cost, decision);
        if (changes && !Replace()) continue;
      } else if (!Insert(now, cost, &decision)) {
        continue;
      }
      Count(decision.verdict.allowed());
      return;
    }
  }

  void Peek(const Identity& id, Micros reading, std::uint64_t cost, Decision& decision) override {
    const Micros now = State::Cut(reading);
    BeforeCall();
    if (table_.Find(id)) {
      state_.Peek(table_.state(), now, cost, decision);
    } else {
      const Micros at = std::max(now, table_.Forgotten());
      state_.Begin(table_.state(), 0, at, cost);
      state_.DescribeFirst(table_.state(), now, at, cost, decision);
    }
  }

  bool Refund(const Identity& id, const Receipt& receipt, Micros reading) override {
    const Micros now = State::Cut(reading);
    BeforeCall();
    for (Tries tries;; tries.Next()) {
      bool is_empty = false;
      if (!table_.Find(id) || !state_.Refund(table_.state(), receipt, now, is_empty)) return false;
      if (is_empty ? table_.Remove() : Replace()) return true;
    }
  }

  bool Clear(const Identity& id) override {
    BeforeCall();
    for (Tries tries; table_.Find(id); tries.Next()) {
      if (table_.Remove()) return true;
    }
    return false;
  }

  void ClearAll() override {
    BeforeCall();
    table_.Clear();
  }

  StoreStats stats() const override {
    return {table_.Keys(), allowed_, blocked_, evicted_, region_.geometry().bytes()};
  }

 private:
  using Insertion = typename Table<Hardware>::Insertion;

  void Count(bool allowed) { ++(allowed ? allowed_ : blocked_); }

  /// A copy of the process must not use what is the original's.
  void BeforeCall() {
    if (region_.IsForked()) [[unlikely]] {
      region_.TakeEntryAgain();
      table_.UseEntry(region_.entry());
    }
  }

  bool Replace() { return table_.Replace(state_.Expires(table_.state())); }

  /// Inserts the id that was not found, with an attempt of so much, which is always allowed.
  ROLLGATE_NOINLINE bool Insert(Micros now, std::uint64_t cost, Decision* decision) {
    Micros at = now;
    const std::uint32_t life = table_.NextLife(kLifeBits);
    const Insertion insertion = table_.Insert(now, [&](Micros earliest) {
      at = std::max(now, earliest);
      state_.Begin(table_.state(), life, at, cost);
      return state_.Expires(table_.state());
    });
    if (insertion == Insertion::kLost) return false;
    if (insertion == Insertion::kEvicted) {
      ++evicted_;
      if (on_eviction_) on_eviction_();
    }
    if (decision != nullptr) state_.DescribeFirst(table_.state(), now, at, cost, *decision);
    return true;
  }

  State state_;
  Region region_;
  Table<Hardware> table_;
  std::function<void()> on_eviction_;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
  std::uint64_t evicted_ = 0;
};

template <class State>
std::unique_ptr<SharedStore> AttachWith(const Policy& policy, const SharedStoreOptions& options) {
  State state(policy);
  const std::vector<std::uint64_t> configuration = ConfigurationOf(policy, options.has_own_clock);
  Region region = Region::Attach({options.directory, options.name, options.max_keys,
                                  Geometry::RecordWordsFor(state.words()), options.epoch_offset,
                                  configuration});
  return std::make_unique<StoreOf<State>>(std::move(state), std::move(region), options.on_eviction);
}

template <class P>
std::unique_ptr<SharedStore> AttachLog(const Policy& policy, const SharedStoreOptions& options) {
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? AttachWith<LogState<P, std::uint32_t>>(policy, options)
             : AttachWith<LogState<P, std::uint64_t>>(policy, options);
}

}  // namespace
}  // namespace rollgate::shared

namespace rollgate {

std::unique_ptr<SharedStore> SharedStore::Attach(const Policy& policy,
                                                 const SharedStoreOptions& options) {
  const auto attach = [&]<class Rules>() -> std::unique_ptr<SharedStore> {
    return shared::AttachWith<shared::AccountState<Rules>>(policy, options);
  };
  auto store = WithAccountAlgorithm<std::unique_ptr<SharedStore>>(policy, attach);
  if (store) return store;
  return SingleWindowPolicy::Fits(policy) ? shared::AttachLog<SingleWindowPolicy>(policy, options)
                                          : shared::AttachLog<Policy>(policy, options);
}

bool UnlinkShared(const std::string& directory, const std::string& name) {
  return shared::Region::Unlink(directory, name);
}

}  // namespace rollgate
