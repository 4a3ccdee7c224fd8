// The clock of limiters in memory: the system's monotonic clock at a fraction of the cost.
#pragma once

#include "core/inlining.h"
#include "core/tick_clock.h"
#include "core/time.h"

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#define ROLLGATE_HAS_TICKS 1
#endif

namespace rollgate::binding {

/// Microseconds of a clock that is never set and never steps back. Owned by one thread.
///
/// A call of the system takes 20 ns, a quarter of a check. If the system reads the processor's tick
/// counter, this clock does so itself: see TickClock. It may differ from the system's by a
/// microsecond.
class MonotonicClock {
 public:
  MonotonicClock();

  Micros Now() {
#if ROLLGATE_HAS_TICKS
    Micros now;
    if (ticks_.Tell(__rdtsc(), now)) [[likely]] {
      return ticks_.Advance(now);
    }
#endif
    return ticks_.Advance(Ask());
  }

 private:
  ROLLGATE_COLD Micros Ask();

  TickClock ticks_;
  bool counts_ticks_;
};

}  // namespace rollgate::binding
