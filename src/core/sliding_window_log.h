// The exact algorithm: judges every window by the log of the id's newest actions.
//
// Source: rolling-rate-limiter. A window blocks while its max-th newest recorded action is less
// than its interval ago. An attempt of cost c needs c free places, so the (max - c + 1)-th newest
// decides. minDifference is the window (minDifference, 1), but an attempt is one moment at any
// cost.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "core/snapshot.h"
#include "core/time.h"

namespace rollgate {

/// An id's actions; Nth(n) is the n-th newest, counted from 1.
template <class L>
concept ActionLog = requires(const L& log, std::uint64_t n) {
  { log.size() } -> std::convertible_to<std::uint64_t>;
  { log.Nth(n) } -> std::convertible_to<Micros>;
};

/// `log` as `times` actions at `at` would leave it.
template <ActionLog Log>
class LogWith {
 public:
  LogWith(const Log& log, Micros at, std::uint64_t times) : log_(log), at_(at), times_(times) {}

  std::uint64_t size() const { return log_.size() + times_; }
  Micros Nth(std::uint64_t n) const {
    assert(n >= 1 && n <= size());
    return n <= times_ ? at_ : log_.Nth(n - times_);
  }

 private:
  const Log& log_;
  Micros at_;
  std::uint64_t times_;
};

template <ActionLog Log, class P>
class LogView {
 public:
  /// Makes the log in place, of the arguments of its constructor.
  template <class... Parts>
  explicit LogView(const P& policy, const Parts&... parts) : log_(parts...), policy_(policy) {}

  Micros Newest() const { return log_.size() == 0 ? kLongAgo : log_.Nth(1); }
  Micros At(Micros now) const { return std::max(now, Newest()); }

  bool Reaches(std::size_t window, std::uint64_t n, Micros at) const {
    return log_.size() >= n && at - log_.Nth(n) < policy_.windows()[window].interval;
  }

  std::uint64_t Used(std::size_t window, Micros at) const {
    const auto& [interval, max, _] = policy_.windows()[window];
    std::uint64_t inside = 0;
    // Refusals count up to the max, however many the log has.
    std::uint64_t outside =
        (policy_.count_blocked() ? std::min<std::uint64_t>(log_.size(), max) : log_.size()) + 1;
    // Usually all are inside.
    if (outside > 1 && at - log_.Nth(outside - 1) < interval) return outside - 1;
    while (outside - inside > 1) {
      const std::uint64_t n = inside + (outside - inside) / 2;
      (at - log_.Nth(n) < interval ? inside : outside) = n;
    }
    return inside;
  }

  Micros BelowAt(std::size_t window, std::uint64_t n) const {
    return log_.size() >= n ? log_.Nth(n) + policy_.windows()[window].interval : kLongAgo;
  }

 protected:
  Log log_;
  const P& policy_;
};

/// An id's moment is its newest action. Stores decide where and how a log is stored.
template <class P, class Stamp>
class SlidingWindowLog : public PlainTimes {
 public:
  using Log = RingLog<Stamp>;

  /// Whether an id can have an empty log: if all was refunded and a block remains.
  static constexpr bool kKeepsEmptyLogs = !std::is_same_v<P, SingleWindowPolicy>;

  explicit SlidingWindowLog(const Policy& policy) : policy_(policy) {
    assert(policy.retention() <= Log::kLongestRetention);
  }

  const P& policy() const { return policy_; }

  void UseLimits(std::span<const std::uint64_t> limits) { policy_.UseLimits(limits); }
  void KeepAtLeast(std::uint64_t actions) { policy_.KeepAtLeast(actions); }

  Micros retention() const { return policy_.retention(); }
  Micros lifetime() const { return retention(); }

  class Account : public LogView<Log, P> {
    using LogView<Log, P>::log_;
    using LogView<Log, P>::policy_;

   public:
    /// Makes its log in place: if a log was built first and then copied, wide loads of the copy
    /// would wait for the narrow stores before them, 15 ns in each check.
    Account(const SlidingWindowLog& rules, Generation generation, const LogHead& head,
            std::byte* ring, std::uint32_t ring_room, std::uint32_t capacity)
        : LogView<Log, P>(rules.policy_, head, ring, ring_room, capacity),
          generation_(generation) {}

    const Log& log() const { return log_; }
    Log& log() { return log_; }

    bool IsEmpty() const { return log_.size() == 0; }
    Micros moment() const { return this->Newest(); }
    Generation generation() const { return generation_; }
    std::uint64_t Token() const { return generation_; }

    LogView<LogWith<Log>, P> After(const Verdict& verdict, const Costs& costs) const {
      return LogView<LogWith<Log>, P>(policy_, log_, verdict.at, costs.uniform());
    }

    void CopyTo(Snapshot& snapshot, Micros) const {
      for (std::uint32_t n = log_.size(); n > 0; --n) snapshot.actions.push_back(log_.Nth(n));
      snapshot.displaced = log_.displaced();
    }
    /// `record(at, costs)` makes room and records.
    template <class RecordOne>
    void TakeOver(const Snapshot& snapshot, Micros, RecordOne record) {
      // Costs are the same in all windows.
      const std::size_t windows = policy_.windows().size();
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < snapshot.actions.size(); ++i) {
        const std::uint64_t cost = snapshot.numbers.empty() ? 1 : snapshot.numbers[i * windows];
        record(snapshot.actions[i], cost);
        total += cost;
      }
      // Under lower limits, later ones have pushed others out as refusals do.
      log_.set_displaced((snapshot.displaced || total > log_.size()) && log_.IsFull());
    }

