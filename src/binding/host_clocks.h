// The clocks of this host.
#pragma once

#include <cstdint>

#include "core/limiter_clock.h"
#include "core/time.h"

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#define ROLLGATE_HAS_TICKS 1
#else
#define ROLLGATE_HAS_TICKS 0
#endif

namespace rollgate::binding {

/// A Host of LimiterClock.
struct HostClocks {
  static constexpr bool kHasTicks = ROLLGATE_HAS_TICKS != 0;

  static std::int64_t Nanos();
  static Micros WallMicros();
  static bool CountsTicks();
#if ROLLGATE_HAS_TICKS
  static std::uint64_t Ticks() {
    return __rdtsc();
  }
#endif

  /// Whether Nanos() stands still while the host sleeps, although other processes may have a clock
  /// that does not.
  static bool StopsInSleep();
};

using BuiltInClock = LimiterClock<HostClocks>;

}  // namespace rollgate::binding
