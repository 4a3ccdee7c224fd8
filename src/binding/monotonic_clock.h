// The clock of limiters in memory: the system's monotonic one, read at a fraction of the price.
#pragma once

#include <cstdint>

#include "core/time.h"

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#define ROLLGATE_HAS_TICKS 1
#endif

namespace rollgate::binding {

/// Microseconds that never stop and are never set. Owned by one thread.
///
/// Asking the system takes 20 ns, a quarter of a whole check, most of it spent waiting for the
/// processor to finish what it is doing. Where the system itself takes its time from the
/// processor's tick counter, so does this clock: for up to a millisecond after it has asked the
/// system, it adds the ticks gone by since, at the rate measured between the last two times it
/// asked. That is good to a fraction of a microsecond; and a rate gone wrong, as on a machine moved
/// while it runs, is wrong for a millisecond.
class MonotonicClock {
 public:
  MonotonicClock();

  Micros Now() {
#if ROLLGATE_HAS_TICKS
    const std::uint64_t gone = __rdtsc() - asked_ticks_;
    if (gone < trusted_ticks_) [[likely]] {
      return (asked_ns_ + static_cast<std::int64_t>(gone * ns_per_tick_ >> kFraction)) / 1000;
    }
#endif
    return Ask();
  }

 private:
  static constexpr int kFraction = 32;

  Micros Ask();

  std::int64_t asked_ns_ = 0;
  std::uint64_t asked_ticks_ = 0;
  std::uint64_t ns_per_tick_ = 0;    // in units of 2^-kFraction
  std::uint64_t trusted_ticks_ = 0;  // how many may be added; 0: ask each time
  bool counts_ticks_;
};

}  // namespace rollgate::binding