    /// Precondition: the ring has room for the actions, up to the log's capacity.
    void Record(const Verdict& verdict, const Costs& costs) {
      const std::uint64_t cost = costs.uniform();
      // What an allowed action pushes out is outside of every window. What a refusal pushes out may
      // still be inside, and a later refund must know that.
      assert(cost >= 1 && log_.size() <= log_.capacity());
      const std::uint64_t free = log_.capacity() - log_.size();
      const std::uint64_t pushed_out =
          cost > free ? std::min<std::uint64_t>(cost - free, log_.size()) : 0;
      bool displaces = false;
      if (pushed_out > 0 && !verdict.allowed()) {
        displaces = verdict.at - log_.Nth(log_.size() - pushed_out + 1) < policy_.retention();
      }
      for (std::uint64_t i = std::min<std::uint64_t>(cost, log_.capacity()); i > 0; --i) {
        log_.Push(verdict.at);
      }
      if (pushed_out > 0) log_.set_displaced(displaces);
    }

    /// Whether the capacity is max: the window is full if the log is and its oldest action is
    /// inside.
    bool CanAttemptOne() const { return log_.capacity() == policy_.windows()[0].max; }

    template <class Reserve>
    Micros AttemptOne(Micros now, Reserve reserve) requires std::same_as<P, SingleWindowPolicy> {
      const Micros at = this->At(now);
      if (log_.IsFull()) [[likely]] {
        const Micros interval = policy_.windows()[0].interval;
        const Micros oldest = log_.Oldest();
        if (at - oldest < interval) {
          if (!policy_.count_blocked()) return oldest + interval - now;
          log_.set_displaced(true);
          // After larger limits, the ring may have more room than this one needs.
          if (log_.ring_room() + 1 == log_.capacity()) [[likely]] {
            log_.ReplaceOldest(at);
          } else {
            log_.Push(at);
          }
          return log_.Oldest() + interval - now;
        }
        log_.set_displaced(false);
      }
      reserve(at);
      log_.Push(at);
      return 0;
    }

    /// Nothing for an unknown attempt.
    Costs RoomToSettle(const Receipt& receipt, const Costs& actual) const {
      const std::uint64_t cost = receipt.cost.uniform();
      if (actual.uniform() <= cost || Find(receipt) == 0) return 0;
      return actual.uniform() - cost;
    }

    /// An overdraft is kept as far as the log has places.
    bool Settle(const Receipt& receipt, const Costs& actual, Micros) {
      const std::uint32_t not_later = Find(receipt);
      if (not_later == 0) return false;
      const std::uint64_t cost = receipt.cost.uniform();
      if (actual.uniform() > cost) {
        Insert(receipt.at, not_later - 1, actual.uniform() - cost);
      } else {
        TakeBack(receipt.at, not_later, cost - actual.uniform());
      }
      return true;
    }

   private:
    /// Which of the newest, counted from 1, is the last action of an attempt; 0 if it is unknown.
    std::uint32_t Find(const Receipt& receipt) const {
      if (receipt.token != generation_) return 0;
      // Nth(n) never ascends with n: find the newest action no later than receipt.at by bisection.
      std::uint32_t later = 0;
      std::uint32_t not_later = log_.size() + 1;
      while (not_later - later > 1) {
        const std::uint32_t n = later + (not_later - later) / 2;
        (log_.Nth(n) > receipt.at ? later : not_later) = n;
      }
      return not_later <= log_.size() && log_.Nth(not_later) == receipt.at ? not_later : 0;
    }

    /// Records `more` actions at `at`, which is followed by `later` actions. Precondition: as for
    /// Record.
    void Insert(Micros at, std::uint32_t later, std::uint64_t more) {
      const std::uint64_t free = log_.capacity() - log_.size();
      // Newer actions stay, so no more than this can be inserted.
      more = std::min<std::uint64_t>(more, log_.capacity() - later);
      const std::uint64_t pushed_out = more > free ? more - free : 0;
      const bool displaces =
          pushed_out > 0 &&
          this->Newest() - log_.Nth(log_.size() - pushed_out + 1) < policy_.retention();
      std::vector<Micros> newer;
      for (; later > 0; --later) {
        newer.push_back(log_.Nth(1));
        log_.Remove(1);
      }
      for (; more > 0; --more) log_.Push(at);
      for (; !newer.empty(); newer.pop_back()) log_.Push(newer.back());
      if (displaces) log_.set_displaced(true);
    }

    /// A full log may have pushed out older actions, which need the freed places. Refusals and
    /// overdrafts push out what is inside of a window: the places stay taken until the oldest known
    /// action leaves, no earlier than the lost ones. All others had left before the newest action
    /// was made. They matter only if it is taken back and the clock steps back: the places are free
    /// from its time on. No action is before -kLongest.
    void TakeBack(Micros at, std::uint32_t not_later, std::uint64_t cost) {
      const bool was_full = log_.IsFull();
      const Micros left = log_.Nth(1) - policy_.retention();
      Micros taken_since = log_.Oldest();
      log_.set_displaced(log_.displaced() && left < taken_since);
      std::uint64_t removed = 0;
      while (removed < cost && not_later <= log_.size() && log_.Nth(not_later) == at) {
        log_.Remove(not_later);
        ++removed;
      }
      assert(removed >= 1 || cost == 0);
      if (removed == 0 || !(was_full || log_.displaced())) return;
      if (!log_.displaced()) {
        if (left < -kLongest) return;
        taken_since = log_.size() == 0 ? left : std::min(log_.Oldest(), left);
      }
      if (log_.size() == 0) {
        log_.Push(taken_since);
        --removed;
      }
      for (; removed > 0; --removed) log_.PushOldest(taken_since);
    }

    Generation generation_;
  };

 private:
  P policy_;
};

}  // namespace rollgate
