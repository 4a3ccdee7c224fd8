// The brute-force limiter that the real ones are compared with: keeps every recorded attempt and
// counts them again for each question. Shares no formula with the core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::testing {

/// A decision as it can be compared and printed.
struct Answer {
  int blocked_by = 0;  ///< bits: 1 count, 2 minDifference, 4 block
  Micros time_left = 0;
  Micros wait = 0;
  std::uint64_t actions_left = 0;
  Micros reset_in = 0;
  Micros at = 0;
  std::vector<std::pair<std::uint64_t, Micros>> windows = {};  ///< used, reset in

  bool allowed() const { return blocked_by == 0; }
  bool operator==(const Answer&) const = default;
};

inline Answer AnswerOf(const Decision& decision) {
  const Verdict& verdict = decision.verdict;
  Answer answer{.blocked_by = (verdict.blocked_by_count ? 1 : 0) |
                              (verdict.blocked_by_min_difference ? 2 : 0) |
                              (verdict.blocked_by_block ? 4 : 0),
                .time_left = decision.time_left,
                .wait = decision.wait,
                .actions_left = decision.actions_left,
                .reset_in = decision.reset_in,
                .at = verdict.at};
  for (const WindowUse& use : decision.windows) {
    answer.windows.emplace_back(use.used, use.reset_in);
  }
  return answer;
}

inline void PrintTo(const Answer& answer, std::ostream* out) {
  *out << "blocked by " << answer.blocked_by << ", time left " << answer.time_left << ", wait "
       << answer.wait << ", actions left " << answer.actions_left << ", reset in "
       << answer.reset_in << ", at " << answer.at << ", windows";
  for (const auto& [used, reset_in] : answer.windows) {
    *out << " (" << used << ", " << reset_in << ")";
  }
}

/// One id under a policy of any algorithm. Costs are a number, or one for each window.
class Oracle {
 public:
  using CostsOfWindows = std::vector<std::uint64_t>;

  explicit Oracle(PolicyOptions policy) : policy_(std::move(policy)) {}

  Answer Attempt(Micros now, std::uint64_t cost) { return Attempt(now, Each(cost)); }
  Answer Attempt(Micros now, const CostsOfWindows& costs) {
    const Answer answer = Peek(now, costs);
    Apply(answer, costs);
    return answer;
  }

  /// An attempt of which no more is asked.
  bool Allows(Micros now, std::uint64_t cost) {
    const Answer answer = Judged(now, Each(cost));
    Apply(answer, Each(cost));
    return answer.allowed();
  }

  Answer Peek(Micros now, std::uint64_t cost) const { return Peek(now, Each(cost)); }
  Answer Peek(Micros now, const CostsOfWindows& costs) const {
    Answer answer = Judged(now, costs);
    Oracle after = *this;
    after.Apply(answer, costs);
    const bool passes = CanPass(costs);
    if (!answer.allowed()) answer.time_left = passes ? after.Wait(now, costs) : kNever;
    answer.wait = after.Wait(now, Each(1));
    answer.actions_left = ~std::uint64_t{0};
    for (std::size_t w = 0; w < policy_.windows.size(); ++w) {
      const std::uint64_t max = policy_.windows[w].max;
      std::uint64_t used = after.Used(w, answer.at);
      // Logs of limits without names have no more refusals than their max.
      const bool is_log = policy_.algorithm == Algorithm::kSlidingWindowLog;
      if (policy_.count_blocked && is_log && !policy_.weighted) used = std::min(used, max);
      const std::uint64_t taken = std::min(used, max);
      const auto has_more_room = [&](Micros t) { return after.Used(w, t) < taken; };
      const Micros reset_in = used == 0 ? 0 : First(answer.at, has_more_room) - now;
      answer.windows.emplace_back(used, reset_in);
      const std::uint64_t left = max - taken;
      if (left < answer.actions_left) answer.reset_in = 0;
      if (left <= answer.actions_left) answer.reset_in = std::max(answer.reset_in, reset_in);
      answer.actions_left = std::min(answer.actions_left, left);
    }
    if (!answer.allowed() && passes) answer.reset_in = answer.time_left;
    return answer;
  }

  /// The number of the last attempt.
  std::size_t attempts() const { return attempts_; }

  /// Takes an attempt out of history; returns whether it still counted. Not for GCRA, which gives
  /// back only what has not leaked.
  bool Refund(std::size_t attempt) { return Settle(attempt, Each(0)); }

  /// Replaces what an attempt cost.
  bool Settle(std::size_t attempt, const CostsOfWindows& actual) {
    const auto found = std::find_if(recorded_.begin(), recorded_.end(),
                                    [&](const Recorded& r) { return r.attempt == attempt; });
    if (found == recorded_.end()) return false;
    bool counts = policy_.algorithm == Algorithm::kSlidingWindowLog;
    const Micros aligned_windows = policy_.algorithm == Algorithm::kSlidingWindowCounter ? 2 : 1;
    for (const Window& window : policy_.windows) {
      counts |= Number(*Newest(), window) - Number(found->at, window) < aligned_windows;
    }
    found->costs = actual;
    if (!IsAny(actual)) recorded_.erase(found);
    return counts;
  }

 private:
  struct Recorded {
    Micros at;
    CostsOfWindows costs;
    std::size_t attempt;
  };

  CostsOfWindows Each(std::uint64_t cost) const {
    return CostsOfWindows(policy_.windows.size(), cost);
  }

