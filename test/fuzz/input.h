// Policies and operations read from the bytes that a fuzzer makes up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/algorithms.h"
#include "core/policy.h"
#include "core/time.h"

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
