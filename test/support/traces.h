// Random policies and walks of time, from a seed or from the bytes that a fuzzer makes up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <vector>

#include "core/algorithms.h"
#include "core/policy.h"
#include "core/time.h"

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

/// The largest cost that can be allowed.
inline std::int64_t SmallestMax(const PolicyOptions& policy) {
  return static_cast<std::int64_t>(std::ranges::min(policy.windows, {}, &Window::max).max);
}

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

/// The cost in each window. They can pass, but for `above` in 100 of those that differ.
inline std::vector<std::uint64_t> RandomCosts(Random& random, const PolicyOptions& policy,
                                              int above = 0) {
  if (!policy.weighted) {
    const std::int64_t cost = random.Chance(65) ? 1 : random.Between(1, SmallestMax(policy));
    return std::vector(policy.windows.size(), static_cast<std::uint64_t>(cost));
  }
  std::vector<std::uint64_t> costs;
  for (const Window& window : policy.windows) {
    const auto max = static_cast<std::int64_t>(window.max);
    costs.push_back(static_cast<std::uint64_t>(random.Chance(25) ? 0 : random.Between(1, max)));
  }
  if (std::ranges::count(costs, 0u) == std::ssize(costs)) costs.back() = 1;
  if (random.Chance(above)) costs.front() = policy.windows.front().max + 1;
  return costs;
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

namespace rollgate::fuzz {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// The bytes one after the other; zeros behind their end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}

  bool empty() const { return next_ == end_; }
  std::uint8_t Byte() { return next_ == end_ ? 0 : *next_++; }

  /// In [low, low + 255].
  std::int64_t From(std::int64_t low) { return low + Byte(); }

  /// In [low, high], which are less than 256 apart.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + Byte() % (high - low + 1);
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

/// Small numbers, so that boundaries are hit.
inline PolicyOptions ReadPolicy(Input& input) {
  PolicyOptions policy;
  const std::uint8_t shape = input.Byte();
  policy.algorithm = static_cast<Algorithm>(shape & 3);
  policy.count_blocked = policy.algorithm != Algorithm::kGcra && (shape & 4) != 0;
  for (int i = 0; i <= (shape >> 3 & 3) % 3; ++i) {
    policy.windows.push_back(
        {input.Between(1, 50), static_cast<std::uint64_t>(input.Between(1, 20))});
  }
  if ((shape & 32) != 0) policy.min_difference = input.Between(0, 15);
  if ((shape & 64) != 0) {
    for (std::int64_t i = input.Between(1, 3); i > 0; --i) {
      policy.blocks.push_back(input.Between(1, 80));
    }
  }
  return policy;
}

}  // namespace rollgate::fuzz
