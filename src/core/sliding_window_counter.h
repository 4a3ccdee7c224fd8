// Approximates a sliding window by two counts: the current aligned window's, and the share of the
// previous one's that is still inside.
//
// Source: the sliding-window counter of Cloudflare and of the Deno KV article. In a window that
// began e ago, `current + previous * (interval - e) / interval` is used, rounded down. Exact only
// if the actions of the previous window were spread evenly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/aligned_counts.h"
#include "core/wide_multiply.h"

namespace rollgate {

template <class P>
class SlidingWindowCounter : public AlignedRules<P, 2> {
 public:
  using AlignedRules<P, 2>::AlignedRules;

  /// For each window, the count of the one before the newest action's, then the count of that one.
  class Account : public AlignedAccount<SlidingWindowCounter, Account> {
    using Base = AlignedAccount<SlidingWindowCounter, Account>;
    using Base::newest_;
    using Base::rules_;
    using Base::state_;

   public:
    using Base::Base;

    std::uint64_t Used(std::size_t i, Micros at) const {
      const auto [previous, current, left] = CountsAt(i, at);
      const auto interval = static_cast<std::uint64_t>(rules_.windows()[i].interval());
      const std::uint64_t share = WideDivide(WideMultiply(previous, left), interval);
      return current + share;
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      return Reaches(CountsAt(i, at), n, rules_.windows()[i].interval());
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const AlignedWindow& window = rules_.windows()[i];
      const Micros start = window.StartOf(newest_);
      return BelowAt({this->Load(2 * i), this->Load(2 * i + 1), 0}, n, start, window.interval());
    }

    static constexpr bool CanAttemptOne() { return true; }

    template <class Reserve>
    Micros AttemptOne(Micros now, Reserve) requires std::same_as<P, SingleWindowPolicy> {
      const Micros at = this->At(now);
      const Micros interval = rules_.windows()[0].interval();
      const std::uint64_t max = rules_.policy().windows()[0].max;
      Counts counts = CountsAt(0, at);
      const bool is_refused = Reaches(counts, max, interval);
      if (!is_refused || rules_.policy().count_blocked()) {
        counts.current = rules_.counts().Add(counts.current, 1);
        rules_.counts().Store(state_, 0, counts.previous);
        rules_.counts().Store(state_, 1, counts.current);
        newest_ = at;
      }
      if (!is_refused) return 0;
      return BelowAt(counts, max, rules_.windows()[0].StartOf(at), interval) - now;
    }

    void Record(const Verdict& verdict, const Costs& costs) {
      const Micros at = verdict.at;
      assert(costs.IsAny());
      for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
        const auto [previous, current, left] = CountsAt(i, at);
        rules_.counts().Store(state_, 2 * i, previous);
        rules_.counts().Store(state_, 2 * i + 1, rules_.counts().Add(current, costs[i]));
      }
      newest_ = at;
    }

   private:
    struct Counts {
      std::uint64_t previous;
      std::uint64_t current;
      std::uint64_t left;  ///< of the current window; the whole interval at its beginning
    };

    Counts CountsAt(std::size_t i, Micros at) const {
      assert(at >= newest_);
      const AlignedWindow& window = rules_.windows()[i];
      const Micros start = window.StartOf(at);
      const auto left = static_cast<std::uint64_t>(start + window.interval() - at);
      if (newest_ >= start) return {this->Load(2 * i), this->Load(2 * i + 1), left};
      if (newest_ >= start - window.interval()) return {this->Load(2 * i + 1), 0, left};
      return {0, 0, left};
    }

    static bool Reaches(const Counts& counts, std::uint64_t n, Micros interval) {
      const auto [previous, current, left] = counts;
      if (current >= n) return true;
      const std::uint64_t missing = n - current;
      if (previous < missing) return false;
      return WideMultiply(previous, left) >=
             WideMultiply(missing, static_cast<std::uint64_t>(interval));
    }

    static Micros BelowAt(const Counts& counts, std::uint64_t n, Micros start, Micros interval) {
      const auto [previous, current, left] = counts;
      // In the next window, where the current count is the previous one.
      if (current >= n) return start + 2 * interval - MostLeft(current, n, interval);
      if (previous < n - current) return kLongAgo;
      // In this window, when so much of it is left.
      return start + interval - MostLeft(previous, n - current, interval);
    }

    /// The longest rest of a window in which `previous` >= n >= 1 counts for less than n, or 0.
    static Micros MostLeft(std::uint64_t previous, std::uint64_t n, Micros interval) {
      assert(n >= 1 && previous >= n);
      WideProduct bound = WideMultiply(n, static_cast<std::uint64_t>(interval));
      if (bound.low == 0) --bound.high;
      --bound.low;
      return static_cast<Micros>(WideDivide(bound, previous));
    }
  };
};

}  // namespace rollgate
