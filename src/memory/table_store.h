// The store in memory for one algorithm, and the one for a policy.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/algorithms.h"
#include "core/decider.h"
#include "core/decision.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/weighted_log.h"
#include "memory/block_places.h"
#include "memory/heap_logs.h"
#include "memory/inline_logs.h"
#include "memory/manual_blocks.h"
#include "memory/memory_store.h"
#include "memory/table.h"

namespace rollgate::memory {

/// The states of algorithms that keep a few numbers: the payload is the account's state.
template <class Rules>
class Counts {
 public:
  using Account = typename Rules::Account;

  Counts(const Rules& rules, const Policy&) : bytes_(rules.state_bytes()) {}

  std::size_t payload_bytes() const { return bytes_; }
  std::size_t extra_bytes() const { return 0; }
  Account Begin(const Rules& rules, Slot& slot) const {
    return Account::Begin(rules, slot.payload(), slot.generation());
  }
  Account Load(const Rules& rules, Slot& slot, Micros moment) const {
    return Account(rules, slot.payload(), moment, slot.generation());
  }
  void Reserve(Slot&, const Rules&, Account&, Micros, const Costs&) const {}
  void Save(Slot& slot, const Account& account) const {
    if constexpr (requires { account.state(); }) {
      if (account.state() != slot.payload()) std::memcpy(slot.payload(), account.state(), bytes_);
    }
  }
  void Destroy(Slot&) const {}

 private:
  std::size_t bytes_;
};

/// `States` reads and writes payloads: Counts, InlineLogs, HeapLogs or WeightedHeapLogs.
template <class Rules, class States>
class TableStore final : public MemoryStore {
  using Account = typename Rules::Account;
  using Blocks = BlockPlaces<PolicyOf<Rules>>;

 public:
  TableStore(const Policy& policy, const MemoryStoreOptions& options)
      : rules_(policy),
        states_(rules_, policy),
        blocks_(rules_.policy(), states_.payload_bytes(), rules_.retention()),
        table_options_{states_.payload_bytes() + blocks_.bytes(),
                       std::max<std::size_t>(options.max_keys, 1), blocks_.retention(),
                       !options.clock_may_step_back, options.secret},
        table_(table_options_),
        manual_blocks_(table_options_),
        on_eviction_(options.on_eviction),
        largest_limit_(policy.varies() ? policy.largest_limit() : 0),
        scratch_(sizeof(Slot) + states_.payload_bytes()) {}

  ~TableStore() override {
    table_.VisitAll([this](Slot& slot) { states_.Destroy(slot); });
  }

  bool UseLimits(std::span<const std::uint64_t> limits) override {
    if (!limits.empty() && !HasRoomFor(limits)) return false;
    rules_.UseLimits(limits);
    SetCapacity();
    if constexpr (kBecomesWeighted) {
      if (states_.CanBeWeighted()) states_.weighted().rules.UseLimits(limits);
    }
    return true;
  }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = Rules::Cut(reading);
    TendNowAndThen(now);
    if (!manual_blocks_.IsEmpty()) [[unlikely]] {
      Decision decision;
      decision.windows = uses_;
      if (RefusesBlocked(id, now, 1, Recording::kAttempt, decision)) return decision.time_left;
    }
    const Place place = table_.Find(id);
    if (!place) [[unlikely]] {
      Begin(id, now, 1, Recording::kAttempt, nullptr);
      return 0;
    }
    Micros time_left;
    WithCarrier(place, 1, [&](const auto& decider, auto& carrier) {
      decider.Check(carrier, now, time_left);
    });
    assert(time_left >= 0);
    Count(time_left == 0);
    return time_left;
  }

  ROLLGATE_FLATTEN void Decide(const Identity& id, Micros reading, const Costs& costs,
                               Recording recording, Decision& decision) override {
    const Micros now = Rules::Cut(reading);
    if (!RecordsActions(recording)) {
      if (manual_blocks_.IsEmpty()) [[likely]]
        return Peek(id, now, costs, recording, decision);
      return Peek(id, now, costs, recording, decision, manual_blocks_.EndOf(id));
    }
    assert(costs.IsAny());
    if (recording == Recording::kRecord) [[unlikely]] {
      return Record(id, now, costs, decision);
    }
    TendNowAndThen(now);
    if (!manual_blocks_.IsEmpty()) [[unlikely]] {
      if (RefusesBlocked(id, now, costs, recording, decision)) return;
    }
    const Place place = table_.Find(id);
    if (!place) [[unlikely]] {
      Begin(id, now, costs, recording, &decision);
      return;
    }
    WithCarrier(place, costs, [&](const auto& decider, auto& carrier) {
      decider.Attempt(carrier, now, costs, recording, decision);
    });
    assert(decision.verdict.allowed() == (decision.time_left == 0));
    Count(decision.verdict.allowed(), recording);
  }

