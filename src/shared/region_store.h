// The store in shared memory for one algorithm.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/decider.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"
#include "shared/configuration.h"
#include "shared/layout.h"
#include "shared/record_states.h"
#include "shared/region.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"
#include "shared/table.h"
#include "shared/tries.h"

namespace rollgate::shared {

template <class Rules, class Access = Hardware>
class RegionStore final : public SharedStore {
  using Account = typename Rules::Account;
  using States = StateWords<Rules>;
  using Blocks = BlockWords<PolicyOf<Rules>>;

 public:
  /// `region` fits the policy and has logs of this form. Throws SharedError.
  RegionStore(const Policy& policy, const LogForm& form, Region region,
              const SharedStoreOptions& options)
      : rules_(policy),
        blocks_(rules_.policy(), kBlock),
        states_(rules_, form, kBlock + blocks_.words()),
        region_(std::move(region)),
        table_(region_.view(), region_.entry()),
        name_(options.name),
        on_eviction_(options.on_eviction),
        uses_(policy.windows().size()),
        room_(form.room) {
    if (states_.words() > table_.state_words()) ThrowCorrupt("records are too small");
  }

  /// How many words a record has in a region of this form.
  static std::uint64_t RecordWords(const Policy& policy, const LogForm& form) {
    const Rules rules(policy);
    const std::size_t at = kBlock + Blocks(rules.policy(), kBlock).words();
    return Geometry::RecordWordsFor(States(rules, form, at).words());
  }

  static Micros RetentionOf(const Policy& policy) { return Rules(policy).retention(); }

  shared::Region& region() override { return region_; }

  const Secret& secret() const override { return table_.secret(); }
  AlignmentWords& alignment() const override { return region_.header().alignment; }
  int most_tries() const override { return most_tries_; }

  bool UseLimits(std::span<const std::uint64_t> limits) override {
    if (!limits.empty()) CheckRoom(std::ranges::max(limits));
    rules_.UseLimits(limits);
    return true;
  }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = Rules::Cut(reading);
    BeforeCall();
    if (MayBeBlocked(now)) [[unlikely]] {
      Decision decision;
      decision.windows = uses_;
      if (RefusesBlocked(id, now, 1, Recording::kAttempt, decision)) return decision.time_left;
    }
    for (Tries tries(most_tries_);; tries.Next()) {
      Micros time_left = 0;
      if (table_.Find(id)) [[likely]] {
        RecordCarrier carrier(*this);
        const bool changes = Decider(rules_).Check(carrier, now, time_left);
        if (changes && !carrier.Publish()) continue;
      } else if (!Insert(now, 1, nullptr)) {
        continue;
      }
      Count(time_left == 0);
      return time_left;
    }
  }

  ROLLGATE_FLATTEN void Decide(const Identity& id, Micros reading, const Costs& costs,
                               Recording recording, Decision& decision) override {
    const Micros now = Rules::Cut(reading);
    BeforeCall();
    if (!RecordsActions(recording)) {
      const Micros until = MayBeBlocked(now) ? BlockedUntil(id) : kLongAgo;
      return Peek(id, now, costs, recording, decision, until);
    }
    assert(costs.IsAny());
    if (recording == Recording::kRecord) return Record(id, now, costs, decision);
    if (MayBeBlocked(now)) [[unlikely]] {
      if (RefusesBlocked(id, now, costs, recording, decision)) return;
    }
    for (Tries tries(most_tries_);; tries.Next()) {
      if (table_.Find(id)) {
        RecordCarrier carrier(*this);
        const bool changes = Decider(rules_).Attempt(carrier, now, costs, recording, decision);
        if (changes && !carrier.Publish()) continue;
      } else if (!Decider(rules_).AllowsFirst(costs)) {
        Peek(id, now, costs, recording, decision, kLongAgo);
      } else if (!Insert(now, costs, &decision)) {
        continue;
      }
      Count(decision.verdict.allowed(), recording);
      return;
    }
  }

  bool Settle(const Identity& id, const Receipt& receipt, const Costs& actual,
              Micros reading) override {
    const Micros now = Rules::Cut(reading);
    BeforeCall();
    const RoomToRecord scope(rules_, receipt, actual);
    for (Tries tries(most_tries_);; tries.Next()) {
      if (!table_.Find(id)) return false;
      RecordCarrier carrier(*this);
      const Settled settled = Decider(rules_).Settle(carrier, receipt, actual, now);
      if (settled == Settled::kNothing) return false;
      if (settled == Settled::kAll ? table_.Remove() : carrier.Publish()) return true;
    }
  }

