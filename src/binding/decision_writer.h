// From a decision of the core to the numbers that lib makes objects of.
#pragma once

#include <cstddef>

#include "core/decision.h"

namespace rollgate::binding {

/// Numbers of one decision: whether count (1), minDifference (2) or a block (4) blocks it; time
/// left, actions left, reset in and wait; when it was recorded, in us, and the token; then for
/// each window what is used and its reset in. Durations in ms.
inline constexpr std::size_t kDecisionHead = 7;

/// How many numbers a decision over so many windows has.
inline std::size_t DecisionLength(std::size_t windows) {
  return kDecisionHead + 2 * windows;
}

inline void WriteDecision(const Decision& decision, double* out) {
  const auto millis = [](Micros duration) { return static_cast<double>(CeilToMillis(duration)); };
  *out++ = (decision.verdict.blocked_by_count ? 1 : 0) +
           (decision.verdict.blocked_by_min_difference ? 2 : 0) +
           (decision.verdict.blocked_by_block ? 4 : 0);
  *out++ = millis(decision.time_left);
  *out++ = static_cast<double>(decision.actions_left);
  *out++ = millis(decision.reset_in);
  *out++ = millis(decision.wait);
  *out++ = static_cast<double>(decision.verdict.at);
  *out++ = static_cast<double>(decision.token);
  for (const WindowUse& use : decision.windows) {
    *out++ = static_cast<double>(use.used);
    *out++ = millis(use.reset_in);
  }
}

}  // namespace rollgate::binding
