// Two counts that stand for a sliding window: this aligned window's, and the share of the one
// before that is still inside.
//
// Source: the sliding-window counter of the Deno KV article and of Cloudflare. Of a window that
// began e ago, `current + previous * (interval - e) / interval` is used, rounded down; blocked when
// that leaves no room, counted before adding. It takes the actions of the window before as spread
// evenly, so it is exact only where they were.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/aligned_counts.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/time.h"
#include "core/wide_multiply.h"

namespace rollgate {

/// The algorithm under one policy; `P` is a Policy or a SingleWindowPolicy.
template <class P>
class SlidingWindowCounter : public AlignedRules<P> {
 public:
  explicit SlidingWindowCounter(const Policy& policy)
      : AlignedRules<P>(policy),
        retention_(std::max(2 * policy.longest_interval(), policy.min_difference())) {}

  /// What an id takes besides its generation and its moment, which is its newest recorded action.
  std::size_t state_bytes() const { return this->windows().size() * 2 * this->counts().bytes(); }

  /// How long after its moment an id has expired; moments and time as the table counts them.
  Micros retention() const { return retention_; }
  /// How long after a write what was written can matter.
  Micros lifetime() const { return retention(); }

  /// One id: for each window the count of the one before the newest action's, then of that one.
  class Account : public AlignedAccount<SlidingWindowCounter, Account> {
    using Base = AlignedAccount<SlidingWindowCounter, Account>;
    using Base::generation_;
    using Base::newest_;
    using Base::rules_;
    using Base::state_;

   public:
    using Base::Base;

    std::uint64_t Used(std::size_t i, Micros at) const {
      const auto [previous, current, left] = CountsAt(i, at);
      const auto interval = static_cast<std::uint64_t>(rules_.windows()[i].interval());
      const std::uint64_t share = WideDivide(WideMultiply(previous, left), interval);
      return std::min(current + share, rules_.policy().windows()[i].max);
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      return Reaches(CountsAt(i, at), n, rules_.windows()[i].interval());
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const AlignedWindow& window = rules_.windows()[i];
      const Micros start = window.StartOf(newest_);
      return BelowAt({Load(i, 0), Load(i, 1), 0}, n, start, window.interval());
    }

    /// Judges and records an attempt of cost 1 under a single window and nothing else; returns the
    /// time left.
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

    void Record(const Verdict& verdict, std::uint64_t cost) {
      const Micros at = verdict.at;
      for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
        const auto [previous, current, left] = CountsAt(i, at);
        rules_.counts().Store(state_, 2 * i, previous);
        rules_.counts().Store(state_, 2 * i + 1, rules_.counts().Add(current, cost));
      }
      newest_ = at;
    }

    /// Gives back what an attempt recorded; tells whether that still mattered anywhere.
    bool Refund(const Receipt& receipt, Micros) {
      const auto [at, cost, token] = receipt;
      bool found = false;
      if (token != generation_) return found;
      for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
        const AlignedWindow& window = rules_.windows()[i];
        if (newest_ < at) continue;
        const Micros later = newest_ - window.StartOf(at);
        if (later >= 2 * window.interval()) continue;
        const std::size_t place = later < window.interval() ? 1 : 0;
        const std::uint64_t count = Load(i, place);
        if (count == 0) continue;
        rules_.counts().Store(state_, 2 * i + place, count - std::min(count, cost));
        found = true;
      }
      return found;
    }

   private:
    struct Counts {
      std::uint64_t previous;
      std::uint64_t current;
      std::uint64_t left;  ///< of the window, until it ends; the whole interval at its beginning
    };

    std::uint64_t Load(std::size_t i, std::size_t place) const {
      return rules_.counts().Load(state_, 2 * i + place);
    }

    /// The counts around a moment that is no earlier than the newest action.
    Counts CountsAt(std::size_t i, Micros at) const {
      const AlignedWindow& window = rules_.windows()[i];
      const Micros start = window.StartOf(at);
      const auto left = static_cast<std::uint64_t>(start + window.interval() - at);
      if (newest_ >= start) return {Load(i, 0), Load(i, 1), left};
      if (newest_ >= start - window.interval()) return {Load(i, 1), 0, left};
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

    /// `start` is when the current window begins.
    static Micros BelowAt(const Counts& counts, std::uint64_t n, Micros start, Micros interval) {
      const auto [previous, current, left] = counts;
      // In the next window the current count is the previous one.
      if (current >= n) return start + 2 * interval - MostLeft(current, n, interval);
      if (previous < n - current) return kLongAgo;
      // In this one, as long as there is some of it left then.
      return start + interval - MostLeft(previous, n - current, interval);
    }

    /// The most that may be left of a window in which `previous` counts for less than `n`, where
    /// previous >= n >= 1: less than the whole interval, and 0 if that is not so before it ends.
    static Micros MostLeft(std::uint64_t previous, std::uint64_t n, Micros interval) {
      WideProduct bound = WideMultiply(n, static_cast<std::uint64_t>(interval));
      if (bound.low == 0) --bound.high;
      --bound.low;
      return static_cast<Micros>(WideDivide(bound, previous));
    }
  };

 private:
  Micros retention_;
};

}  // namespace rollgate
