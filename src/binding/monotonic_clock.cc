// Asks the system for the time, and whether its ticks can be counted.
#include "binding/monotonic_clock.h"

#include <chrono>
#include <fstream>
#include <string>

namespace rollgate::binding {
namespace {

std::int64_t SystemNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Whether the kernel trusts the tick counter to be steady and the same on all processors.
bool SystemCountsTicks() {
#if ROLLGATE_HAS_TICKS
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return std::getline(file, source) && source == "tsc";
#else
  return false;
#endif
}

}  // namespace

MonotonicClock::MonotonicClock() {
  static const bool kSystemCountsTicks = SystemCountsTicks();
  counts_ticks_ = kSystemCountsTicks;
}

Micros MonotonicClock::Ask() {
#if ROLLGATE_HAS_TICKS
  if (counts_ticks_) {
    const std::uint64_t before = __rdtsc();
    const std::int64_t now = SystemNow();
    ticks_.Note(before, now, __rdtsc());
    return now / 1000;
  }
#endif
  return SystemNow() / 1000;
}

}  // namespace rollgate::binding
