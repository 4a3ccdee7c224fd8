// The header of fourteen slots: finds an id among them with one comparison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define ROLLGATE_HAS_SSE2 1
#endif

namespace rollgate::memory {

inline constexpr std::uint32_t kSlotsPerGroup = 14;

/// Eight bits of an id's hash, not 0, which marks a free slot.
using Tag = std::uint8_t;
inline Tag TagOf(std::uint64_t hash) {
  const auto low = static_cast<Tag>(hash);
  return static_cast<Tag>(low + (low == 0));
}

struct alignas(16) GroupHeader {
  std::array<Tag, kSlotsPerGroup> tags;
  /// How many ids found this group full and live in a later one; a search goes on while it is not
  /// 0. It saturates at kManyPassed: searches then go further than needed.
  std::uint8_t passed;
  /// The slot with the earliest moment, as of the last search or a later LowerBound.
  std::uint8_t nearest;

  static constexpr std::uint8_t kManyPassed = 255;

  /// A bit for each slot with this tag, at the slot's index.
  std::uint32_t Match(Tag tag) const {
    constexpr std::uint32_t kSlotBits = (1u << kSlotsPerGroup) - 1;
#if ROLLGATE_HAS_SSE2
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    // Four tags in a word: GCC may pass a single byte over the stack and stall.
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(tag * 0x01010101u));
    const __m128i equal = _mm_cmpeq_epi8(all, wanted);
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
};

static_assert(sizeof(GroupHeader) == 16 && offsetof(GroupHeader, tags) == 0,
              "one comparison takes the header, tags first");
static_assert(kSlotsPerGroup <= 14, "a group's tags and two bytes fill the header");

}  // namespace rollgate::memory
