// Where an id's block (blockFor) is in the words of its state, if the policy has blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/block.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::shared {

template <class P>
class BlockWords {
 public:
  BlockWords(const P& policy, std::size_t at)
      : at_(at),
        longest_interval_(policy.longest_interval()),
        most_offences_(policy.blocks().size()) {}

  std::size_t words() const { return HasBlocks() ? 2 : 0; }

  Block Load(const std::uint64_t* state) const {
    Block block;
    if (HasBlocks()) {
      // Clamped, because another process may have written anything.
      block.until = std::clamp(static_cast<Micros>(state[at_]), kLongAgo, kLongest);
      block.offences = static_cast<std::uint8_t>(std::min(state[at_ + 1], most_offences_));
    }
    return block;
  }

  void Store(std::uint64_t* state, const Block& block) const {
    if (!HasBlocks()) return;
    assert(block.offences <= most_offences_ && block.until <= kLongest);
    state[at_] = static_cast<std::uint64_t>(block.until);
    state[at_ + 1] = block.offences;
  }

  /// When an id expires that would expire at `expires` without its block.
  Micros Expires(const Block& block, Micros expires) const {
    if (!HasBlocks()) return expires;
    assert(block.until >= kLongAgo && block.until <= kLongest);
    return std::max(expires, block.until + longest_interval_);
  }

 private:
  bool HasBlocks() const { return !std::is_same_v<P, SingleWindowPolicy> && most_offences_ > 0; }

  std::size_t at_;
  Micros longest_interval_;
  std::uint64_t most_offences_;
};

}  // namespace rollgate::shared
