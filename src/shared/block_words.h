// Where an id's block is in the words of its state, if the policy has blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/block.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::shared {

/// `P` is a Policy or a SingleWindowPolicy, which has none.
template <class P>
class BlockWords {
 public:
  /// `at` is the first of its words.
  BlockWords(const P& policy, std::size_t at)
      : at_(at),
        longest_interval_(policy.longest_interval()),
        most_offences_(std::min<std::size_t>(policy.blocks().size(), 255)) {}

  std::size_t words() const { return HasBlocks() ? 2 : 0; }

  Block Load(const std::uint64_t* state) const {
    Block block;
    if (HasBlocks()) {
      // What comes out of a file is kept from overflowing, and from leading beyond the lengths.
      block.until = std::clamp(static_cast<Micros>(state[at_]), kLongAgo, kLongest);
      block.offences = static_cast<std::uint8_t>(std::min(state[at_ + 1], most_offences_));
    }
    return block;
  }

  void Store(std::uint64_t* state, const Block& block) const {
    if (!HasBlocks()) return;
    state[at_] = static_cast<std::uint64_t>(block.until);
    state[at_ + 1] = block.offences;
  }

  /// When nothing matters any more of an id that without its block has expired at `expires`.
  Micros Expires(const Block& block, Micros expires) const {
    if (!HasBlocks()) return expires;
    return std::max(expires, block.until + longest_interval_);
  }

 private:
  bool HasBlocks() const { return !std::is_same_v<P, SingleWindowPolicy> && most_offences_ > 0; }

  std::size_t at_;
  Micros longest_interval_;
  std::uint64_t most_offences_;
};

}  // namespace rollgate::shared
