// 128-bit products and quotients of 64-bit words, on every compiler.
#pragma once

#include <cassert>
#include <compare>
#include <cstdint>
#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
#include <intrin.h>
#endif

namespace rollgate {

struct WideProduct {
  std::uint64_t high;
  std::uint64_t low;

  friend constexpr auto operator<=>(const WideProduct&, const WideProduct&) = default;
};

/// For processors without a wider multiplication: four products of 32-bit halves.
constexpr WideProduct WideMultiplyByHalves(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0xffffffff;
  const std::uint64_t low = (a & kLow) * (b & kLow);
  const std::uint64_t cross = (a >> 32) * (b & kLow) + (low >> 32);
  const std::uint64_t middle = (a & kLow) * (b >> 32) + (cross & kLow);
  return {(a >> 32) * (b >> 32) + (cross >> 32) + (middle >> 32), a * b};
}

inline WideProduct WideMultiply(std::uint64_t a, std::uint64_t b) {
#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
  return {__umulh(a, b), a * b};
#elif defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#else
  return WideMultiplyByHalves(a, b);
#endif
}

/// Bit by bit. Precondition as of WideDivide.
constexpr std::uint64_t WideDivideByBits(WideProduct dividend, std::uint64_t divisor) {
  assert(dividend.high < divisor);
  std::uint64_t rest = dividend.high;
  std::uint64_t quotient = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const bool carries = rest >> 63 != 0;
    rest = rest << 1 | (dividend.low >> bit & 1);
    if (carries || rest >= divisor) {
      rest -= divisor;
      quotient |= std::uint64_t{1} << bit;
    }
  }
  return quotient;
}

/// Rounds down. Precondition: the quotient has 64 bits, which is dividend.high < divisor.
inline std::uint64_t WideDivide(WideProduct dividend, std::uint64_t divisor) {
  assert(dividend.high < divisor);
  if (dividend.high == 0) return dividend.low / divisor;
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(dividend.high) << 64 | dividend.low;
  return static_cast<std::uint64_t>(wide / divisor);
#else
  return WideDivideByBits(dividend, divisor);
#endif
}

/// Of n equal shares of the range of words: the share of a word, and its position there.
struct Share {
  std::uint64_t index;
  std::uint64_t rest;
};
inline Share ShareOf(std::uint64_t word, std::uint64_t n) {
  const WideProduct product = WideMultiply(word, n);
  assert(product.high < n);
  return {product.high, product.low};
}

}  // namespace rollgate
