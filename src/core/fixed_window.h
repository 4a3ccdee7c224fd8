// Windows that begin at the clock's origin, each with a count of its own that begins at nothing.
//
// Source: the fixed window as Redis articles have it (INCR and EXPIRE). Blocked when the count of
// this window leaves no room. Up to twice the max can pass within one interval, across the edge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/aligned_counts.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// The algorithm under one policy; `P` is a Policy or a SingleWindowPolicy.
template <class P>
class FixedWindow : public AlignedRules<P> {
 public:
  using AlignedRules<P>::AlignedRules;

  /// What an id takes besides its generation and its moment, which is its newest recorded action.
  std::size_t state_bytes() const { return this->windows().size() * this->counts().bytes(); }

  /// How long after its moment an id has expired; moments and time as the table counts them.
  Micros retention() const { return this->policy().retention(); }
  /// How long after a write what was written can matter.
  Micros lifetime() const { return retention(); }

  /// One id: a count for each window, of the window that its newest action lies in.
  class Account : public AlignedAccount<FixedWindow, Account> {
    using Base = AlignedAccount<FixedWindow, Account>;
    using Base::generation_;
    using Base::newest_;
    using Base::rules_;
    using Base::state_;

   public:
    using Base::Base;

    std::uint64_t Used(std::size_t i, Micros at) const {
      return std::min(Count(i, at), rules_.policy().windows()[i].max);
    }
    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const { return Count(i, at) >= n; }
    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      if (Load(i) < n) return kLongAgo;
      const AlignedWindow& window = rules_.windows()[i];
      return window.StartOf(newest_) + window.interval();
    }

    void Record(const Verdict& verdict, std::uint64_t cost) {
      const Micros at = verdict.at;
      for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
        rules_.counts().Store(state_, i, rules_.counts().Add(Count(i, at), cost));
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
        const std::uint64_t count = Load(i);
        if (count == 0 || newest_ < at || newest_ - window.StartOf(at) >= window.interval()) {
          continue;
        }
        rules_.counts().Store(state_, i, count - std::min(count, cost));
        found = true;
      }
      return found;
    }

   private:
    std::uint64_t Load(std::size_t i) const { return rules_.counts().Load(state_, i); }

    /// The count of the window of a moment that is no earlier than the newest action.
    std::uint64_t Count(std::size_t i, Micros at) const {
      return newest_ >= rules_.windows()[i].StartOf(at) ? Load(i) : 0;
    }
  };
};

}  // namespace rollgate
