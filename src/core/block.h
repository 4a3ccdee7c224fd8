// blockFor: after a refusal an id is refused for a while, whatever its windows say.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/time.h"

namespace rollgate {

/// What an id has to answer for. Attempts during a block change nothing of it.
struct Block {
  Micros until = kLongAgo;    ///< refused before this moment
  std::uint8_t offences = 0;  ///< refusals that started a block, up to the number of lengths

  /// Starts the block of a refusal at `at`, outside of any. Offences are forgotten once the longest
  /// interval has passed since the last block. Precondition: `lengths` is not empty.
  void Start(std::span<const Micros> lengths, Micros longest_interval, Micros at) {
    assert(!lengths.empty() && at >= until);
    if (at - until >= longest_interval) offences = 0;
    const auto most = static_cast<std::uint8_t>(std::min<std::size_t>(lengths.size(), 255));
    offences = offences < most ? static_cast<std::uint8_t>(offences + 1) : most;
    until = Bounded(at + lengths[offences - 1u]);
  }

  /// When the latest block began. Precondition: there was one, with these lengths.
  Micros StartedAt(std::span<const Micros> lengths) const {
    assert(offences >= 1 && offences <= lengths.size());
    return until - lengths[offences - 1u];
  }

  /// The bytes it takes in a store.
  static constexpr std::size_t kBytes = sizeof(Micros) + 1;

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
