// Interpolates between readings of the system's clock by a processor's tick counter.
#pragma once

#include <cstdint>

#include "core/time.h"

namespace rollgate {

/// Learns the rate of ticks from readings of the system's clock, and extrapolates for a millisecond
/// after each. Reads nothing itself. A rate is used once two consecutive samples agree on it, so
/// not if the machine slept or its counter restarted meanwhile.
class TickClock {
 public:
  /// Sets `now` to the time at `ticks`. Returns false if the system must be asked.
  bool Tell(std::uint64_t ticks, Micros& now) const {
    const std::uint64_t gone = ticks - noted_ticks_;
    if (gone >= trusted_ticks_) return false;
    now = noted_us_ + static_cast<Micros>((noted_rest_ + gone * us_per_tick_) >> kFraction);
    return true;
  }

  /// The time for limiters never falls, although ticks can be a microsecond ahead.
  Micros Advance(Micros now) { return latest_ = std::max(latest_, now); }

  /// Records that the system's clock read `ns` between these two readings of the ticks.
  void Note(std::uint64_t before, std::int64_t ns, std::uint64_t after);

 private:
  static constexpr int kFraction = 40;

  void LearnRate(std::uint64_t ticks, std::int64_t ns);

  Micros latest_ = std::numeric_limits<Micros>::min();
  bool has_noted_ = false;
  std::int64_t noted_ns_ = 0;
  std::uint64_t noted_ticks_ = 0;
  // The noted time again, so that Tell need not divide: microseconds, and the rest.
  Micros noted_us_ = 0;
  std::uint64_t noted_rest_ = 0;     // in 2^-kFraction us
  std::uint64_t us_per_tick_ = 0;    // of the last sample, in 2^-kFraction us
  std::uint64_t trusted_ticks_ = 0;  // extrapolate so far; 0 without a rate
};

}  // namespace rollgate
