// The common part of the algorithms that count in aligned windows.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/aligned_window.h"
#include "core/costs.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/time.h"

namespace rollgate {

/// Keeps `kCountsPerWindow` counts for each window. An id's moment is its newest recorded action.
template <class P, std::size_t kCountsPerWindow>
class AlignedRules {
 public:
  static constexpr bool kAlignsToEpoch = true;
  static constexpr bool kSettlesAskTime = false;
  static constexpr std::size_t kCounts = kCountsPerWindow;

  explicit AlignedRules(const Policy& policy)
      : policy_(policy), windows_(ForEachWindow<AlignedWindow>(policy_)), counts_(policy_) {}

  const P& policy() const { return policy_; }
  const PerWindow<P, AlignedWindow>& windows() const { return windows_; }
  const CountFormat& counts() const { return counts_; }

  std::size_t state_bytes() const { return windows_.size() * kCountsPerWindow * counts_.bytes(); }
  Micros retention() const {
    return std::max(Micros{kCountsPerWindow} * policy_.longest_interval(),
                    policy_.min_difference());
  }
  Micros lifetime() const { return retention(); }

  void SetMax(std::uint64_t max, bool) {
    if constexpr (std::is_same_v<P, Policy>) policy_.SetMax(max, true);
  }

  static Micros Cut(Micros now) { return now; }
  static Micros TableTime(Micros now) { return now; }
  static Micros FromTableTime(Micros moment) { return moment; }
  static Micros FirstMoment(Micros at, const Costs&) { return at; }

 private:
  P policy_;
  PerWindow<P, AlignedWindow> windows_;
  CountFormat counts_;
};

/// The account of one id: `Account` derives from this. For each window, `state` has the counts of
/// consecutive aligned windows, last the one that contains the newest action.
template <class Rules, class Account>
class AlignedAccount {
 public:
  AlignedAccount(const Rules& rules, std::byte* state, Micros newest, Generation generation)
      : rules_(rules), state_(state), newest_(newest), generation_(generation) {
    assert(state != nullptr);
  }

  static Account Begin(const Rules& rules, std::byte* state, Generation generation) {
    std::fill_n(state, rules.state_bytes(), std::byte{0});
    return Account(rules, state, kLongAgo, generation);
  }

  bool IsSound() const {
    return newest_ == kLongAgo || (newest_ >= -kLongest && newest_ <= kLongest);
  }

  Micros moment() const { return newest_; }
  static bool IsEmpty() { return false; }
  Generation generation() const { return generation_; }
  std::uint64_t Token() const { return generation_; }
  Micros Newest() const { return newest_; }
  Micros At(Micros now) const { return std::max(now, newest_); }

  Account& After(const Verdict& verdict, const Costs& costs) {
    auto& account = static_cast<Account&>(*this);
    if (costs.IsAny()) account.Record(verdict, costs);
    return account;
  }

  void CopyTo(Snapshot& snapshot, Micros) const {
    snapshot.newest = newest_;
    for (std::size_t i = 0; i < rules_.windows().size() * Rules::kCounts; ++i) {
      snapshot.numbers.push_back(Load(i));
    }
  }
  template <class RecordOne>
  void TakeOver(const Snapshot& snapshot, Micros, RecordOne) {
    newest_ = snapshot.newest;
    for (std::size_t i = 0; i < snapshot.numbers.size(); ++i) {
      rules_.counts().Store(state_, i, rules_.counts().Add(0, snapshot.numbers[i]));
    }
  }

  bool Settle(const Receipt& receipt, const Costs& actual, Micros) {
    if (receipt.token != generation_ || receipt.at > newest_) return false;
    bool found = false;
    for (std::size_t i = 0; i < rules_.windows().size(); ++i) {
      const AlignedWindow& window = rules_.windows()[i];
      const Micros later = (newest_ - window.StartOf(receipt.at)) / window.interval();
      if (later >= Micros{Rules::kCounts}) continue;
      const std::size_t place = (i + 1) * Rules::kCounts - 1 - static_cast<std::size_t>(later);
      const std::uint64_t count = Load(place);
      if (count == 0 && receipt.cost[i] > 0) continue;
      const std::uint64_t others = count - std::min(count, receipt.cost[i]);
      rules_.counts().Store(state_, place, rules_.counts().Add(others, actual[i]));
      found = true;
    }
    return found;
  }

 protected:
  std::uint64_t Load(std::size_t place) const { return rules_.counts().Load(state_, place); }

  const Rules& rules_;
  std::byte* state_;
  Micros newest_;
  Generation generation_;
};

}  // namespace rollgate
