// Aligned windows, each with a count of its own that starts at 0.
//
// Source: the fixed window of Redis articles (INCR and EXPIRE). Blocks when the count of the
// current window leaves no room. Up to twice the max can pass within one interval, across an edge.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/aligned_counts.h"

namespace rollgate {

template <class P>
class FixedWindow : public AlignedRules<P, 1> {
 public:
  using AlignedRules<P, 1>::AlignedRules;

  /// For each window, the count of the one that contains the newest action.
  class Account : public AlignedAccount<FixedWindow, Account> {
    using Base = AlignedAccount<FixedWindow, Account>;
    using Base::newest_;
    using Base::rules_;
    using Base::state_;

   public:
    using Base::Base;

    std::uint64_t Used(std::size_t i, Micros at) const { return Count(i, at); }
    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const { return Count(i, at) >= n; }
    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      if (this->Load(i) < n) return kLongAgo;
      const AlignedWindow& window = rules_.windows()[i];
      return window.StartOf(newest_) + window.interval();
    }

    void Record(const Verdict& verdict, const Costs& costs) {
      const Micros at = verdict.at;
      assert(costs.IsAny() && at >= newest_);
      for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
        rules_.counts().Store(state_, i, rules_.counts().Add(Count(i, at), costs[i]));
      }
      newest_ = at;
    }

   private:
    std::uint64_t Count(std::size_t i, Micros at) const {
      assert(at >= newest_);
      return newest_ >= rules_.windows()[i].StartOf(at) ? this->Load(i) : 0;
    }
  };
};

}  // namespace rollgate
