// Tells the time between two readings of the system's clock by counting a processor's ticks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/time.h"

namespace rollgate {

/// Learns from readings of the system's clock how fast ticks go, and for a millisecond after each
/// reading tells the time by them. Reads nothing itself.
///
/// A rate is believed once two samples in a row agree on it. So one that is wrong, because the
/// machine slept, was moved or its ticks began anew between two readings, is not used; and whatever
/// happens to the ticks after a reading is over after as many of them as a millisecond has.
class TickClock {
 public:
  /// The time at `ticks`, or false if the system must be asked.
  bool Tell(std::uint64_t ticks, Micros& now) const {
    const std::uint64_t gone = ticks - noted_ticks_;
    if (gone >= trusted_ticks_) return false;
    now = noted_us_ + static_cast<Micros>((noted_rest_ + gone * us_per_tick_) >> kFraction);
    return true;
  }

  /// The time as limiters get it: no earlier than any that was given before. A reading by ticks may
  /// be a microsecond later than the next one by the system's clock.
  Micros Advance(Micros now) { return latest_ = std::max(latest_, now); }

  /// Takes note that the system's clock was read as `ns` between these two readings of the ticks.
  void Note(std::uint64_t before, std::int64_t ns, std::uint64_t after);

 private:
  /// The binary places of what is counted in fractions.
  static constexpr int kFraction = 40;

  void LearnRate(std::uint64_t ticks, std::int64_t ns);

  Micros latest_ = std::numeric_limits<Micros>::min();
  bool has_noted_ = false;
  std::int64_t noted_ns_ = 0;
  std::uint64_t noted_ticks_ = 0;
  // The noted time once more, so that Tell need not divide: its microseconds and what is beyond.
  Micros noted_us_ = 0;
  std::uint64_t noted_rest_ = 0;     // in fractions
  std::uint64_t us_per_tick_ = 0;    // of the last sample, in fractions
  std::uint64_t trusted_ticks_ = 0;  // how many may be counted; 0 while no rate is believed
};

}  // namespace rollgate
