// An id's log in the words of a record.
#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/block.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "core/sliding_window_log.h"
#include "core/time.h"
#include "shared/block_words.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// How many actions a log in a region holds at most.
std::uint32_t SharedLogCapacity(const Policy& policy);

/// The sliding window log under one policy. A state is the newest action; a word with the rest of
/// the log's head and the id's life; the ring of stamps; the block.
template <class P, class Stamp>
class LogState {
  using Log = RingLog<Stamp>;

 public:
  static Micros Cut(Micros now) { return now; }

  explicit LogState(const Policy& policy)
      : policy_(policy),
        capacity_(SharedLogCapacity(policy)),
        ring_words_((std::size_t{capacity_ - 1} * sizeof(Stamp) + 7) / 8),
        blocks_(policy_, kRing + ring_words_) {}

  std::size_t words() const { return kRing + ring_words_ + blocks_.words(); }

  void SetMax(std::uint64_t max, bool records) {
    if constexpr (std::same_as<P, Policy>) policy_.SetMax(max, records);
  }

  /// An attempt of cost 1; tells whether it has changed the state.
  bool Check(std::uint64_t* state, Micros now, Micros& time_left) const {
    if constexpr (std::same_as<P, SingleWindowPolicy>) {
      Log log = Load(state);
      time_left = sliding_window_log::AttemptOne(log, policy_, now);
      if (time_left > 0 && !policy_.count_blocked()) return false;
      Save(state, log);
      return true;
    } else {
      return Judge(state, now, 1, [&](const Log& log, const Verdict& verdict, const Block& block) {
        time_left = sliding_window_log::TimeLeft(log, policy_, verdict, now, 1, block);
      });
    }
  }

  /// An attempt; tells whether it has changed the state.
  bool Attempt(std::uint64_t* state, Micros now, std::uint64_t cost, Decision& decision) const {
    decision.token = Token(state);
    return Judge(state, now, cost, [&](const Log& log, const Verdict& verdict, const Block& block) {
      sliding_window_log::Describe(log, policy_, verdict, now, cost, decision, block);
    });
  }

  void Peek(std::uint64_t* state, Micros now, std::uint64_t cost, Decision& decision) const {
    const Log log = Load(state);
    Block block = blocks_.Load(state);
    const Verdict verdict = sliding_window_log::Decide(log, policy_, now, cost, block);
    StartsBlock(verdict, policy_, block);
    sliding_window_log::Describe(log, policy_, verdict, now, cost, decision, block);
  }

  /// The state of a new id that acts at `at`. A cost of 0 only asks.
  void Begin(std::uint64_t* state, std::uint32_t life, Micros at, std::uint64_t cost) const {
    std::fill_n(state, words(), 0);
    state[kHead] = std::uint64_t{life} << kLifeAt;
    blocks_.Store(state, Block());
    Log log(LogHead{}, Ring(state), capacity_ - 1, capacity_);
    Verdict verdict;
    verdict.at = at;
    sliding_window_log::Record(log, policy_, verdict, cost);
    Save(state, log);
  }

  /// What that attempt comes to.
  void DescribeFirst(std::uint64_t* state, Micros now, Micros at, std::uint64_t cost,
                     Decision& decision) const {
    Verdict verdict;
    verdict.at = at;
    decision.token = Token(state);
    sliding_window_log::Describe(sliding_window_log::EmptyLog(), policy_, verdict, now, cost,
                                 decision);
  }

  /// Takes back an attempt; tells whether there was anything of it. `is_empty`: nothing is left.
  bool Refund(std::uint64_t* state, const Receipt& receipt, Micros, bool& is_empty) const {
    is_empty = false;
    if (Token(state) != receipt.token) return false;
    Log log = Load(state);
    if (!sliding_window_log::Refund(log, policy_, receipt.at, receipt.cost)) return false;
    if (log.size() == 0) {
      const Block block = blocks_.Load(state);
      is_empty = block.offences == 0;
      // A block is all that is left of the id. It needs a log, so one action stays that no window
      // counts from then on.
      if (!is_empty) log.Push(block.StartedAt(policy_.blocks()) - policy_.retention());
    }
    Save(state, log);
    return true;
  }

  Micros Expires(const std::uint64_t* state) const {
    const auto newest = static_cast<Micros>(state[kNewest]);
    return blocks_.Expires(state, newest + policy_.retention());
  }

 private:
  static constexpr std::size_t kNewest = 0;
  static constexpr std::size_t kHead = 1;  // size, place of the oldest stamp, life, displaced
  static constexpr std::size_t kRing = 2;
  static constexpr int kSizeBits = 20;
  static constexpr int kLifeAt = 2 * kSizeBits;
  static constexpr int kDisplacedAt = kLifeAt + kLifeBits;
  static constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kSizeBits) - 1;

  static std::byte* Ring(std::uint64_t* state) {
    return reinterpret_cast<std::byte*>(state + kRing);
  }

  static std::uint64_t Token(const std::uint64_t* state) {
    return state[kHead] >> kLifeAt & ((std::uint64_t{1} << kLifeBits) - 1);
  }

  Log Load(std::uint64_t* state) const {
    LogHead head;
    head.newest = static_cast<Micros>(state[kNewest]);
    head.size = static_cast<std::uint32_t>(state[kHead] & kSizeMask);
    head.head = static_cast<std::uint32_t>(state[kHead] >> kSizeBits & kSizeMask);
    head.displaced = (state[kHead] >> kDisplacedAt & 1) != 0;
    const bool is_sound = head.size >= 1 && head.size <= capacity_ &&
                          (head.head == 0 || head.head < capacity_ - 1) &&
                          Bounded(head.newest) == head.newest;
    if (!is_sound) ThrowCorrupt("a log");
    return Log(head, Ring(state), capacity_ - 1, capacity_);
  }

  void Save(std::uint64_t* state, const Log& log) const {
    const LogHead& head = log.head();
    state[kNewest] = static_cast<std::uint64_t>(head.newest);
    state[kHead] = Token(state) << kLifeAt | std::uint64_t{head.displaced} << kDisplacedAt |
                   std::uint64_t{head.head} << kSizeBits | head.size;
  }

  /// Decides, lets `tell(log, verdict, block)` look at the log as it was and the block as it will
  /// be, then records.
  template <class Tell>
  bool Judge(std::uint64_t* state, Micros now, std::uint64_t cost, Tell tell) const {
    Log log = Load(state);
    Block block = blocks_.Load(state);
    const Verdict verdict = sliding_window_log::Decide(log, policy_, now, cost, block);
    const bool starts_block = StartsBlock(verdict, policy_, block);
    tell(static_cast<const Log&>(log), verdict, block);
    const bool records = Records(verdict, policy_);
    if (records) {
      sliding_window_log::Record(log, policy_, verdict, cost);
      Save(state, log);
    }
    if (starts_block) blocks_.Store(state, block);
    return records || starts_block;
  }

  P policy_;
  std::uint32_t capacity_;
  std::size_t ring_words_;
  BlockWords<P> blocks_;
};

}  // namespace rollgate::shared
