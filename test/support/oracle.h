// The brute-force limiter that the real ones are held against: keeps every action for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::testing {

/// One id's history under a policy. Judges by counting; shares no code with the core.
class Oracle {
 public:
  struct Action {
    Micros at;
    std::uint64_t attempt;  // which attempt recorded it
  };

  struct Answer {
    bool by_count = false;
    bool by_min_difference = false;
    Micros at = 0;
    Micros time_left = 0;
    Micros wait = 0;
    std::uint64_t actions_left = 0;
    std::vector<std::uint64_t> used;
    std::vector<Micros> reset_in;
    std::uint64_t attempt = 0;

    bool allowed() const { return !by_count && !by_min_difference; }
  };

  explicit Oracle(const Policy& policy)
      : windows_(policy.windows().begin(), policy.windows().end()),
        min_difference_(policy.min_difference()),
        count_blocked_(policy.count_blocked()) {}

  Answer Attempt(Micros now, std::uint64_t cost) {
    Answer answer = Peek(now, cost);
    answer.attempt = ++attempts_;
    if (answer.allowed() || count_blocked_) Add(actions_, answer.at, cost, attempts_);
    return answer;
  }

  Answer Peek(Micros now, std::uint64_t cost) const {
    Answer answer = Judge(actions_, now, cost);
    std::vector<Action> after = actions_;
    if (answer.allowed() || count_blocked_) Add(after, answer.at, cost, 0);
    if (!answer.allowed()) answer.time_left = FirstPass(after, now, cost);
    answer.wait = FirstPass(after, now, 1);
    answer.actions_left = ~std::uint64_t{0};
    for (const Window& window : windows_) {
      // Of a window that holds more than it may, the newest count.
      std::vector<Micros> inside;
      for (const Action& action : after) {
        if (action.at > answer.at - window.interval) inside.push_back(action.at);
      }
      if (inside.size() > window.max)
        inside.erase(inside.begin(), inside.end() - static_cast<std::ptrdiff_t>(window.max));
      answer.used.push_back(inside.size());
      answer.reset_in.push_back(inside.empty() ? 0 : inside.front() + window.interval - now);
      answer.actions_left =
          std::min<std::uint64_t>(answer.actions_left, window.max - inside.size());
    }
    return answer;
  }

  /// Takes one attempt out of history; whether it was there.
  bool Refund(std::uint64_t attempt) {
    return std::erase_if(actions_, [&](const Action& a) { return a.attempt == attempt; }) > 0;
  }

  const std::vector<Action>& actions() const { return actions_; }

 private:
  static void Add(std::vector<Action>& actions, Micros at, std::uint64_t cost,
                  std::uint64_t attempt) {
    for (std::uint64_t i = 0; i < cost; ++i) actions.push_back({at, attempt});
  }

  Answer Judge(const std::vector<Action>& actions, Micros now, std::uint64_t cost) const {
    Answer answer;
    answer.at = actions.empty() ? now : std::max(now, actions.back().at);
    for (const Window& window : windows_) {
      const auto count = static_cast<std::uint64_t>(std::count_if(
          actions.begin(), actions.end(),
          [&](const Action& action) { return action.at > answer.at - window.interval; }));
      if (count + cost > window.max) answer.by_count = true;
    }
    if (!actions.empty() && answer.at - actions.back().at < min_difference_) {
      answer.by_min_difference = true;
    }
    return answer;
  }

  /// The least wait after which an attempt passes: tries every moment at which anything changes.
  Micros FirstPass(const std::vector<Action>& actions, Micros now, std::uint64_t cost) const {
    std::vector<Micros> moments{now};
    for (const Action& action : actions) {
      for (const Window& window : windows_) moments.push_back(action.at + window.interval);
      moments.push_back(action.at + min_difference_);
    }
    std::sort(moments.begin(), moments.end());
    for (const Micros moment : moments) {
      if (moment >= now && Judge(actions, moment, cost).allowed()) return moment - now;
    }
    return -1;  // never: no attempt passes whose cost is above a max
  }

  std::vector<Window> windows_;
  Micros min_difference_;
  bool count_blocked_;
  std::vector<Action> actions_;
  std::uint64_t attempts_ = 0;
};

}  // namespace rollgate::testing
