// The store of the sliding window log: an id's newest actions in its slot or in a block.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "core/sliding_window_log.h"
#include "memory/memory_store.h"
#include "memory/table_store.h"

namespace rollgate::memory {

/// `P` is a form of the policy, `Logs` is where the ids' older actions live; an id's moment is its
/// newest action.
template <class P, class Logs>
class LogStore final : public TableStore<LogStore<P, Logs>> {
  using Base = TableStore<LogStore>;
  using Base::Count;
  using Base::Forget;
  using Base::table;
  using Base::TendNowAndThen;

 public:
  LogStore(const Policy& policy, const MemoryStoreOptions& options)
      : LogStore(P(policy), Logs(policy), options) {}

  ~LogStore() override { Base::ReleaseAll(); }

  void SetMax(std::uint64_t max, bool records) override {
    if constexpr (std::same_as<P, Policy>) {
      policy_.SetMax(max, records);
      logs_.SetCapacity(policy_.least_capacity());
    }
  }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros now) override {
    TendNowAndThen(now);
    const Place place = table().Find(id);
    if (!place) [[unlikely]] {
      JudgeUnknown(id, now, 1, [](const auto&, const Verdict&, const Block&) {});
      return 0;
    }
    if constexpr (std::same_as<P, SingleWindowPolicy>) {
      return CheckSingle(place, now);
    } else {
      return CheckAny(place, now);
    }
  }

  ROLLGATE_FLATTEN void Attempt(const Identity& id, Micros now, std::uint64_t cost,
                                Decision& decision) override {
    const auto describe = [&](const auto& log, const Verdict& verdict, const Block& block) {
      sliding_window_log::Describe(log, policy_, verdict, now, cost, decision, block);
    };
    TendNowAndThen(now);
    const Place place = table().Find(id);
    decision.token =
        place ? JudgeKnown(place, now, cost, describe) : JudgeUnknown(id, now, cost, describe);
  }

  void Peek(const Identity& id, Micros now, std::uint64_t cost, Decision& decision) override {
    if (const Place place = table().Find(id)) {
      const auto log = logs_.Load(*place.slot, blocks_.Moment(place));
      Block block = blocks_.Load(place);
      const Verdict verdict = sliding_window_log::Decide(log, policy_, now, cost, block);
      StartsBlock(verdict, policy_, block);
      sliding_window_log::Describe(log, policy_, verdict, now, cost, decision, block);
    } else {
      sliding_window_log::Describe(sliding_window_log::EmptyLog(), policy_, VerdictOnUnknown(now),
                                   now, cost, decision);
    }
  }

  bool Refund(const Identity& id, const Receipt& receipt, Micros) override {
    const Place place = table().Find(id);
    if (!place || place.slot->incarnation() != receipt.token) return false;
    auto log = logs_.Load(*place.slot, blocks_.Moment(place));
    if (!sliding_window_log::Refund(log, policy_, receipt.at, receipt.cost)) return false;
    const Block block = blocks_.Load(place);
    if (log.size() == 0) {
      if (block.offences == 0) {
        Forget(place);
        return true;
      }
      // A block is all that is left of the id. It needs a log, so one action stays that no window
      // counts from then on.
      log.Push(block.StartedAt(policy_.blocks()) - policy_.retention());
    }
    logs_.Save(*place.slot, log);
    blocks_.Save(table(), place, log.Nth(1), block);
    return true;
  }

  void Release(Slot& slot) { logs_.Destroy(slot); }
  std::size_t extra_bytes() const { return logs_.extra_bytes(); }

