// The exact log for windows that count different things: each entry has a cost for each window.
//
// A window is full for an attempt of cost c if the costs inside of it reach max - c + 1. Exact up
// to WeightedEntries::kMost entries in the longest window. Beyond that, neighbouring entries are
// merged at the newer stamp: room comes back late by less than interval * windows / 256, never
// early.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/time.h"
#include "core/weighted_entries.h"

namespace rollgate {

/// An id's moment is its newest attempt.
class WeightedLog : public PlainTimes {
 public:
  explicit WeightedLog(const Policy& policy) : policy_(policy) {
    // The windows share so many cells, so a merge leaves about half of the entries.
    constexpr Micros kCells = WeightedEntries::kMost / 2;
    const auto windows = static_cast<Micros>(policy.windows().size());
    for (const Window& window : policy_.windows()) {
      const Micros width = window.interval / kCells * windows +
                           (window.interval % kCells * windows + kCells - 1) / kCells;
      zones_.push_back({window.interval, std::max<Micros>(width, 1)});
    }
    std::sort(zones_.begin(), zones_.end(),
              [](const MergeZone& a, const MergeZone& b) { return a.interval < b.interval; });
  }

  const Policy& policy() const { return policy_; }
  void UseLimits(std::span<const std::uint64_t> limits) { policy_.UseLimits(limits); }

  std::uint32_t windows() const { return static_cast<std::uint32_t>(policy_.windows().size()); }
  std::span<const MergeZone> zones() const { return zones_; }

  Micros retention() const { return policy_.retention(); }
  Micros lifetime() const { return retention(); }

  /// Entries, and one attempt more.
  class View {
   public:
    /// Makes the entries in place, of the arguments of their constructor.
    template <class... Parts>
    View(const Policy& policy, Micros at, const Costs& more, const Parts&... parts)
        : entries_(parts...), policy_(policy), at_(at), more_(more) {}

    Micros Newest() const {
      if (more_.IsAny()) return at_;
      return entries_.size() == 0 ? kLongAgo : entries_.Newest();
    }
    Micros At(Micros now) const { return std::max(now, Newest()); }

    std::uint64_t Used(std::size_t window, Micros at) const {
      const auto& [interval, max, _] = policy_.windows()[window];
      const std::uint64_t sum =
          entries_.SumFrom(entries_.FirstAfter(at - interval), window) + more_[window];
      // As a log of stamps, from which unnamed limits turn to this form: it has no more refusals.
      return policy_.count_blocked() && !policy_.weighted() ? std::min(sum, max) : sum;
    }

    bool Reaches(std::size_t window, std::uint64_t n, Micros at) const {
      return Used(window, at) >= n;
    }

    Micros BelowAt(std::size_t window, std::uint64_t n) const {
      assert(n >= 1);
      const Micros interval = policy_.windows()[window].interval;
      if (more_[window] >= n) return at_ + interval;
      const std::uint32_t first = entries_.FirstWithLessThan(n - more_[window], window);
      return first == 0 ? kLongAgo : entries_.Stamp(first - 1) + interval;
    }

   protected:
    WeightedEntries entries_;
    const Policy& policy_;

   private:
    Micros at_;
    Costs more_;
  };

  class Account : public View {
   public:
    /// Makes its entries in place, for the reason that SlidingWindowLog::Account gives.
    Account(const WeightedLog& rules, Generation generation, std::uint64_t* words,
            std::uint32_t room, WeightedHead head)
        : View(rules.policy_, kLongAgo, 0, words, rules.windows(), room, head),
          generation_(generation) {}

    const WeightedEntries& entries() const { return entries_; }
    WeightedEntries& entries() { return entries_; }

    bool IsEmpty() const { return entries_.size() == 0; }
    Micros moment() const { return Newest(); }
    Generation generation() const { return generation_; }
    std::uint64_t Token() const { return generation_; }

    View After(const Verdict& verdict, const Costs& costs) const {
      return {policy_, verdict.at, costs, entries_};
    }

    void CopyTo(Snapshot& snapshot, Micros) const {
      for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        snapshot.actions.push_back(entries_.Stamp(i));
        for (std::uint32_t w = 0; w < entries_.windows(); ++w) {
          snapshot.numbers.push_back(entries_.SumFrom(i, w) - entries_.SumFrom(i + 1, w));
        }
      }
      snapshot.dropped = entries_.dropped();
      snapshot.merged = entries_.merged();
    }
    /// `record(at, costs)` makes room and records.
    template <class RecordOne>
    void TakeOver(const Snapshot& snapshot, Micros, RecordOne record) {
      const std::span<const std::uint64_t> all(snapshot.numbers);
      const std::size_t windows = entries_.windows();
      for (std::size_t i = 0; i < snapshot.actions.size(); ++i) {
        const bool has_costs = !all.empty();
        record(snapshot.actions[i],
               has_costs ? Costs(all.subspan(i * windows, windows)) : Costs(1));
      }
      entries_.TakeOverMoments(snapshot.dropped, snapshot.merged);
    }

    /// Precondition: the entries have room at that moment.
    void Record(const Verdict& verdict, const Costs& costs) { entries_.Record(verdict.at, costs); }

    /// Records the actions of a log that has a cost of 1 for each. `reserve(at)` makes room for
    /// one.
    template <class Log, class Reserve>
    void RecordLog(const Log& log, Reserve reserve) {
      for (std::uint32_t n = log.size(); n > 0; --n) {
        const Micros at = log.Nth(n);
        // Refusals have pushed out others no later than the oldest, at most as many as are left.
        const bool has_lost = n == log.size() && log.displaced();
        reserve(at);
        entries_.Record(at, has_lost ? std::uint64_t{1} + log.size() : 1);
      }
    }

    bool Settle(const Receipt& receipt, const Costs& actual, Micros) {
      return receipt.token == generation_ && entries_.Settle(receipt.at, receipt.cost, actual);
    }

   private:
    Generation generation_;
  };

 private:
  Policy policy_;
  std::vector<MergeZone> zones_;
};

}  // namespace rollgate
