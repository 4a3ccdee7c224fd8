// Fixed windows of which some follow the calendar: each lasts until its boundary, and its count
// starts at 0.
//
// An id's window is known by its ordinal, and has the boundary that was its end when it began. So
// hosts whose zone data differ move a boundary and lose no count, and the calendar of a call cannot
// change a window that lasts.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/aligned_counts.h"
#include "core/bytes.h"
#include "core/decision.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/time.h"

namespace rollgate {

/// The boundaries of one window of a policy. Remembers the last ones.
class Boundaries {
 public:
  explicit Boundaries(const Window& window) : aligned_(window), is_calendar_(window.is_calendar) {}

  /// The window that contains `at`. `index` is its place in the policy.
  Calendars::Span Around(Micros at, std::size_t index, Calendars& calendars) const {
    if (!is_calendar_) {
      const Micros start = aligned_.StartOf(at);
      return {0, start, start + aligned_.interval()};
    }
    if (calendars.are_of_call) return calendars.Find(index, at);
    if (at < last_.start || at >= last_.end) last_ = calendars.Find(index, at);
    return last_;
  }

  /// Whether the window `next` goes on with that of an id: a calendar window of the same ordinal is
  /// the same, because another host knew another boundary.
  bool GoesOn(const Calendars::Span& next, std::int64_t ordinal, Micros end) const {
    return is_calendar_ && next.ordinal == ordinal && next.start < end;
  }

  /// When the window of an id is over if nothing is recorded before.
  Micros LastEnd(std::int64_t ordinal, Micros end, std::size_t index, Calendars& calendars) const {
    if (!is_calendar_ || (!calendars.are_of_call && end == last_.end)) [[likely]]
      return end;
    const Calendars::Span next = Around(end, index, calendars);
    // Spans are cut to the longest time.
    return GoesOn(next, ordinal, end) ? std::max(next.end, end) : end;
  }

 private:
  AlignedWindow aligned_;
  bool is_calendar_;
  mutable Calendars::Span last_ = {};
};

template <class P>
class CalendarWindow : public PlainTimes {
  /// What is kept of each window.
  struct State {
    Micros begun_at = 0;  ///< its first action
    Micros end = kLongAgo;
    std::int64_t ordinal = std::numeric_limits<std::int64_t>::min();
    std::uint64_t count = 0;
  };
  static_assert(sizeof(State) == 32, "the format of key-value states");

  static constexpr std::uint64_t kMostCount = (std::uint64_t{1} << 53) - 1;

 public:
  explicit CalendarWindow(const Policy& policy)
      : policy_(policy), boundaries_(ForEachWindow<Boundaries>(policy_)), scratch_(state_bytes()) {}

  const P& policy() const { return policy_; }
  void UseLimits(std::span<const std::uint64_t> limits) { policy_.UseLimits(limits); }

  std::size_t state_bytes() const { return boundaries_.size() * sizeof(State); }
  Micros retention() const {
    return std::max(policy_.longest_interval(), policy_.min_difference());
  }
  Micros lifetime() const { return retention(); }

  /// An id's moment is its newest action. `state` has a State for each window.
  class Account {
   public:
    Account(const CalendarWindow& rules, std::byte* state, Micros newest, Generation generation)
        : rules_(rules), state_(state), newest_(newest), generation_(generation) {
      assert(state != nullptr);
    }

    static Account Begin(const CalendarWindow& rules, std::byte* state, Generation generation) {
      Account account(rules, state, kLongAgo, generation);
      for (std::size_t i = 0; i < account.size(); ++i) account.Store(i, State());
      return account;
    }

    bool IsSound() const {
      for (std::size_t i = 0; i < size(); ++i) {
        const State window = Load(i);
        if (window.count > kMostCount || window.end > kLongest + 1 || window.end < kLongAgo)
          return false;
      }
      return newest_ == kLongAgo || (newest_ >= -kLongest && newest_ <= kLongest);
    }

    /// Where its state is: in the rules after a Prepare that changed it.
    const std::byte* state() const { return state_; }

    Micros moment() const { return newest_; }
    static bool IsEmpty() { return false; }
    Generation generation() const { return generation_; }
    std::uint64_t Token() const { return generation_; }
    Micros Newest() const { return newest_; }
    Micros At(Micros now) const { return std::max(now, newest_); }

