// blockFor: a refusal blocks the id for a while, whatever its windows say.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bytes.h"
#include "core/time.h"

namespace rollgate {

/// The most lengths of blocks in a policy.
inline constexpr std::size_t kMostBlocks = 255;

/// The block of one id. Attempts during a block do not change it.
struct Block {
  Micros until = kLongAgo;    ///< attempts before this moment are refused
  std::uint8_t offences = 0;  ///< blocks started; at most the number of lengths

  /// Starts the block for a refusal at `at`. Offences are forgotten once the longest interval has
  /// passed since the last block. Preconditions: `lengths` is not empty; no block lasts at `at`.
  void Start(std::span<const Micros> lengths, Micros longest_interval, Micros at) {
    assert(!lengths.empty() && lengths.size() <= kMostBlocks && at >= until);
    if (at - until >= longest_interval) offences = 0;
    offences = static_cast<std::uint8_t>(std::min(offences + std::size_t{1}, lengths.size()));
    until = Bounded(at + lengths[offences - 1u]);
  }

  static constexpr std::size_t kBytes = sizeof(Micros) + sizeof offences;
  static_assert(kBytes == 9, "the format of key-value states");

  static Block Load(const std::byte* bytes) {
    return {LoadAs<Micros>(bytes), LoadAs<std::uint8_t>(bytes + sizeof(Micros))};
  }

  void Store(std::byte* bytes) const {
    StoreAs(bytes, until);
    StoreAs(bytes + sizeof until, offences);
  }
};

}  // namespace rollgate
