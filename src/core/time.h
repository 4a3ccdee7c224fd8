// Time as the whole core counts it: whole microseconds since an origin that only the clock knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rollgate {

/// A moment or a duration in microseconds. Moments of one limiter share one clock and one origin.
using Micros = std::int64_t;

/// No moment lies further from the origin and no duration is longer than this (73,000 years), so
/// that `moment + duration - moment` never overflows.
inline constexpr Micros kLongest = Micros{1} << 61;

/// Before any moment: when something is over that never was.
inline constexpr Micros kLongAgo = -2 * kLongest;

/// Later than any moment: when something is that never will be.
inline constexpr Micros kNever = std::numeric_limits<Micros>::max();

/// Brings a value within the bounds of kLongest.
constexpr Micros Bounded(Micros value) {
  return std::clamp(value, -kLongest, kLongest);
}

/// The least number of whole milliseconds that lasts at least `duration`; 0 for none or less.
constexpr Micros CeilToMillis(Micros duration) {
  return duration <= 0 ? 0 : duration / 1000 + (duration % 1000 > 0 ? 1 : 0);
}

}  // namespace rollgate
