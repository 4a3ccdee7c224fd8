// The brute-force limiter of four algorithms: keeps every recorded attempt for ever, counts them
// anew for every question, and finds waits by trying one microsecond after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/algorithms.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::testing {

/// One id's history under a policy of small numbers. Shares no code with the core.
class History {
 public:
  struct Answer {
    bool by_count = false;
    bool by_min_difference = false;
    bool by_block = false;
    Micros at = 0;
    Micros time_left = 0;
    Micros wait = 0;
    std::uint64_t actions_left = 0;
    Micros reset_in = 0;
    std::vector<std::uint64_t> used;
    std::vector<Micros> window_reset_in;
    std::size_t attempt = 0;

    bool allowed() const { return !by_count && !by_min_difference && !by_block; }
  };

  explicit History(PolicyOptions policy) : policy_(std::move(policy)) {}

  Answer Attempt(Micros now, std::uint64_t cost) {
    const Answer answer = Answered(now, cost);
    Apply(answer, cost);
    return {answer};
  }

  Answer Peek(Micros now, std::uint64_t cost) const { return Answered(now, cost); }

  /// Takes an attempt out of history, which is all there is to it where there are counts. Tells
  /// whether it still counted in the windows of the newest action.
  bool RefundCounted(std::size_t attempt) {
    const auto found = std::find_if(recorded_.begin(), recorded_.end(),
                                    [&](const Recorded& r) { return r.attempt == attempt; });
    if (found == recorded_.end()) return false;
    const bool is_counter = policy_.algorithm == Algorithm::kSlidingWindowCounter;
    bool mattered = false;
    for (const Window& window : policy_.windows) {
      const Micros later = Number(*newest_, window) - Number(found->at, window);
      mattered |= later == 0 || (is_counter && later == 1);
    }
    recorded_.erase(found);
    return mattered;
  }

 private:
  struct Recorded {
    Micros at;
    std::uint64_t cost;
    std::size_t attempt;
  };

  static Micros Number(Micros t, const Window& window) {
    Micros number = t / window.interval;
    if (number * window.interval > t) --number;
    return number;
  }

  std::uint64_t CountOf(const Window& window, Micros number) const {
    std::uint64_t count = 0;
    for (const Recorded& r : recorded_) count += Number(r.at, window) == number ? r.cost : 0;
    return count;
  }

  /// The arrival time times max, for max <= 1000.
  Micros ArrivalTimesMax(const Window& window) const {
    const auto max = static_cast<Micros>(window.max);
    std::optional<Micros> arrival;
    for (const Recorded& r : recorded_) {
      const Micros from = arrival ? std::max(*arrival, r.at * max) : r.at * max;
      arrival = from + static_cast<Micros>(r.cost) * window.interval;
    }
    return arrival.value_or(-kLongest);
  }

  std::uint64_t Used(const Window& window, Micros t) const {
    const auto max = static_cast<Micros>(window.max);
    switch (policy_.algorithm) {
      case Algorithm::kSlidingWindowLog: {
        std::uint64_t used = 0;
        for (const Recorded& r : recorded_) used += r.at > t - window.interval ? r.cost : 0;
        return used;
      }
      case Algorithm::kFixedWindow:
        return CountOf(window, Number(t, window));
      case Algorithm::kSlidingWindowCounter: {
        const Micros number = Number(t, window);
        const Micros left = (number + 1) * window.interval - t;
        const auto share = CountOf(window, number - 1) * static_cast<std::uint64_t>(left) /
                           static_cast<std::uint64_t>(window.interval);
        return CountOf(window, number) + share;
      }
      case Algorithm::kGcra: {
        std::uint64_t used = 0;
        for (Micros ahead = ArrivalTimesMax(window) - t * max; ahead > 0;
             ahead -= window.interval) {
          ++used;
        }
        return used;
      }
      default:
        std::abort();  // it knows no others
    }
  }

  Micros At(Micros now) const {
    const bool clamps = policy_.algorithm != Algorithm::kGcra;
    return clamps && newest_ ? std::max(now, *newest_) : now;
  }

  Answer Judged(Micros now, std::uint64_t cost) const {
    Answer answer;
    answer.at = At(now);
    if (block_until_ && answer.at < *block_until_) {
      answer.by_block = true;
      return answer;
    }
    const Micros gap = policy_.min_difference;
    answer.by_min_difference = gap > 0 && newest_ && answer.at - *newest_ < gap;
    for (const Window& window : policy_.windows) {
      if (Used(window, answer.at) + cost > window.max) answer.by_count = true;
    }
    return answer;
  }

  void Apply(const Answer& answer, std::uint64_t cost) {
    ++attempts_;
    const bool records = answer.allowed() || (policy_.count_blocked && !answer.by_block);
    if (records && cost > 0) {
      recorded_.push_back({answer.at, cost, attempts_});
      newest_ = answer.at;
    }
    if (answer.allowed() || answer.by_block || policy_.blocks.empty()) return;
    Micros longest = 0;
    for (const Window& window : policy_.windows) longest = std::max(longest, window.interval);
    if (!block_until_ || answer.at >= *block_until_ + longest) offences_ = 0;
    offences_ = std::min(offences_ + 1, policy_.blocks.size());
    block_until_ = answer.at + policy_.blocks[offences_ - 1];
  }

  Micros Wait(Micros now, std::uint64_t cost) const {
    Micros t = now;
    while (!Judged(t, cost).allowed()) ++t;
    return t - now;
  }

  Answer Answered(Micros now, std::uint64_t cost) const {
    Answer answer = Judged(now, cost);
    History after = *this;
    after.Apply(answer, cost);
    answer.attempt = after.attempts_;
    if (!answer.allowed()) answer.time_left = after.Wait(now, cost);
    answer.wait = after.Wait(now, 1);
    answer.actions_left = ~std::uint64_t{0};
    for (const Window& window : policy_.windows) {
      const std::uint64_t used = std::min(after.Used(window, answer.at), window.max);
      Micros t = answer.at;
      while (used > 0 && after.Used(window, t) >= used) ++t;
      const Micros reset_in = used == 0 ? 0 : t - now;
      answer.used.push_back(used);
      answer.window_reset_in.push_back(reset_in);
      const std::uint64_t left = window.max - used;
      if (left < answer.actions_left) {
        answer.actions_left = left;
        answer.reset_in = reset_in;
      } else if (left == answer.actions_left) {
        answer.reset_in = std::max(answer.reset_in, reset_in);
      }
    }
    if (!answer.allowed()) answer.reset_in = answer.time_left;
    return answer;
  }

  PolicyOptions policy_;
  std::vector<Recorded> recorded_;
  std::optional<Micros> newest_;
  std::optional<Micros> block_until_;
  std::size_t offences_ = 0;
  std::size_t attempts_ = 0;
};

}  // namespace rollgate::testing