  void BlockFor(const Identity& id, Micros reading, Micros duration) override {
    const Micros now = Rules::Cut(reading);
    BeforeCall();
    if (duration == 0) {
      Remove(BlockOf(id));
      for (Tries tries(most_tries_); table_.Find(id); tries.Next()) {
        RecordCarrier carrier(*this);
        if (!Decider(rules_).EndBlock(carrier, now) || carrier.Publish()) return;
      }
      return;
    }
    const Micros until = Bounded(TimeOf(id, now) + duration);
    const auto save = [&](Micros end) {
      table_.state()[kMoment] = static_cast<std::uint64_t>(end);
      table_.state()[kGeneration] = 0;
      return Saved{end, kBlock};
    };
    for (Tries tries(most_tries_);; tries.Next()) {
      if (table_.Find(BlockOf(id))) {
        const auto before = static_cast<Micros>(table_.state()[kMoment]);
        if (table_.Replace(save(std::max(before, until)))) break;
      } else {
        const Insertion insertion = table_.Insert(now, [&](Micros) { return save(until); });
        NoteEviction(insertion);
        if (insertion != Insertion::kLost) break;
      }
    }
    RaiseTo(region_.header().blocked_until, static_cast<std::uint64_t>(until - kLongAgo));
  }

  bool Clear(const Identity& id) override {
    BeforeCall();
    if (region_.header().blocked_until.load() != 0) Remove(BlockOf(id));
    return Remove(id);
  }

  void ClearAll() override {
    BeforeCall();
    table_.Clear();
  }

  StoreStats stats() const override {
    return {table_.Keys(), allowed_, blocked_, evicted_, region_.view().geometry.bytes()};
  }

 private:
  using Insertion = typename Table<Access>::Insertion;

  /// Works on the table's private copy of the record.
  class RecordCarrier {
   public:
    using Account = typename Rules::Account;

    explicit RecordCarrier(RegionStore& store) : store_(store) {}

    Account Load() {
      return store_.states_.Load(store_.rules_, store_.table_.state(), store_.LogCapacity(),
                                 store_.Retention());
    }
    Account LoadCopy() { return Load(); }
    Block LoadBlock() { return store_.blocks_.Load(store_.table_.state()); }
    void Reserve(Account& account, Micros at, const Costs& costs) {
      store_.states_.Reserve(store_.rules_, account, at, store_.Retention(), costs);
    }
    void Save(const Account& account, const Block& block) { saved_ = store_.Save(account, block); }

    /// Publishes what was saved. Returns false if another thread has changed the id.
    bool Publish() {
      assert(saved_.words >= kBlock);
      return store_.table_.Replace(saved_);
    }

   private:
    RegionStore& store_;
    Saved saved_;
  };

  /// What all limiters of the region need, whose limits may differ.
  Micros Retention() const {
    const auto longest = static_cast<std::uint64_t>(kLongest);  // others may write anything
    return static_cast<Micros>(
        std::min(region_.header().retention.load(std::memory_order_relaxed), longest));
  }
  std::uint64_t LogCapacity() const {
    // A call may bring larger limits.
    return std::max<std::uint64_t>(region_.header().log_capacity.load(std::memory_order_relaxed),
                                   rules_.policy().log_capacity());
  }

  void Count(bool allowed, Recording recording = Recording::kAttempt) {
    if (allowed) {
      ++allowed_;
    } else if (recording != Recording::kWaiting) {
      ++blocked_;
    }
  }

  /// A process created by fork() must not use its parent's entry.
  void BeforeCall() {
    if (region_.IsForked()) [[unlikely]] {
      TakeEntryAgain();
    }
  }
  ROLLGATE_COLD void TakeEntryAgain() {
    region_.TakeEntryAgain();
    table_.UseEntry(region_.entry());
  }

  Saved Save(const Account& account, const Block& block) {
    states_.Save(rules_, table_.state(), account);
    blocks_.Store(table_.state(), block);
    Micros expires = kLongAgo;
    if (account.moment() != kLongAgo) {
      expires = Bounded(Bounded(rules_.FromTableTime(account.moment())) + Retention());
    }
    return {blocks_.Expires(block, expires), states_.UsedWords(account)};
  }

  /// Throws SharedError if the records have no room for a limit of a call.
  void CheckRoom(std::uint64_t largest) const {
    if constexpr (KeepsLog<Rules>) {
      if (largest <= room_) return;
      ThrowMismatch(largest, "its records have room for " + std::to_string(room_) +
                                 " actions, and { shared: { room: " + std::to_string(largest) +
                                 " } } where it is made would give them more");
    } else if constexpr (requires { rules_.counts(); }) {
      if (largest < rules_.counts().most() || rules_.counts().is_wide()) return;
      ThrowMismatch(largest, "its counts end at " + std::to_string(rules_.counts().most()) +
                                 ", and a limit of so many where it is made would let them grow");
    }
  }
  [[noreturn]] ROLLGATE_COLD void ThrowMismatch(std::uint64_t limit, const std::string& why) const {
    throw SharedError(SharedError::Kind::kMismatch, "the shared limiter '" + name_ +
                                                        "' has no room for a limit of " +
                                                        std::to_string(limit) + ": " + why);
  }

