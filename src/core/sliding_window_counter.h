// Two counts that stand for a sliding window: this aligned window's, and the share of the one
// before that is still inside.
//
// Source: the sliding-window counter of the Deno KV article and of Cloudflare. Of a window that
// began e ago, `current + previous * (interval - e) / interval` is used, rounded down; blocked when
// that leaves no room, counted before adding. It takes the actions of the window before as spread
// evenly, so it is exact only where they were.
#pragma once

#include <algorithm>
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

  /// What an id takes besides its life and its moment, which is its newest recorded action.
  std::size_t state_bytes() const { return this->windows().size() * 2 * this->counts().bytes(); }

  /// How long after its moment an id has expired; moments and time as the table counts them.
  Micros retention() const { return retention_; }
  /// How long after a write what was written can matter.
  Micros lifetime() const { return retention(); }

  /// One id: for each window the count of the one before the newest action's, then of that one.
  class Account : public AlignedAccount<SlidingWindowCounter, Account> {
    using Base = AlignedAccount<SlidingWindowCounter, Account>;
    using Base::life_;
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
      const auto [previous, current, left] = CountsAt(i, at);
      if (current >= n) return true;
      const std::uint64_t missing = n - current;
      if (previous < missing) return false;
      const auto interval = static_cast<std::uint64_t>(rules_.windows()[i].interval());
      return WideMultiply(previous, left) >= WideMultiply(missing, interval);
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const std::uint64_t previous = Load(i, 0);
      const std::uint64_t current = Load(i, 1);
      const AlignedWindow& window = rules_.windows()[i];
      if (current < n) {
        if (previous < n - current) return kLongAgo;
        // The newest action's window: as long as there is some of it left then.
        const Micros left = MostLeft(previous, n - current, window.interval());
        if (left > 0) return window.StartOf(newest_) + window.interval() - left;
        return window.StartOf(newest_) + window.interval();
      }
      // The next one, where the current count is the previous one.
      return window.StartOf(newest_) + 2 * window.interval() -
             MostLeft(current, n, window.interval());
    }

    void Record(Micros at, std::uint64_t cost) {
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
      if (token != life_) return found;
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

    /// The most that may be left of a window in which `previous` counts for less than `n`, where
    /// previous >= n >= 1: less than the whole interval, and 0 if that is never so within it.
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
