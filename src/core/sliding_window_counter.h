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
#include <type_traits>

#include "core/aligned_window.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/time.h"
#include "core/wide_multiply.h"

namespace rollgate {

/// The algorithm under one policy; `P` is a Policy or a SingleWindowPolicy.
template <class P>
class SlidingWindowCounter {
 public:
  static constexpr bool kAlignsToEpoch = true;
  static constexpr bool kRefundsAskTime = false;

  /// Whether the form for a single window will do.
  static bool FitsSingleWindow(const Policy&) { return true; }

  explicit SlidingWindowCounter(const Policy& policy)
      : policy_(policy),
        windows_(ForEachWindow<AlignedWindow>(policy_)),
        counts_(policy_),
        retention_(std::max(2 * policy.longest_interval(), policy.min_difference())) {}

  const P& policy() const { return policy_; }

  /// See Policy::SetMax.
  void SetMax(std::uint64_t max) {
    if constexpr (std::is_same_v<P, Policy>) policy_.SetMax(max, true);
  }

  /// What an id takes besides its life and its moment, which is its newest recorded action.
  std::size_t state_bytes() const { return windows_.size() * 2 * counts_.bytes(); }

  /// How long after its moment an id has expired; moments and time as the table counts them.
  Micros retention() const { return retention_; }
  /// How long after a write what was written can matter.
  Micros lifetime() const { return retention(); }
  static Micros Cut(Micros now) { return now; }
  static Micros TableTime(Micros now) { return now; }
  static Micros FromTableTime(Micros moment) { return moment; }

  /// One id: for each window the count of the one before the newest action's, then of that one.
  class Account {
   public:
    Account(const SlidingWindowCounter& rules, std::byte* state, Micros newest, std::uint32_t life)
        : rules_(rules), state_(state), newest_(newest), life_(life) {}

    /// An id that has done nothing; `state` is set.
    static Account Begin(const SlidingWindowCounter& rules, std::byte* state, std::uint32_t life) {
      std::fill_n(state, rules.state_bytes(), std::byte{0});
      return {rules, state, kLongAgo, life};
    }

    /// Whether this can be a state at all, where it comes from somebody else.
    bool IsSound() const {
      return newest_ == kLongAgo || (newest_ >= -kLongest && newest_ <= kLongest);
    }

    Micros moment() const { return newest_; }
    std::uint32_t life() const { return life_; }
    std::uint64_t Token() const { return life_; }
    Micros Newest() const { return newest_; }
    Micros At(Micros now) const { return std::max(now, newest_); }

    std::uint64_t Used(std::size_t i, Micros at) const {
      const auto [previous, current, left] = CountsAt(i, at);
      const auto interval = static_cast<std::uint64_t>(rules_.windows_[i].interval());
      const std::uint64_t share = WideDivide(WideMultiply(previous, left), interval);
      return std::min(current + share, rules_.policy_.windows()[i].max);
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      const auto [previous, current, left] = CountsAt(i, at);
      if (current >= n) return true;
      const std::uint64_t missing = n - current;
      if (previous < missing) return false;
      const auto interval = static_cast<std::uint64_t>(rules_.windows_[i].interval());
      return WideMultiply(previous, left) >= WideMultiply(missing, interval);
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const std::uint64_t previous = Load(i, 0);
      const std::uint64_t current = Load(i, 1);
      const AlignedWindow& window = rules_.windows_[i];
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
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const auto [previous, current, left] = CountsAt(i, at);
        rules_.counts_.Store(state_, 2 * i, previous);
        rules_.counts_.Store(state_, 2 * i + 1, rules_.counts_.Add(current, cost));
      }
      newest_ = at;
    }

    /// Gives back what an attempt recorded; tells whether that still mattered anywhere.
    bool Refund(const Receipt& receipt, Micros) {
      const auto [at, cost, token] = receipt;
      bool found = false;
      if (token != life_) return found;
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const AlignedWindow& window = rules_.windows_[i];
        if (newest_ < at) continue;
        const Micros later = newest_ - window.StartOf(at);
        if (later >= 2 * window.interval()) continue;
        const std::size_t place = later < window.interval() ? 1 : 0;
        const std::uint64_t count = Load(i, place);
        if (count == 0) continue;
        rules_.counts_.Store(state_, 2 * i + place, count - std::min(count, cost));
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
      return rules_.counts_.Load(state_, 2 * i + place);
    }

    /// The counts around a moment that is no earlier than the newest action.
    Counts CountsAt(std::size_t i, Micros at) const {
      const AlignedWindow& window = rules_.windows_[i];
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

    const SlidingWindowCounter& rules_;
    std::byte* state_;
    Micros newest_;
    std::uint32_t life_;
  };

 private:
  P policy_;
  PerWindow<P, AlignedWindow> windows_;
  CountFormat counts_;
  Micros retention_;
};

}  // namespace rollgate