  /// Records an action, whatever limits and blocks say, and shows what is used then.
  void Record(const Identity& id, Micros now, const Costs& costs, Decision& decision) {
    const Micros blocked_until = MayBeBlocked(now) ? BlockedUntil(id) : kLongAgo;
    const RoomToRecord scope(rules_);
    for (Tries tries(most_tries_);; tries.Next()) {
      if (table_.Find(id)) {
        RecordCarrier carrier(*this);
        Decider(rules_).Record(carrier, now, costs, decision, blocked_until);
        if (carrier.Publish()) return;
      } else if (Insert(now, costs, nullptr)) {
        return Peek(id, now, 0, Recording::kNothing, decision, blocked_until);
      }
    }
  }

  /// Inserts the id with its first attempt. Returns false if another thread was faster.
  ROLLGATE_NOINLINE bool Insert(Micros now, const Costs& costs, Decision* decision) {
    const Generation generation = table_.NextGeneration();
    const Insertion insertion = table_.Insert(now, [&](Micros earliest) {
      const Micros at = std::max(now, earliest);
      Account account = states_.Begin(rules_, table_.state(), LogCapacity(), generation);
      states_.Reserve(rules_, account, at, Retention(), costs);
      account.Record({.at = at}, costs);
      if (decision != nullptr) Decider(rules_).DescribeFirst(account, now, at, costs, *decision);
      return Save(account, Block());
    });
    NoteEviction(insertion);
    return insertion != Insertion::kLost;
  }

  void NoteEviction(Insertion insertion) {
    if (insertion != Insertion::kEvicted) return;
    ++evicted_;
    if (on_eviction_) on_eviction_();
  }

  bool Remove(const Identity& id) {
    for (Tries tries(most_tries_); table_.Find(id); tries.Next()) {
      if (table_.Remove()) return true;
    }
    return false;
  }

  /// The record of an id's block by a call: a state with nothing but its end as moment.
  static Identity BlockOf(Identity id) {
    id.kind |= 0x80;
    return id;
  }

  bool MayBeBlocked(Micros now) const {
    const std::uint64_t last = region_.header().blocked_until.load(std::memory_order_relaxed);
    return last != 0 && now - kLongAgo < static_cast<Micros>(last);
  }

  Micros BlockedUntil(const Identity& id) {
    return table_.Find(BlockOf(id)) ? Bounded(static_cast<Micros>(table_.state()[kMoment]))
                                    : kLongAgo;
  }

  /// The time of an id: a clock that stepped back does not take it back.
  Micros TimeOf(const Identity& id, Micros now) {
    if (!table_.Find(id)) return std::max(now, table_.Forgotten());
    return RecordCarrier(*this).Load().At(now);
  }

  /// Attempts during a block leave no trace.
  ROLLGATE_NOINLINE bool RefusesBlocked(const Identity& id, Micros now, const Costs& costs,
                                        Recording recording, Decision& decision) {
    const Micros until = BlockedUntil(id);
    if (until <= now) return false;
    Peek(id, now, costs, recording, decision, until);
    if (!decision.verdict.blocked_by_block) return false;
    Count(false, recording);
    return true;
  }

  void Peek(const Identity& id, Micros now, const Costs& costs, Recording recording,
            Decision& decision, Micros blocked_until) {
    if (table_.Find(id)) {
      RecordCarrier carrier(*this);
      Decider(rules_).Peek(carrier, now, costs, recording, decision, blocked_until);
    } else {
      Account account = states_.Begin(rules_, table_.state(), LogCapacity(), 0);
      const Micros at = std::max(now, table_.Forgotten());
      Decider(rules_).PeekFirst(account, now, at, costs, recording, decision, blocked_until);
    }
  }

  Rules rules_;
  Blocks blocks_;
  States states_;
  Region region_;
  Table<Access> table_;
  std::string name_;
  std::function<void()> on_eviction_;
  std::vector<WindowUse> uses_;  // for checks of blocked ids
  std::uint64_t room_;           // of logs, in actions
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
  std::uint64_t evicted_ = 0;
  int most_tries_ = 0;
};

/// Returns `make.template operator()<S>()`, where S is the policy's store in a region of this form.
/// Precondition: the policy varies.
template <class T, class Make>
T WithSharedStore(const Policy& policy, const LogForm& form, Make make) {
  assert(policy.varies());
  const auto in_region = [&]<class Rules>() -> T {
    if constexpr (kNeverVaries<Rules>) {
      return T();
    } else {
      return make.template operator()<RegionStore<Rules>>();
    }
  };
  return WithAlgorithm<T>(policy, in_region, form.has_long_stamps);
}

}  // namespace rollgate::shared
