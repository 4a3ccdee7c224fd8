// A window of GCRA: its emission interval, and the units in which that is a whole number.
#pragma once

#include <cstdint>

#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// Times are in units of 1 us / `per_micro`: exact if max <= 1000, else rounded up to 1 ns.
class EmissionWindow {
 public:
  /// Longer times and intervals (142 years) are cut, so units never overflow.
  static constexpr Micros kLongestHere = Micros{1} << 52;

  explicit EmissionWindow(const Window& window)
      : per_micro_(window.max <= kFinest ? static_cast<std::int64_t>(window.max) : kFinest),
        emission_(Emission(window)) {
    assert(window.interval > 0 && window.max >= 1);
  }

  std::int64_t emission() const { return emission_; }
  /// Modulo 2^64: an overdraft may be longer than a time.
  std::int64_t Emissions(std::uint64_t n) const {
    return static_cast<std::int64_t>(n * static_cast<std::uint64_t>(emission_));
  }

  std::int64_t ToUnits(Micros moment) const {
    return std::clamp(moment, -kLongestHere, kLongestHere) * per_micro_;
  }

  /// No arrival time is later. Emissions are rounded up: a full bucket exceeds the interval by less
  /// than `max`.
  std::int64_t Latest(std::uint64_t max) const {
    return 2 * ToUnits(kLongest) + static_cast<std::int64_t>(max);
  }

  Micros ToMicros(std::int64_t units) const {  // rounds up
    const std::int64_t whole = units / per_micro_;
    return whole + (units % per_micro_ > 0 ? 1 : 0);
  }

 private:
  static constexpr std::int64_t kFinest = 1000;
  static_assert(kLongestHere <= std::numeric_limits<std::int64_t>::max() / (2 * kFinest),
                "an arrival time is at most an interval after a moment");

  static std::int64_t Emission(const Window& window) {
    const Micros interval = std::min(window.interval, kLongestHere);
    if (window.max <= kFinest) return interval;
    const auto max = static_cast<std::int64_t>(window.max);
    return (interval * kFinest + (max - 1)) / max;
  }

  std::int64_t per_micro_;
  std::int64_t emission_;
};

}  // namespace rollgate
