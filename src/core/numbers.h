// Moments, policies and decisions as the numbers that JavaScript gives and gets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"

namespace rollgate {

/// A time in us, within the bounds of the core.
inline Micros TimeFromJs(double micros) {
  constexpr auto kBound = static_cast<double>(kLongest);
  return static_cast<Micros>(std::clamp(micros, -kBound, kBound));
}

/// The policy that lib/native/policy.js has written.
inline PolicyOptions PolicyFromJs(const double* next) {
  const auto integer = [&] { return static_cast<std::int64_t>(*next++); };
  PolicyOptions policy;
  policy.windows.resize(static_cast<std::size_t>(integer()));
  policy.blocks.resize(static_cast<std::size_t>(integer()));
  policy.min_difference = integer();
  policy.count_blocked = integer() != 0;
  policy.algorithm = static_cast<Algorithm>(integer());
  policy.weighted = integer() != 0;
  for (Window& window : policy.windows) {
    window.interval = integer();
    window.max = static_cast<std::uint64_t>(integer());
    window.is_calendar = integer() != 0;
  }
  for (Micros& length : policy.blocks) length = integer();
  return policy;
}

/// A calendar window that lib has found: ordinal, start and end.
inline Calendars::Span SpanFromJs(const double* numbers) {
  return {static_cast<std::int64_t>(numbers[0]), TimeFromJs(numbers[1]), TimeFromJs(numbers[2])};
}

/// The period that aligned windows repeat with. Calendar windows never do.
inline Micros PeriodOf(const std::vector<Window>& windows) {
  Micros longest = 0;
  for (const Window& window : windows) {
    longest = std::max(longest, window.is_calendar ? kLongest : window.interval);
  }
  return longest;
}

/// How many numbers precede those of the windows: see NUMBERS in lib/base/decision.js.
inline constexpr std::size_t kDecisionHead = 7;

/// How many numbers a decision with this many windows has.
inline std::size_t DecisionLength(std::size_t windows) {
  return kDecisionHead + 2 * windows;
}

/// Writes NUMBERS of lib/base/decision.js: DecisionLength(decision.windows.size()) of them.
inline void WriteDecision(const Decision& decision, double* out) {
  const auto millis = [](Micros duration) { return static_cast<double>(CeilToMillis(duration)); };
  *out++ = (decision.verdict.blocked_by_count ? 1 : 0) +
           (decision.verdict.blocked_by_min_difference ? 2 : 0) +
           (decision.verdict.blocked_by_block ? 4 : 0);
  *out++ = decision.time_left == kNever ? std::numeric_limits<double>::infinity()
                                        : millis(decision.time_left);
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

/// Writes keys, allowed, blocked, evicted and bytes.
inline void WriteStats(const StoreStats& stats, double* out) {
  for (const std::uint64_t number :
       {stats.keys, stats.allowed, stats.blocked, stats.evicted, std::uint64_t{stats.bytes}}) {
    *out++ = static_cast<double>(number);
  }
}

}  // namespace rollgate
