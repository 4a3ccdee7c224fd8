// Random policies and walks of time, from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "core/policy.h"

namespace rollgate::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// In [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine_;
};

/// Small intervals and counts, so that boundaries and ties are hit all the time.
inline PolicyOptions RandomPolicy(Random& random, bool count_blocked,
                                  std::int64_t largest_max = 8) {
  PolicyOptions options;
  options.count_blocked = count_blocked;
  const std::int64_t windows = random.Chance(50) ? 1 : random.Between(2, 3);
  for (std::int64_t i = 0; i < windows; ++i) {
    options.windows.push_back(
        {random.Between(1, 40), static_cast<std::uint64_t>(random.Between(1, largest_max))});
  }
  if (random.Chance(40)) options.min_difference = random.Between(1, 12);
  return options;
}

/// The next reading of a clock that stands still, walks and jumps.
inline Micros NextLater(Random& random, Micros now) {
  if (random.Chance(30)) return now;
  return now + (random.Chance(80) ? random.Between(1, 5) : random.Between(5, 60));
}

/// The next reading of a clock that now and then steps back, too.
inline Micros NextReading(Random& random, Micros now) {
  return random.Chance(6) ? now - random.Between(1, 30) : NextLater(random, now);
}

}  // namespace rollgate::testing
