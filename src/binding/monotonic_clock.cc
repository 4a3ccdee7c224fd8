// Asks the system for the time and measures the rate of ticks on the way.
#include "binding/monotonic_clock.h"

#include <chrono>
#include <fstream>
#include <string>

namespace rollgate::binding {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  // ns

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
  const std::int64_t now = SystemNow();
#if ROLLGATE_HAS_TICKS
  if (counts_ticks_) {
    const std::uint64_t ticks = __rdtsc();
    const std::int64_t ns = now - asked_ns_;
    const std::uint64_t gone = ticks - asked_ticks_;
    // Over less time the rate would be inexact, over more it may hold a pause of the machine. Then
    // the next calls ask again, until a rate can be had.
    const bool tells_rate = asked_ns_ != 0 && ns >= kMillisecond / 4 && ns <= 100 * kMillisecond;
    if (tells_rate) {
      ns_per_tick_ = (static_cast<std::uint64_t>(ns) << kFraction) / gone;
      trusted_ticks_ = gone * kMillisecond / static_cast<std::uint64_t>(ns);
    }
    if (tells_rate || asked_ns_ == 0 || ns > kMillisecond) {
      if (!tells_rate) trusted_ticks_ = 0;
      asked_ns_ = now;
      asked_ticks_ = ticks;
    }
  }
#endif
  return now / 1000;
}

}  // namespace rollgate::binding
