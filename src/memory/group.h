// Fourteen slots and the header that finds an id among them with one comparison.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define ROLLGATE_HAS_SSE2 1
#endif

#include "core/time.h"

namespace rollgate::memory {

inline constexpr std::uint32_t kSlotsPerGroup = 14;

/// An id's moment is what its expiry is counted from: its newest action, or whatever its store
/// sets. This is later than any: the moment of nobody.
inline constexpr Micros kNever = std::numeric_limits<Micros>::max();

/// Eight bits of an id's hash; 0 marks a free slot.
using Tag = std::uint8_t;
inline Tag TagOf(std::uint64_t hash) {
  const auto low = static_cast<Tag>(hash);
  return static_cast<Tag>(low + (low == 0));
}

struct GroupHeader {
  std::array<Tag, kSlotsPerGroup> tags;
  /// How many ids found this group full and live in a later one; a search goes on while it is not
  /// 0. Once at kManyPassed it stays there: searches go further than they must, but none is wrong.
  std::uint8_t passed;
  /// The slot whose moment is the earliest of the group; meaningless in an empty group.
  std::uint8_t nearest;
  /// The moment of each id, kNever in free slots.
  std::array<Micros, kSlotsPerGroup> moment;

  static constexpr std::uint8_t kManyPassed = 255;

  /// A bit for each slot with this tag.
  std::uint32_t Match(Tag tag) const {
    constexpr std::uint32_t kSlotBits = (1u << kSlotsPerGroup) - 1;
#if ROLLGATE_HAS_SSE2
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    const __m128i equal = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & kSlotBits;
#else
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < kSlotsPerGroup; ++i) bits |= std::uint32_t{tags[i] == tag} << i;
    return bits & kSlotBits;
#endif
  }

  std::uint32_t Free() const {
    return Match(0);
  }
  std::uint32_t Taken() const {
    return Match(0) ^ ((1u << kSlotsPerGroup) - 1);
  }

  /// Finds `nearest` anew; returns its moment, or kNever in an empty group.
  Micros FindNearest() {
    // Always all slots, for how many are taken is hard to guess; but one alone is common.
    const std::uint32_t taken = Taken();
    std::uint8_t found = static_cast<std::uint8_t>(std::countr_zero(taken) & 15);
    Micros earliest = taken == 0 ? kNever : moment[found];
    if ((taken & (taken - 1)) != 0) {
      for (std::uint8_t i = 0; i < kSlotsPerGroup; ++i) {
        const bool is_earlier = moment[i] < earliest;
        earliest = is_earlier ? moment[i] : earliest;
        found = is_earlier ? i : found;
      }
    }
    // A byte written here would delay the next Match, which reads all sixteen at once.
    if (found != nearest) nearest = found;
    return earliest;
  }
};

static_assert(sizeof(GroupHeader) == 128, "two cache lines that are fetched together");

}  // namespace rollgate::memory