  static bool IsAny(const CostsOfWindows& costs) {
    return std::any_of(costs.begin(), costs.end(), [](std::uint64_t cost) { return cost > 0; });
  }

  /// The first moment from `from` on at which `holds`, which stays true from then on.
  template <class Predicate>
  static Micros First(Micros from, Predicate holds) {
    if (holds(from)) return from;
    Micros before = 0;
    Micros after = 1;
    for (; !holds(from + after); after *= 2) before = after;
    while (after - before > 1) {
      const Micros middle = before + (after - before) / 2;
      (holds(from + middle) ? after : before) = middle;
    }
    return from + after;
  }

  /// Of the aligned window in which `t` lies.
  static Micros Number(Micros t, const Window& window) {
    const Micros number = t / window.interval;
    return number * window.interval > t ? number - 1 : number;
  }

  template <class Predicate>
  std::uint64_t Sum(std::size_t w, Predicate counts) const {
    std::uint64_t sum = 0;
    for (const Recorded& r : recorded_) sum += counts(r.at) ? r.costs[w] : 0;
    return sum;
  }

  std::uint64_t Used(std::size_t w, Micros t) const {
    const Window& window = policy_.windows[w];
    const Micros number = Number(t, window);
    const auto count_of = [&](Micros wanted) {
      return Sum(w, [&](Micros at) { return Number(at, window) == wanted; });
    };
    switch (policy_.algorithm) {
      case Algorithm::kSlidingWindowLog:
        return Sum(w, [&](Micros at) { return at > t - window.interval; });
      case Algorithm::kFixedWindow:
        return count_of(number);
      case Algorithm::kSlidingWindowCounter: {
        const auto left = static_cast<std::uint64_t>((number + 1) * window.interval - t);
        return count_of(number) +
               count_of(number - 1) * left / static_cast<std::uint64_t>(window.interval);
      }
      case Algorithm::kGcra: {
        std::uint64_t used = 0;
        const Micros now = t * static_cast<Micros>(window.max);
        for (Micros ahead = ArrivalTimesMax(w) - now; ahead > 0; ahead -= window.interval) {
          ++used;
        }
        return used;
      }
      case Algorithm::kEnd:
        break;
    }
    return 0;
  }

  /// The theoretical arrival time, times max.
  Micros ArrivalTimesMax(std::size_t w) const {
    const Window& window = policy_.windows[w];
    std::optional<Micros> arrival;
    for (const Recorded& r : recorded_) {
      const Micros at = r.at * static_cast<Micros>(window.max);
      arrival =
          std::max(arrival.value_or(at), at) + static_cast<Micros>(r.costs[w]) * window.interval;
    }
    return arrival.value_or(-kLongest);
  }

  /// A refund of the newest action moves a log's newest action back.
  std::optional<Micros> Newest() const {
    if (policy_.algorithm != Algorithm::kSlidingWindowLog) return newest_;
    return recorded_.empty() ? std::nullopt : std::optional(recorded_.back().at);
  }

  bool CanPass(const CostsOfWindows& costs) const {
    for (std::size_t w = 0; w < costs.size(); ++w) {
      if (costs[w] > policy_.windows[w].max) return false;
    }
    return true;
  }

  Answer Judged(Micros now, const CostsOfWindows& costs) const {
    const std::optional<Micros> newest = Newest();
    const bool clamps = policy_.algorithm != Algorithm::kGcra;
    Answer answer{.at = clamps && newest ? std::max(now, *newest) : now};
    if (!CanPass(costs)) {
      answer.blocked_by = 1;
    } else if (block_until_ && answer.at < *block_until_) {
      answer.blocked_by = 4;
    } else if (IsAny(costs)) {
      for (std::size_t w = 0; w < costs.size(); ++w) {
        const bool is_asked = costs[w] > 0;
        if (is_asked && Used(w, answer.at) + costs[w] > policy_.windows[w].max) {
          answer.blocked_by = 1;
        }
      }
      const Micros gap = policy_.min_difference;
      if (gap > 0 && newest && answer.at - *newest < gap) answer.blocked_by |= 2;
    }
    return answer;
  }

  void Apply(const Answer& answer, const CostsOfWindows& costs) {
    ++attempts_;
    if (!CanPass(costs)) return;
    const bool by_block = answer.blocked_by == 4;
    if ((answer.allowed() || (policy_.count_blocked && !by_block)) && IsAny(costs)) {
      recorded_.push_back({answer.at, costs, attempts_});
      newest_ = answer.at;
    }
    if (answer.allowed() || by_block || policy_.blocks.empty()) return;
    Micros longest = 0;
    for (const Window& window : policy_.windows) longest = std::max(longest, window.interval);
    if (!block_until_ || answer.at >= *block_until_ + longest) offences_ = 0;
    offences_ = std::min(offences_ + 1, policy_.blocks.size());
    block_until_ = answer.at + policy_.blocks[offences_ - 1];
  }

  Micros Wait(Micros now, const CostsOfWindows& costs) const {
    return First(now, [&](Micros t) { return Judged(t, costs).allowed(); }) - now;
  }

  PolicyOptions policy_;
  std::vector<Recorded> recorded_;
  std::optional<Micros> newest_;
  std::optional<Micros> block_until_;
  std::size_t offences_ = 0;
  std::size_t attempts_ = 0;
};

}  // namespace rollgate::testing
