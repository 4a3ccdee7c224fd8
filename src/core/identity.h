// Who is limited: an id reduced to sixteen bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/wide_multiply.h"

namespace rollgate {

/// Random words, unknown to users, that place and hash ids: nobody can prepare collisions.
struct Secret {
  std::array<std::uint64_t, 6> words;
};
static_assert(std::is_trivially_copyable_v<Secret> && sizeof(Secret) == 6 * sizeof(std::uint64_t),
              "the header of a region contains one");

/// Up to 16 Latin-1 characters as they are, anything else as a keyed 128-bit hash (SipHash-2-4).
/// Two short ids never share an identity; two others do with a probability of 2^-128.
struct Identity {
  static constexpr std::uint8_t kLongestInline = 16;
  static constexpr std::uint8_t kHashed = kLongestInline + 1;

  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint8_t kind = 0;  ///< the number of inline characters, or kHashed

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// The identity of a string of UTF-16 code units, lone surrogates and NULs included.
Identity IdentityOf(std::span<const char16_t> id, const Secret& secret);

/// A short id, with zeros after its end.
using ShortUnits = std::span<const char16_t, Identity::kLongestInline>;

inline bool IsLatin1(ShortUnits units) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < units.size(); i += 4) {
    std::uint64_t four;
    std::memcpy(&four, &units[i], sizeof four);
    all |= four;
  }
  return (all & 0xff00ff00ff00ff00ULL) == 0;
}

/// Equal to IdentityOf, in a few instructions. Preconditions: length <= 16; IsLatin1(units).
inline Identity IdentityOfLatin1(ShortUnits units, std::size_t length) {
  assert(length <= units.size() && IsLatin1(units));
  std::array<std::uint8_t, Identity::kLongestInline> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(units[i]);
  Identity identity;
  std::memcpy(&identity.low, bytes.data(), 8);
  std::memcpy(&identity.high, bytes.data() + 8, 8);
  identity.kind = static_cast<std::uint8_t>(length);
  return identity;
}

/// Spreads identities evenly over 64 bits, depending on the secret.
inline std::uint64_t HashOf(const Identity& identity, const Secret& secret) {
  // NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999) over two words: the 128-bit products
  // of two ids are equal for one secret in 2^64. The second product spreads the bits.
  const auto& k = secret.words;
  const WideProduct product = WideMultiply(identity.low + k[0], identity.high + k[1]);
  const WideProduct spread = WideMultiply(product.low ^ k[2] ^ identity.kind, product.high ^ k[3]);
  return spread.low ^ spread.high;
}

}  // namespace rollgate
