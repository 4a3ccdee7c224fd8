// The store in memory for one algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/block.h"
#include "core/costs.h"
#include "core/inlining.h"
#include "core/judging.h"
#include "core/policy.h"
#include "memory/block_places.h"
#include "memory/memory_store.h"
#include "memory/table.h"

namespace rollgate::memory {

/// The states of algorithms that keep a few numbers: the payload is the account's state.
template <class Rules>
class Counts {
 public:
  using Account = typename Rules::Account;

  /// Whether a peek needs a copy of the payload.
  static constexpr bool kCopiesToPeek = true;

  explicit Counts(const Rules& rules) : bytes_(rules.state_bytes()) {}

  std::size_t payload_bytes() const { return bytes_; }
  std::size_t extra_bytes() const { return 0; }
  void SetCapacity(std::uint64_t) {}

  Account Begin(const Rules& rules, Slot& slot) const {
    return Account::Begin(rules, slot.payload(), slot.generation());
  }
  Account Load(const Rules& rules, Slot& slot, Micros moment) const {
    return Account(rules, slot.payload(), moment, slot.generation());
  }
  void Reserve(Slot&, const Rules&, Account&, Micros, const Costs&) const {}
  void Save(Slot&, const Account&) const {}
  void Destroy(Slot&) const {}

 private:
  std::size_t bytes_;
};

/// `States` reads and writes payloads: Counts, InlineLogs, BlockLogs or WeightedBlocks.
template <class Rules, class States>
class TableStore final : public Store {
  using Account = typename Rules::Account;
  using Blocks = BlockPlaces<std::decay_t<decltype(std::declval<Rules>().policy())>>;

 public:
  TableStore(const Policy& policy, const MemoryStoreOptions& options)
      : rules_(policy),
        states_(rules_),
        blocks_(rules_.policy(), states_.payload_bytes(), rules_.retention()),
        table_({states_.payload_bytes() + blocks_.bytes(),
                std::max<std::size_t>(options.max_keys, 1), blocks_.retention(),
                !options.clock_may_step_back, options.secret}),
        on_eviction_(options.on_eviction),
        scratch_(sizeof(Slot) + states_.payload_bytes()) {}

  ~TableStore() override { DestroyAll(); }

  void SetMax(std::uint64_t max, bool records) override {
    rules_.SetMax(max, records);
    if constexpr (requires { rules_.policy().least_capacity(); }) {
      states_.SetCapacity(rules_.policy().least_capacity());
    }
  }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = Rules::Cut(reading);
    TendNowAndThen(now);
    const Place place = table_.Find(id);
    if (!place) [[unlikely]] {
      Begin(id, now, 1, nullptr);
      return 0;
    }
    SlotCarrier carrier(*this, place);
    Micros time_left;
    Judging(rules_).Check(carrier, now, time_left);
    assert(time_left >= 0);
    Count(time_left == 0);
    return time_left;
  }

  ROLLGATE_FLATTEN void Attempt(const Identity& id, Micros reading, const Costs& costs,
                                Decision& decision) override {
    AttemptWith<Refusals::kLeaveTraces>(id, reading, costs, decision);
  }

  void AttemptIfAllowed(const Identity& id, Micros reading, const Costs& costs,
                        Decision& decision) override {
    AttemptWith<Refusals::kLeaveNone>(id, reading, costs, decision);
  }

  void Peek(const Identity& id, Micros reading, const Costs& costs, Decision& decision) override {
    const Micros now = Rules::Cut(reading);
    if (const Place place = table_.Find(id)) {
      SlotCarrier carrier(*this, place);
      Judging(rules_).Peek(carrier, now, costs, decision);
    } else {
      Account account = states_.Begin(rules_, Scratch());
      Judging(rules_).PeekFirst(account, now, FirstMoment(now), costs, decision);
    }
  }

  bool Settle(const Identity& id, const Receipt& receipt, const Costs& actual,
              Micros now) override {
    const Place place = table_.Find(id);
    if (!place) return false;
    SlotCarrier carrier(*this, place);
    const Settled settled = Judging(rules_).Settle(carrier, receipt, actual, Rules::Cut(now));
    if (settled == Settled::kAll) Forget(place);
    return settled != Settled::kNothing;
  }

  bool Clear(const Identity& id) override {
    const Place place = table_.Find(id);
    if (place) Forget(place);
    return static_cast<bool>(place);
  }

  void ClearAll() override {
    DestroyAll();
    table_.Clear();
  }