  bool Settle(const Identity& id, const Receipt& receipt, const Costs& actual,
              Micros now) override {
    const Place place = table_.Find(id);
    if (!place) return false;
    Settled settled;
    {
      const RoomToRecord scope(rules_, receipt, actual);
      SetCapacity();
      WithCarrier(place, actual, [&](const auto& decider, auto& carrier) {
        settled = decider.Settle(carrier, receipt, actual, Rules::Cut(now));
      });
    }
    SetCapacity();
    if (settled == Settled::kAll) Forget(place);
    return settled != Settled::kNothing;
  }

  void BlockFor(const Identity& id, Micros reading, Micros duration) override {
    uses_.resize(rules_.policy().windows().size());  // first, because it may fail
    const Micros now = Rules::Cut(reading);
    const Place place = table_.Find(id);
    if (duration == 0) {
      if (manual_blocks_.Erase(id) && place) --held_twice_;
      if (!place) return;
      return WithCarrier(
          place, 1, [&](const auto& decider, auto& carrier) { decider.EndBlock(carrier, now); });
    }
    const Micros until = Bounded(TimeOf(place, now) + duration);
    const std::uint64_t evicted = Evicted();
    const bool is_new = !manual_blocks_.Has(id);
    const bool is_known = static_cast<bool>(place);
    if (is_new && !is_known) MakeRoom(now);
    manual_blocks_.Set(id, now, until, [this](Slot& slot) { ReleaseBlock(slot); });
    if (is_new && is_known) ++held_twice_;
    if (Evicted() != evicted && on_eviction_) on_eviction_();
  }

  bool Clear(const Identity& id) override {
    const Place place = table_.Find(id);
    if (manual_blocks_.Erase(id) && place) --held_twice_;
    if (place) Forget(place);
    return static_cast<bool>(place);
  }

  void ClearAll() override {
    table_.Clear([this](Slot& slot) { states_.Destroy(slot); });
    manual_blocks_.Clear();
    held_twice_ = 0;
  }

  void Keep(PolicyOptions& limits) const override {
    limits.kept_actions = rules_.policy().log_capacity();
    limits.kept_for = rules_.policy().retention();
    limits.largest_limit = std::max(limits.largest_limit, largest_limit_);
    // States of a rate have to say which one.
    if constexpr (requires { rules_.varies(); }) {
      if (table_.live() > 0)
        limits.largest_limit = std::max<std::uint64_t>(limits.largest_limit, 1);
    }
  }

  void CopyTo(MemoryStore& other, Micros reading) const override {
    const Micros now = Rules::Cut(reading);
    auto& self = const_cast<TableStore&>(*this);  // accounts can write, but are only read
    self.table_.VisitPlaces([&](const Place& place) {
      self.WithCarrier(place, 1, [&](const auto&, auto& carrier) {
        Snapshot snapshot;
        snapshot.generation = place.slot->generation();
        snapshot.block = carrier.LoadBlock();
        carrier.Load().CopyTo(snapshot, now);
        other.Add(place.slot->identity(), snapshot, reading);
      });
    });
    other.TakeOver({last_generation_, table_.forgotten_until(), self.manual_blocks_, held_twice_});
  }

