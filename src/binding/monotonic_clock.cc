// Reads the system's clock, and checks whether ticks can be counted.
#include "binding/monotonic_clock.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

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
  // Streams would add a megabyte to the addon, and need a newer glibc.
  const char* const path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "r"), std::fclose);
  char source[8];
  return file && std::fgets(source, sizeof(source), file.get()) != nullptr &&
         std::strcmp(source, "tsc\n") == 0;
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
