// Reads the system's clocks, and checks whether ticks can be counted.
#include "binding/host_clocks.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

namespace rollgate::binding {
namespace {

#if defined(__linux__)
/// Sandboxes may lack the clock that goes on in sleep.
clockid_t ClockOfNanos() {
  static const clockid_t kClock = [] {
    struct timespec time;
    return ::clock_gettime(CLOCK_BOOTTIME, &time) == 0 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
  }();
  return kClock;
}
#endif

/// Whether the kernel trusts the tick counter to be steady and the same on all processors.
bool SystemCountsTicks() {
  // Streams would add a megabyte to the addon, and need a newer glibc.
  const char* const path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "r"), std::fclose);
  char source[8];
  return file && std::fgets(source, sizeof(source), file.get()) != nullptr &&
         std::strcmp(source, "tsc\n") == 0;
}

}  // namespace

std::int64_t HostClocks::Nanos() {
#if defined(__linux__)
  struct timespec time = {};
  ::clock_gettime(ClockOfNanos(), &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
#else
  // On macOS and Windows, this clock goes on in sleep.
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
#endif
}

Micros HostClocks::WallMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool HostClocks::CountsTicks() {
  if constexpr (!kHasTicks) return false;
  static const bool kCounts = SystemCountsTicks();
  return kCounts;
}

bool HostClocks::StopsInSleep() {
#if defined(__linux__)
  return ClockOfNanos() == CLOCK_MONOTONIC;
#else
  return false;
#endif
}

}  // namespace rollgate::binding