 private:
  Micros CheckSingle(const Place& place, Micros now) {
    const Micros newest = place.slot->moment();
    if (Logs::kGrows && !policy_.count_blocked()) {
      // A refusal that leaves no trace takes no room either.
      const auto log = logs_.Load(*place.slot, newest);
      const Verdict verdict = sliding_window_log::Decide(log, policy_, now, 1);
      if (!verdict.allowed()) {
        Count(false);
        return sliding_window_log::TimeLeft(log, policy_, verdict, now, 1);
      }
    }
    auto log = logs_.LoadWithRoom(*place.slot, newest, 1);
    const Micros time_left = sliding_window_log::AttemptOne(log, policy_, now);
    Count(time_left == 0);
    logs_.Save(*place.slot, log);
    if (log.Nth(1) != newest) table().Touch(place, log.Nth(1));
    return time_left;
  }

  Micros CheckAny(const Place& place, Micros now) {
    Micros time_left = 0;
    JudgeKnown(place, now, 1, [&](const auto& log, const Verdict& verdict, const Block& block) {
      time_left = sliding_window_log::TimeLeft(log, policy_, verdict, now, 1, block);
    });
    return time_left;
  }

  /// Decides, lets `tell(log, verdict, block)` look at the log as it was and the block as it will
  /// be, then records. Returns the incarnation of the id.
  template <class Tell>
  std::uint16_t JudgeKnown(const Place& place, Micros now, std::uint64_t cost, Tell tell) {
    const Micros newest = blocks_.Moment(place);
    auto log = logs_.Load(*place.slot, newest);
    Block block = blocks_.Load(place);
    const Verdict verdict = sliding_window_log::Decide(log, policy_, now, cost, block);
    const bool starts_block = StartsBlock(verdict, policy_, block);
    tell(std::as_const(log), verdict, block);
    const bool records = Records(verdict, policy_);
    if (records) log = logs_.LoadWithRoom(*place.slot, newest, cost);
    Count(verdict.allowed());
    if (records) {
      sliding_window_log::Record(log, policy_, verdict, cost);
      logs_.Save(*place.slot, log);
    }
    if (records || starts_block) blocks_.Save(table(), place, log.Nth(1), block);
    return place.slot->incarnation();
  }

  template <class Tell>
  ROLLGATE_NOINLINE std::uint16_t JudgeUnknown(const Identity& id, Micros now, std::uint64_t cost,
                                               Tell tell) {
    const Verdict verdict = VerdictOnUnknown(now);
    tell(sliding_window_log::EmptyLog(), verdict, Block());
    const Micros moment = blocks_.TableMoment(verdict.at, Block());
    const Place place = Base::Insert(id, moment, verdict.at);
    logs_.Create(*place.slot);
    blocks_.Create(place, verdict.at);
    if (cost > 1) RecordMore(place, verdict, cost - 1);
    Count(true);
    return place.slot->incarnation();
  }

  /// Records what an attempt of more than 1 has left to record on a new id.
  void RecordMore(const Place& place, const Verdict& verdict, std::uint64_t cost) {
    try {
      auto log = logs_.LoadWithRoom(*place.slot, verdict.at, cost);
      sliding_window_log::Record(log, policy_, verdict, cost);
      logs_.Save(*place.slot, log);
    } catch (const std::bad_alloc&) {
      Forget(place);  // an attempt that fails records nothing
      throw;
    }
  }

  Verdict VerdictOnUnknown(Micros now) const {
    Verdict verdict;
    verdict.at = std::max(now, table().forgotten_until());
    return verdict;
  }

  LogStore(const P& policy, const Logs& logs, const MemoryStoreOptions& options)
      : LogStore(policy, logs, BlockPlaces<P>(policy, logs.payload_bytes(), policy.retention()),
                 options) {}
  LogStore(const P& policy, const Logs& logs, const BlockPlaces<P>& blocks,
           const MemoryStoreOptions& options)
      : Base(options, logs.payload_bytes() + blocks.bytes(), blocks.retention()),
        policy_(policy),
        logs_(logs),
        blocks_(blocks) {}

  P policy_;
  Logs logs_;
  BlockPlaces<P> blocks_;
};

}  // namespace rollgate::memory
