// The common part of the algorithms that count in aligned windows.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/time.h"

namespace rollgate {

/// Finds windows. Remembers the last one: a division costs more than the rest of a check.
class AlignedWindow {
 public:
  explicit AlignedWindow(const Window& window) : interval_(window.interval) {
    assert(interval_ > 0);
  }

  Micros interval() const { return interval_; }

  /// The beginning of the window of `moment`, which is in [kLongAgo, kLongest].
  Micros StartOf(Micros moment) const {
    assert(moment >= kLongAgo && moment <= kLongest);
    if (moment < start_ || moment - start_ >= interval_) [[unlikely]] {
      const Micros into = moment % interval_;
      start_ = moment - (into < 0 ? into + interval_ : into);
    }
    assert(start_ <= moment && moment - start_ < interval_);
    return start_;
  }

 private:
  Micros interval_;
  mutable Micros start_ = 0;
};

/// Counts as bytes: three per count if that is enough for each limit, else seven. A count
/// saturates at most(), which only refusals and overdrafts can reach.
class CountFormat {
 public:
  template <class P>
  explicit CountFormat(const P& policy) {
    is_wide_ = policy.weighted() || policy.largest_limit() >= kMostNarrow;
  }

  bool is_wide() const { return is_wide_; }
  static constexpr std::uint64_t kMostNarrow = (std::uint64_t{1} << 24) - 1;
  static constexpr std::size_t kNarrow = 3;
  static constexpr std::size_t kWide = 7;
  std::size_t bytes() const { return is_wide_ ? kWide : kNarrow; }
  std::uint64_t most() const { return is_wide_ ? kMostWide : kMostNarrow; }

  std::uint64_t Load(const std::byte* counts, std::size_t place) const {
    const std::byte* const from = counts + place * bytes();
    if (!is_wide_) [[likely]] {
      return Get<std::uint16_t>(from) | Get<std::uint8_t>(from + 2) << 16;
    }
    return Get<std::uint32_t>(from) | Get<std::uint16_t>(from + 4) << 32 |
           Get<std::uint8_t>(from + 6) << 48;
  }

  void Store(std::byte* counts, std::size_t place, std::uint64_t count) const {
    assert(count >> (8 * bytes()) == 0);
    std::byte* const to = counts + place * bytes();
    if (!is_wide_) [[likely]] {
      Put<std::uint16_t>(to, count);
      Put<std::uint8_t>(to + 2, count >> 16);
    } else {
      Put<std::uint32_t>(to, count);
      Put<std::uint16_t>(to + 4, count >> 32);
      Put<std::uint8_t>(to + 6, count >> 48);
    }
  }

  std::uint64_t Add(std::uint64_t count, std::uint64_t cost) const {
    return std::min(count + cost, most());
  }

 private:
  static constexpr std::uint64_t kMostWide = (std::uint64_t{1} << 53) - 1;

  // Part by part: loading a word from three copied bytes would stall on store forwarding.
  template <class T>
  static std::uint64_t Get(const std::byte* from) {
    return LoadAs<T>(from);
  }
  template <class T>
  static void Put(std::byte* to, std::uint64_t bits) {
    StoreAs(to, static_cast<T>(bits));
  }

  bool is_wide_ = false;
};

/// Keeps `kCountsPerWindow` counts for each window. An id's moment is its newest recorded action.
template <class P, std::size_t kCountsPerWindow>
class AlignedRules : public PlainTimes {
 public:
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

  void UseLimits(std::span<const std::uint64_t> limits) { policy_.UseLimits(limits); }

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