  void Add(const Identity& id, const Snapshot& snapshot, Micros reading) override {
    const Micros now = Rules::Cut(reading);
    const Place place =
        table_.Insert(id, kLongAgo, kLongAgo, [this](Slot& slot) { Release(slot); });
    place.slot->set_generation(snapshot.generation);
    bool is_weighted = false;
    if constexpr (kBecomesWeighted) {
      is_weighted = !snapshot.numbers.empty() && states_.CanBeWeighted();
    }
    WithStates(is_weighted, [&]<class R, class S>(const R& rules, S& states) {
      if constexpr (requires { states.SetCapacityOf(rules); }) {
        states.SetCapacityOf(rules, snapshot.actions.size());
      }
      auto account = states.Begin(rules, *place.slot);
      SlotCarrier<R, S> carrier(*this, rules, states, place);
      account.TakeOver(snapshot, now, [&](Micros at, const Costs& costs) {
        carrier.Reserve(account, at, costs);
        account.Record({.at = at}, costs);
      });
      carrier.Save(account, snapshot.block);
      if constexpr (requires { states.SetCapacityOf(rules); }) states.SetCapacityOf(rules);
    });
  }

  void TakeOver(const Common& common) override {
    last_generation_ = common.last_generation;
    table_.SetForgottenUntil(common.forgotten_until);
    manual_blocks_.CopyFrom(common.manual_blocks);
    held_twice_ = common.held_twice;
    uses_.resize(rules_.policy().windows().size());
  }

  StoreStats stats() const override {
    return {Held(), allowed_, blocked_, Evicted(),
            table_.bytes() + states_.extra_bytes() + manual_blocks_.bytes()};
  }

 private:
  /// `R` and `S` are the store's Rules and States, or those of weighted logs.
  template <class R, class S>
  class SlotCarrier {
   public:
    using Account = typename R::Account;

    SlotCarrier(TableStore& store, const R& rules, S& states, const Place& place)
        : store_(store), rules_(rules), states_(states), place_(place) {}

    Account Load() { return states_.Load(rules_, *place_.slot, store_.blocks_.Moment(place_)); }
    Block LoadBlock() { return store_.blocks_.Load(place_); }
    Account LoadCopy() {
      if constexpr (std::is_same_v<S, Counts<R>>) {  // accounts of logs change nothing in a peek
        std::memcpy(&store_.Scratch(), place_.slot, store_.scratch_.size());
        return states_.Load(rules_, store_.Scratch(), store_.blocks_.Moment(place_));
      } else {
        return Load();
      }
    }
    void Reserve(Account& account, Micros at, const Costs& costs) {
      states_.Reserve(*place_.slot, rules_, account, at, costs);
    }
    void Save(const Account& account, const Block& block) {
      states_.Save(*place_.slot, account);
      store_.blocks_.Save(store_.table_, place_, account.moment(), block);
    }

   private:
    TableStore& store_;
    const R& rules_;
    S& states_;
    const Place& place_;
  };

  /// Whether a log can turn into a weighted one.
  static constexpr bool kBecomesWeighted = requires(States & states) { states.weighted(); };

  bool HasRoomFor(std::span<const std::uint64_t> limits) const {
    if constexpr (requires { rules_.varies(); }) return rules_.varies();
    return std::ranges::max(limits) <= rules_.policy().largest_limit();
  }

  /// Whether an id's state is, or becomes, a weighted log if attempts have other costs than 1.
  bool KeepsCosts(bool has_costs) const {
    if constexpr (kBecomesWeighted) return states_.KeepsCosts(has_costs);
    return false;
  }

  /// Calls `use(rules, states)` with the store's, or with those of weighted logs.
  template <class Use>
  void WithStates(bool is_weighted, Use use) {
    if constexpr (kBecomesWeighted) {
      if (is_weighted) [[unlikely]] {
        auto& weighted = states_.weighted();
        return use(weighted.rules, weighted.states);
      }
    }
    use(rules_, states_);
  }

  /// Calls `use(decider, carrier)` for the form of the id's state, which may become weighted for
  /// the costs.
  template <class Use>
  void WithCarrier(const Place& place, const Costs& costs, Use use) {
    bool is_weighted = false;
    if constexpr (kBecomesWeighted) {
      is_weighted = States::IsWeighted(*place.slot);
      if (!is_weighted && states_.KeepsCosts(costs.uniform() > 1)) [[unlikely]] {
        states_.BecomeWeighted(rules_, *place.slot, blocks_.Moment(place));
        is_weighted = true;
      }
    }
    WithStates(is_weighted, [&]<class R, class S>(const R& rules, S& states) {
      SlotCarrier<R, S> carrier(*this, rules, states, place);
      use(Decider(rules), carrier);
    });
  }