    /// Ends the windows that are over by `now`. The state changes once it is saved.
    void Prepare(Micros now) {
      const Micros at = At(now);
      for (std::size_t i = 0; i < size(); ++i) {
        if (at >= EndOf(i)) [[unlikely]] {
          MoveToScratch();
          MoveTo(i, at);
        }
      }
    }

    std::uint64_t Used(std::size_t i, Micros) const { return CountOf(i); }
    bool Reaches(std::size_t i, std::uint64_t n, Micros) const { return CountOf(i) >= n; }
    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const State window = Load(i);
      if (window.count < n) return kLongAgo;
      const Boundaries& boundaries = rules_.boundaries_[i];
      return boundaries.LastEnd(window.ordinal, window.end, i, rules_.policy_.calendars());
    }

    void Record(const Verdict& verdict, const Costs& costs) {
      assert(costs.IsAny() && verdict.at >= newest_);
      for (std::size_t i = 0; i < size(); ++i) {
        if (verdict.at >= EndOf(i)) [[unlikely]] {
          MoveTo(i, verdict.at);
        }
        StoreAs(state_ + i * sizeof(State) + offsetof(State, count), Add(CountOf(i), costs[i]));
      }
      newest_ = verdict.at;
    }

    Account& After(const Verdict& verdict, const Costs& costs) {
      if (costs.IsAny()) Record(verdict, costs);
      return *this;
    }

    bool Settle(const Receipt& receipt, const Costs& actual, Micros) {
      if (receipt.token != generation_ || receipt.at > newest_) return false;
      bool found = false;
      for (std::size_t i = 0; i < size(); ++i) {
        State window = Load(i);
        const std::uint64_t cost = receipt.cost[i];
        if (receipt.at < window.begun_at || (window.count == 0 && cost > 0)) continue;
        window.count = Add(window.count - std::min(window.count, cost), actual[i]);
        Store(i, window);
        found = true;
      }
      return found;
    }

    /// The numbers: begun_at, end, ordinal and count of each window.
    void CopyTo(Snapshot& snapshot, Micros) const {
      snapshot.newest = newest_;
      snapshot.numbers.resize(rules_.state_bytes() / sizeof(std::uint64_t));
      std::copy_n(state_, rules_.state_bytes(),
                  std::as_writable_bytes(std::span(snapshot.numbers)).begin());
    }
    template <class RecordOne>
    void TakeOver(const Snapshot& snapshot, Micros, RecordOne) {
      newest_ = snapshot.newest;
      std::copy_n(std::as_bytes(std::span(snapshot.numbers)).begin(), rules_.state_bytes(), state_);
    }

   private:
    /// The window that contains `at`, which is not before the end of this one.
    ROLLGATE_COLD void MoveTo(std::size_t i, Micros at) const {
      const Boundaries& boundaries = rules_.boundaries_[i];
      const Calendars::Span next = boundaries.Around(at, i, rules_.policy_.calendars());
      State window = Load(i);
      const bool lasts = boundaries.GoesOn(next, window.ordinal, window.end);
      if (!lasts) window = {.begun_at = at, .end = 0, .ordinal = next.ordinal, .count = 0};
      window.end = std::clamp(next.end, at + 1, kLongest + 1);
      Store(i, window);
    }

    ROLLGATE_COLD void MoveToScratch() {
      if (state_ == rules_.scratch_.data()) return;
      std::copy_n(state_, rules_.state_bytes(), rules_.scratch_.data());
      state_ = rules_.scratch_.data();
    }

    std::size_t size() const { return rules_.boundaries_.size(); }
    Micros EndOf(std::size_t i) const {
      return LoadAs<Micros>(state_ + i * sizeof(State) + offsetof(State, end));
    }
    std::uint64_t CountOf(std::size_t i) const {
      return LoadAs<std::uint64_t>(state_ + i * sizeof(State) + offsetof(State, count));
    }
    State Load(std::size_t i) const { return LoadAs<State>(state_ + i * sizeof(State)); }
    void Store(std::size_t i, const State& window) const {
      StoreAs(state_ + i * sizeof(State), window);
    }
    static std::uint64_t Add(std::uint64_t count, std::uint64_t cost) {
      return std::min(count + cost, kMostCount);
    }

    const CalendarWindow& rules_;
    std::byte* state_;
    Micros newest_;
    Generation generation_;
  };

 private:
  P policy_;
  PerWindow<P, Boundaries> boundaries_;
  mutable std::vector<std::byte> scratch_;  // the state of the call, if Prepare changes it
};

}  // namespace rollgate
