// What the algorithms that count in aligned windows have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/aligned_window.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// The rules under one policy; `P` is a Policy or a SingleWindowPolicy. An id's moment is its
/// newest recorded action.
template <class P>
class AlignedRules {
 public:
  static constexpr bool kAlignsToEpoch = true;
  static constexpr bool kRefundsAskTime = false;

  /// Whether the form for a single window will do.
  static bool FitsSingleWindow(const Policy&) { return true; }

  explicit AlignedRules(const Policy& policy)
      : policy_(policy), windows_(ForEachWindow<AlignedWindow>(policy_)), counts_(policy_) {}

  const P& policy() const { return policy_; }
  const PerWindow<P, AlignedWindow>& windows() const { return windows_; }
  const CountFormat& counts() const { return counts_; }

  /// See Policy::SetMax.
  void SetMax(std::uint64_t max, bool) {
    if constexpr (std::is_same_v<P, Policy>) policy_.SetMax(max, true);
  }

  /// Moments and time as the table counts them.
  static Micros Cut(Micros now) { return now; }
  static Micros TableTime(Micros now) { return now; }
  static Micros FromTableTime(Micros moment) { return moment; }
  /// The moment of an id after its first attempt.
  static Micros FirstMoment(Micros at, std::uint64_t) { return at; }

 private:
  P policy_;
  PerWindow<P, AlignedWindow> windows_;
  CountFormat counts_;
};

/// One id under such rules: `Account` derives from this, and keeps counts in its state.
template <class Rules, class Account>
class AlignedAccount {
 public:
  AlignedAccount(const Rules& rules, std::byte* state, Micros newest, Generation generation)
      : rules_(rules), state_(state), newest_(newest), generation_(generation) {}

  /// An id that has done nothing; `state` is set.
  static Account Begin(const Rules& rules, std::byte* state, Generation generation) {
    std::fill_n(state, rules.state_bytes(), std::byte{0});
    return Account(rules, state, kLongAgo, generation);
  }

  /// Whether this can be a state at all, where it comes from somebody else.
  bool IsSound() const {
    return newest_ == kLongAgo || (newest_ >= -kLongest && newest_ <= kLongest);
  }

  Micros moment() const { return newest_; }
  static bool IsEmpty() { return false; }
  Generation generation() const { return generation_; }
  std::uint64_t Token() const { return generation_; }
  Micros Newest() const { return newest_; }
  Micros At(Micros now) const { return std::max(now, newest_); }

  /// This account once so much is recorded.
  Account& After(const Verdict& verdict, std::uint64_t cost) {
    auto& account = static_cast<Account&>(*this);
    if (cost > 0) account.Record(verdict, cost);
    return account;
  }

 protected:
  const Rules& rules_;
  std::byte* state_;
  Micros newest_;
  Generation generation_;
};

}  // namespace rollgate
