// Windows that begin at the clock's origin, each with a count of its own that begins at nothing.
//
// Source: the fixed window as Redis articles have it (INCR and EXPIRE). Blocked when the count of
// this window leaves no room. Up to twice the max can pass within one interval, across the edge.
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

namespace rollgate {

/// The algorithm under one policy; `P` is a Policy or a SingleWindowPolicy.
template <class P>
class FixedWindow {
 public:
  static constexpr bool kAlignsToEpoch = true;
  static constexpr bool kRefundsAskTime = false;

  /// Whether the form for a single window will do.
  static bool FitsSingleWindow(const Policy&) { return true; }

  explicit FixedWindow(const Policy& policy)
      : policy_(policy), windows_(ForEachWindow<AlignedWindow>(policy_)), counts_(policy_) {}

  const P& policy() const { return policy_; }

  /// See Policy::SetMax.
  void SetMax(std::uint64_t max) {
    if constexpr (std::is_same_v<P, Policy>) policy_.SetMax(max, true);
  }

  /// What an id takes besides its life and its moment, which is its newest recorded action.
  std::size_t state_bytes() const { return windows_.size() * counts_.bytes(); }

  /// How long after its moment an id has expired; moments and time as the table counts them.
  Micros retention() const { return policy_.retention(); }
  /// How long after a write what was written can matter.
  Micros lifetime() const { return retention(); }
  static Micros Cut(Micros now) { return now; }
  static Micros TableTime(Micros now) { return now; }
  static Micros FromTableTime(Micros moment) { return moment; }

  /// One id: a count for each window, of the window that its newest action lies in.
  class Account {
   public:
    Account(const FixedWindow& rules, std::byte* state, Micros newest, std::uint32_t life)
        : rules_(rules), state_(state), newest_(newest), life_(life) {}

    /// An id that has done nothing; `state` is set.
    static Account Begin(const FixedWindow& rules, std::byte* state, std::uint32_t life) {
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
      return std::min(Count(i, at), rules_.policy_.windows()[i].max);
    }
    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const { return Count(i, at) >= n; }
    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      if (Load(i) < n) return kLongAgo;
      const AlignedWindow& window = rules_.windows_[i];
      return window.StartOf(newest_) + window.interval();
    }

    void Record(Micros at, std::uint64_t cost) {
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        rules_.counts_.Store(state_, i, rules_.counts_.Add(Count(i, at), cost));
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
        const std::uint64_t count = Load(i);
        if (count == 0 || newest_ < at || newest_ - window.StartOf(at) >= window.interval()) {
          continue;
        }
        rules_.counts_.Store(state_, i, count - std::min(count, cost));
        found = true;
      }
      return found;
    }

   private:
    std::uint64_t Load(std::size_t i) const { return rules_.counts_.Load(state_, i); }

    /// The count of the window of a moment that is no earlier than the newest action.
    std::uint64_t Count(std::size_t i, Micros at) const {
      return newest_ >= rules_.windows_[i].StartOf(at) ? Load(i) : 0;
    }

    const FixedWindow& rules_;
    std::byte* state_;
    Micros newest_;
    std::uint32_t life_;
  };

 private:
  P policy_;
  PerWindow<P, AlignedWindow> windows_;
  CountFormat counts_;
};

}  // namespace rollgate
