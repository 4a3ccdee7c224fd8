// The store of a region, for whatever is kept of an id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/account_algorithms.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"
#include "shared/configuration.h"
#include "shared/layout.h"
#include "shared/pause.h"
#include "shared/region.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"
#include "shared/table.h"

namespace rollgate::shared {

/// Counts the tries of a loop that ends unless others are faster again and again, and leaves them
/// alone for ten to fifty microseconds, by how long the processor's pause is. Measured with two
/// processes on one id: each change needs three cache lines that the other has, unless it comes
/// right after one's own. So long turns take a third of the time of single changes.
class Tries {
 public:
  /// `most` is raised to how many there were.
  explicit Tries(int& most) : most_(most) {}

  void Next() {
    if (++tries_ > kMost) ThrowCorrupt("nothing can change");
    most_ = std::max(most_, tries_);
    for (int i = 0; i < 256 << std::min(tries_, 2); ++i) Pause();
  }

 private:
  static constexpr int kMost = 1 << 16;
  int& most_;
  int tries_ = 0;
};

/// `State` is what is kept of an id under a form of the policy: log_state.h, account_state.h.
template <class State, class Access = Hardware>
class RegionStore final : public SharedStore {
 public:
  /// Attaches to the region of that name, which is made if there is none. Throws SharedError.
  RegionStore(const Policy& policy, const SharedStoreOptions& options)
      : state_(policy),
        region_(Region::Attach({options.directory, options.name, options.max_keys,
                                Geometry::RecordWordsFor(state_.words()), options.epoch_offset,
                                ConfigurationOf(policy, options.has_own_clock),
                                policy.algorithm() == Algorithm::kSlidingWindowLog})),
        table_(ViewOf(region_), region_.entry()),
        on_eviction_(options.on_eviction) {}

  const Secret& secret() const override { return table_.secret(); }
  Micros epoch_offset() const override { return region_.header().epoch_offset; }
  std::size_t max_keys() const override { return region_.header().max_keys; }
  int most_tries() const override { return most_tries_; }

  void SetMax(std::uint64_t max, bool records) override { state_.SetMax(max, records); }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = State::Cut(reading);
    BeforeCall();
    for (Tries tries(most_tries_);; tries.Next()) {
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
    for (Tries tries(most_tries_);; tries.Next()) {
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
    for (Tries tries(most_tries_);; tries.Next()) {
      bool is_empty = false;
      if (!table_.Find(id) || !state_.Refund(table_.state(), receipt, now, is_empty)) return false;
      if (is_empty ? table_.Remove() : Replace()) return true;
    }
  }

  bool Clear(const Identity& id) override {
    BeforeCall();
    for (Tries tries(most_tries_); table_.Find(id); tries.Next()) {
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
  using Insertion = typename Table<Access>::Insertion;

  static View ViewOf(const Region& region) {
    return {&region.header(), region.entries(), region.buckets(), region.records(),
            region.geometry()};
  }

  void Count(bool allowed) { ++(allowed ? allowed_ : blocked_); }

  /// A copy of the process must not use what is the original's.
  void BeforeCall() {
    if (region_.IsForked()) [[unlikely]] {
      TakeEntryAgain();
    }
  }
  ROLLGATE_COLD void TakeEntryAgain() {
    region_.TakeEntryAgain();
    table_.UseEntry(region_.entry());
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
  Table<Access> table_;
  std::function<void()> on_eviction_;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
  std::uint64_t evicted_ = 0;
  int most_tries_ = 0;
};

}  // namespace rollgate::shared