  /// The id is also blocked until `blocked_until...`, by a call, if there is one: without any, the
  /// rules of blocks cost nothing.
  template <std::same_as<Micros>... B>
  ROLLGATE_NOINLINE void Peek(const Identity& id, Micros now, const Costs& costs,
                              Recording recording, Decision& decision, B... blocked_until) {
    if (const Place place = table_.Find(id)) {
      WithCarrier(place, 1, [&](const auto& decider, auto& carrier) {
        decider.Peek(carrier, now, costs, recording, decision, blocked_until...);
      });
    } else {
      Account account = states_.Begin(rules_, Scratch());
      Decider(rules_).PeekFirst(account, now, FirstMoment(now), costs, recording, decision,
                                blocked_until...);
    }
  }

  ROLLGATE_NOINLINE void Record(const Identity& id, Micros now, const Costs& costs,
                                Decision& decision) {
    Tend(now, 1);
    {
      const RoomToRecord scope(rules_);
      SetCapacity();
      if (const Place place = table_.Find(id)) {
        WithCarrier(place, costs, [&](const auto& decider, auto& carrier) {
          decider.Record(carrier, now, costs, decision, manual_blocks_.EndOf(id));
        });
      } else {
        Begin(id, now, costs, Recording::kRecord, nullptr);
        Peek(id, now, 0, Recording::kNothing, decision, manual_blocks_.EndOf(id));
      }
    }
    SetCapacity();
  }

  /// Lets logs have the capacity that the rules say.
  void SetCapacity() {
    if constexpr (requires { states_.SetCapacityOf(rules_); }) states_.SetCapacityOf(rules_);
  }

  /// Whether a call has blocked the id. Then its attempt is decided, and leaves no trace.
  ROLLGATE_NOINLINE bool RefusesBlocked(const Identity& id, Micros now, const Costs& costs,
                                        Recording recording, Decision& decision) {
    const Micros until = manual_blocks_.EndOf(id);
    if (until <= now) return false;
    Peek(id, now, costs, recording, decision, until);
    if (!decision.verdict.blocked_by_block) return false;
    Count(false, recording);
    return true;
  }

  /// A slot outside of the table, without a block.
  Slot& Scratch() { return *reinterpret_cast<Slot*>(scratch_.data()); }

  void Count(bool allowed, Recording recording = Recording::kAttempt) {
    if (recording == Recording::kRecord) return;
    if (allowed) {
      ++allowed_;
    } else if (recording != Recording::kWaiting) {
      ++blocked_;
    }
  }

  /// Forgets as many expired ids as there are attempts, even if no new ids come.
  void TendNowAndThen(Micros now) {
    constexpr std::size_t kAttempts = 64;
    if ((allowed_ + blocked_) % kAttempts == 0) [[unlikely]] {
      Tend(now, kAttempts);
    }
  }
  ROLLGATE_NOINLINE void Tend(Micros now, std::size_t most) {
    try {
      table_.Tend(rules_.TableTime(now), most, [this](Slot& slot) { Release(slot); });
      if (!manual_blocks_.IsEmpty()) {
        manual_blocks_.Tend(now, most, [this](Slot& slot) { ReleaseBlock(slot); });
      }
    } catch (...) {
      // There is no memory for a table of another size. This must not fail calls that need none.
    }
  }

  /// The time of an id: a clock that stepped back does not take it back.
  Micros TimeOf(const Place& place, Micros now) {
    if (!place) return FirstMoment(now);
    Micros at;
    WithCarrier(place, 1, [&](const auto&, auto& carrier) { at = carrier.Load().At(now); });
    return at;
  }

  /// An unknown id acts no earlier than this: it may have been forgotten.
  Micros FirstMoment(Micros now) const {
    return std::max(now, rules_.FromTableTime(table_.forgotten_until()));
  }

