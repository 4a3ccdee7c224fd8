// The clock of limiters in memory: the system's monotonic one, read at a fraction of the price.
#pragma once

#include <cstdint>

#include "core/inlining.h"
#include "core/tick_clock.h"
#include "core/time.h"

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#define ROLLGATE_HAS_TICKS 1
#endif

namespace rollgate::binding {

/// Microseconds that never stop, never step back and are never set. Owned by one thread.
///
/// Asking the system takes 20 ns, a quarter of a whole check, most of it spent waiting for the
/// processor to finish what it is doing. Where the system itself takes its time from the
/// processor's tick counter, so does this clock: see TickClock. It may differ from the system's by
/// a microsecond.
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
