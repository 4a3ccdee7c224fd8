// The 128-bit product of two 64-bit words, on every compiler.
#pragma once

#include <cstdint>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace rollgate {

struct WideProduct {
  std::uint64_t low;
  std::uint64_t high;
};

inline WideProduct WideMultiply(std::uint64_t a, std::uint64_t b) {
#if defined(_MSC_VER)
  return {a * b, __umulh(a, b)};
#else
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

/// Maps an evenly spread 64-bit word to [0, n) in order: a larger word never maps lower. `rest` is
/// the word's place within its share, spread over 64 bits again.
struct Share {
  std::uint64_t index;
  std::uint64_t rest;
};
inline Share ShareOf(std::uint64_t word, std::uint64_t n) {
  const WideProduct product = WideMultiply(word, n);
  return {product.high, product.low};
}

}  // namespace rollgate