  StoreStats stats() const override {
    return {table_.live(), allowed_, blocked_, table_.evicted(),
            table_.bytes() + states_.extra_bytes()};
  }

 private:
  class SlotCarrier {
   public:
    using Account = typename Rules::Account;

    SlotCarrier(TableStore& store, const Place& place) : store_(store), place_(place) {}

    Account Load() {
      return store_.states_.Load(store_.rules_, *place_.slot, store_.blocks_.Moment(place_));
    }
    Block LoadBlock() { return store_.blocks_.Load(place_); }
    Account LoadCopy() {
      if constexpr (States::kCopiesToPeek) {
        std::memcpy(&store_.Scratch(), place_.slot, store_.scratch_.size());
        return store_.states_.Load(store_.rules_, store_.Scratch(), store_.blocks_.Moment(place_));
      } else {
        return Load();
      }
    }
    void Reserve(Account& account, Micros at, const Costs& costs) {
      store_.states_.Reserve(*place_.slot, store_.rules_, account, at, costs);
    }
    void Save(const Account& account, const Block& block) {
      store_.states_.Save(*place_.slot, account);
      store_.blocks_.Save(store_.table_, place_, account.moment(), block);
    }

   private:
    TableStore& store_;
    const Place& place_;
  };

  template <Refusals kRefusals>
  void AttemptWith(const Identity& id, Micros reading, const Costs& costs, Decision& decision) {
    assert(costs.IsAny());
    const Micros now = Rules::Cut(reading);
    TendNowAndThen(now);
    const Place place = table_.Find(id);
    if (!place) [[unlikely]] {
      Begin(id, now, costs, &decision);
      return;
    }
    SlotCarrier carrier(*this, place);
    Judging(rules_).template Attempt<kRefusals>(carrier, now, costs, decision);
    assert(decision.verdict.allowed() == (decision.time_left == 0));
    Count(decision.verdict.allowed());
  }

  /// A slot outside of the table, without a block.
  Slot& Scratch() { return *reinterpret_cast<Slot*>(scratch_.data()); }

  void Count(bool allowed) { ++(allowed ? allowed_ : blocked_); }

  /// Forgets as many expired ids as there are attempts, even if no new ids come.
  void TendNowAndThen(Micros now) {
    constexpr std::size_t kAttempts = 64;
    if ((allowed_ + blocked_) % kAttempts == 0) [[unlikely]] {
      Tend(rules_.TableTime(now), kAttempts);
    }
  }
  ROLLGATE_NOINLINE void Tend(Micros now, std::size_t most) {
    table_.Tend(now, most, [this](Slot& slot) { states_.Destroy(slot); });
  }

  /// An unknown id acts no earlier than this: it may have been forgotten.
  Micros FirstMoment(Micros now) const {
    return std::max(now, rules_.FromTableTime(table_.forgotten_until()));
  }

  /// The first attempt of an id, which is always allowed.
  ROLLGATE_NOINLINE void Begin(const Identity& id, Micros now, const Costs& costs,
                               Decision* decision) {
    const Micros at = FirstMoment(now);
    assert(at >= now);
    const Micros moment = blocks_.TableMoment(rules_.FirstMoment(at, costs), Block());
    const std::uint64_t evicted = table_.evicted();
    const Place place = table_.Insert(id, moment, rules_.TableTime(at),
                                      [this](Slot& slot) { states_.Destroy(slot); });
    if (table_.evicted() != evicted && on_eviction_) on_eviction_();
    place.slot->set_generation(++last_generation_);
    Account account = states_.Begin(rules_, *place.slot);
    try {
      states_.Reserve(*place.slot, rules_, account, at, costs);
    } catch (const std::bad_alloc&) {
      Forget(place);  // an attempt that fails records nothing
      throw;
    }
    account.Record({.at = at}, costs);
    SlotCarrier(*this, place).Save(account, Block());
    Count(true);
    if (decision != nullptr) {
      Judging(rules_).DescribeFirst(account, now, at, costs, *decision);
    }
  }

  void Forget(const Place& place) {
    states_.Destroy(*place.slot);
    table_.Erase(place);
  }

  void DestroyAll() {
    table_.VisitAll([this](Slot& slot) { states_.Destroy(slot); });
  }

  Rules rules_;
  States states_;
  Blocks blocks_;
  Table table_;
  std::function<void()> on_eviction_;
  Generation last_generation_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace rollgate::memory
