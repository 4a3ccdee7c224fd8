// blockFor: a refusal blocks the id for a while, whatever its windows say.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/time.h"

namespace rollgate {

/// The block of one id. Attempts during a block do not change it.
struct Block {
  Micros until = kLongAgo;    ///< attempts before this moment are refused
  std::uint8_t offences = 0;  ///< blocks started; at most the number of lengths

  /// Starts the block for a refusal at `at`. Offences are forgotten once the longest interval has
  /// passed since the last block. Preconditions: `lengths` is not empty; no block lasts at `at`.
  void Start(std::span<const Micros> lengths, Micros longest_interval, Micros at) {
    assert(!lengths.empty() && at >= until);
    if (at - until >= longest_interval) offences = 0;
    const auto most = static_cast<std::uint8_t>(std::min<std::size_t>(lengths.size(), 255));
    offences = offences < most ? static_cast<std::uint8_t>(offences + 1) : most;
    assert(offences >= 1 && offences <= lengths.size());
    until = Bounded(at + lengths[offences - 1u]);
  }

  static constexpr std::size_t kBytes = sizeof(Micros) + sizeof offences;
  static_assert(kBytes == 9, "the format of key-value states");

  static Block Load(const std::byte* bytes) {
    Block block;
    std::memcpy(&block.until, bytes, sizeof block.until);
    std::memcpy(&block.offences, bytes + sizeof block.until, 1);
    return block;
  }

  void Store(std::byte* bytes) const {
    std::memcpy(bytes, &until, sizeof until);
    std::memcpy(bytes + sizeof until, &offences, 1);
  }
};

}  // namespace rollgate
