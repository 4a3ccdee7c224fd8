// Time: whole microseconds since an origin that only the clock knows.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rollgate {

/// A moment or a duration. The moments of one limiter share one clock and origin.
using Micros = std::int64_t;

/// The largest moment and duration (73,000 years): `moment + duration - moment` never overflows.
inline constexpr Micros kLongest = Micros{1} << 61;

/// Before any moment, for what never was.
inline constexpr Micros kLongAgo = -2 * kLongest;

/// After any moment, for what never will be.
inline constexpr Micros kNever = std::numeric_limits<Micros>::max();
static_assert(kLongAgo < -kLongest && kLongest < kNever && kLongest - kLongAgo < kNever);

/// Clamps to ±kLongest.
constexpr Micros Bounded(Micros value) {
  return std::clamp(value, -kLongest, kLongest);
}

/// Rounds up to whole milliseconds; 0 for a negative duration.
constexpr Micros CeilToMillis(Micros duration) {
  return duration <= 0 ? 0 : duration / 1000 + (duration % 1000 > 0 ? 1 : 0);
}

}  // namespace rollgate