  /// The first action of an id, which is allowed, unless it can never be.
  ROLLGATE_NOINLINE void Begin(const Identity& id, Micros now, const Costs& costs,
                               Recording recording, Decision* decision) {
    const Micros at = FirstMoment(now);
    assert(at >= now);
    if (decision != nullptr && !Decider(rules_).AllowsFirst(costs)) [[unlikely]] {
      Account account = states_.Begin(rules_, Scratch());
      Decider(rules_).PeekFirst(account, now, at, costs, recording, *decision);
      return Count(false, recording);
    }
    const Micros moment = blocks_.TableMoment(rules_.FirstMoment(at, costs), Block());
    const std::uint64_t evicted = Evicted();
    const bool is_blocked = manual_blocks_.Has(id);
    if (!is_blocked && !manual_blocks_.IsEmpty()) MakeRoom(now);  // else the table does it
    const Place place =
        table_.Insert(id, moment, rules_.TableTime(at), [this](Slot& slot) { Release(slot); });
    if (is_blocked) ++held_twice_;
    if (Evicted() != evicted && on_eviction_) on_eviction_();
    place.slot->set_generation(++last_generation_);
    const bool has_costs = kBecomesWeighted && costs.uniform() > 1;
    WithStates(KeepsCosts(has_costs), [&]<class R, class S>(const R& rules, S& states) {
      auto account = states.Begin(rules, *place.slot);
      SlotCarrier<R, S> carrier(*this, rules, states, place);
      try {
        carrier.Reserve(account, at, costs);
      } catch (...) {
        Forget(place);  // an attempt that fails records nothing
        throw;
      }
      account.Record({.at = at}, costs);
      carrier.Save(account, Block());
      Count(true, recording);
      if (decision != nullptr) Decider(rules).DescribeFirst(account, now, at, costs, *decision);
    });
  }

  void Forget(const Place& place) {
    Release(*place.slot);
    table_.Erase(place);
  }

  /// Before the table forgets an id.
  void Release(Slot& slot) {
    states_.Destroy(slot);
    if (manual_blocks_.Has(slot.identity())) --held_twice_;
  }
  /// Before the block of an id is forgotten.
  void ReleaseBlock(const Slot& slot) {
    if (table_.Find(slot.identity())) --held_twice_;
  }

  /// The ids that are in the table, blocked by a call, or both.
  std::size_t Held() const { return table_.live() + manual_blocks_.live() - held_twice_; }
  std::uint64_t Evicted() const { return table_.evicted() + manual_blocks_.evicted(); }

  /// Forgets ids until there is room for one more. An id that is also blocked by a call goes in two
  /// steps: what it has recorded and its block, each when it is what expires next.
  void MakeRoom(Micros now) {
    while (Held() >= table_options_.max_keys) {
      if (manual_blocks_.live() > 0 && manual_blocks_.EarliestEnd() < EarliestExpiry()) {
        manual_blocks_.ForgetEarliest(now, [this](Slot& slot) { ReleaseBlock(slot); });
      } else {
        table_.ForgetNearest(rules_.TableTime(now), [this](Slot& slot) { Release(slot); });
      }
    }
  }
  Micros EarliestExpiry() {
    return table_.live() == 0 ? kNever
                              : rules_.FromTableTime(table_.NearestMoment() + blocks_.retention());
  }

  Rules rules_;
  States states_;
  Blocks blocks_;
  TableOptions table_options_;
  Table table_;
  ManualBlocks manual_blocks_;
  std::size_t held_twice_ = 0;   // ids that are in the table and blocked by a call
  std::vector<WindowUse> uses_;  // for checks, once there are such blocks
  std::function<void()> on_eviction_;
  std::uint64_t largest_limit_;  // of calls
  Generation last_generation_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
  std::vector<std::byte> scratch_;
};

/// Returns `make.template operator()<S>()`, where S is the policy's store.
template <class T, class Make>
T WithMemoryStore(const Policy& policy, Make make) {
  return WithAlgorithm<T>(policy, [&]<class Rules>() -> T {
    if constexpr (std::is_same_v<Rules, WeightedLog>) {
      return make.template operator()<TableStore<Rules, WeightedHeapLogs>>();
    } else if constexpr (KeepsLog<Rules>) {
      if constexpr (!kIsCompact || std::is_same_v<PolicyOf<Rules>, SingleWindowPolicy>) {
        if (InlineLogs<Rules>::Fits(policy)) {
          return make.template operator()<TableStore<Rules, InlineLogs<Rules>>>();
        }
      }
      return make.template operator()<TableStore<Rules, HeapLogs<Rules>>>();
    } else {
      return make.template operator()<TableStore<Rules, Counts<Rules>>>();
    }
  });
}

}  // namespace rollgate::memory
