// The clocks of this host, and whether its ticks can be counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

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

  static std::int64_t Nanos() {
#if defined(__linux__)
    struct timespec time = {};
    ::clock_gettime(ClockOfNanos(), &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
#else
    // On macOS and Windows, this clock goes on in sleep.
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
#endif
  }

  static Micros WallMicros() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

#if ROLLGATE_HAS_TICKS
  static std::uint64_t Ticks() {
    return __rdtsc();
  }

  /// Whether the kernel trusts the tick counter to be steady and the same on all processors.
  static bool CountsTicks() {
    static const bool kCounts = [] {
      // Streams would add a megabyte to the addon, and need a newer glibc.
      const char* const path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
      const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "r"),
                                                                 std::fclose);
      char source[8];
      return file && std::fgets(source, sizeof(source), file.get()) != nullptr &&
             std::strcmp(source, "tsc\n") == 0;
    }();
    return kCounts;
  }
#else
  static bool CountsTicks() {
    return false;
  }
#endif

#if defined(__linux__)
  /// Sandboxes may lack the clock that goes on in sleep.
  static clockid_t ClockOfNanos() {
    static const clockid_t kClock = [] {
      struct timespec time;
      return ::clock_gettime(CLOCK_BOOTTIME, &time) == 0 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
    }();
    return kClock;
  }
#endif

  /// Whether Nanos() stands still while the host sleeps, although other processes may have a clock
  /// that does not.
  static bool StopsInSleep() {
#if defined(__linux__)
    return ClockOfNanos() == CLOCK_MONOTONIC;
#else
    return false;
#endif
  }
};

using BuiltInClock = LimiterClock<HostClocks>;

}  // namespace rollgate::binding
