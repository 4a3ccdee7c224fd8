// A small open-addressing table: the unit in which the whole table grows and moves.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define ROLLGATE_HAS_SSE2 1
#endif

#include "core/identity.h"
#include "core/time.h"
#include "memory/slot.h"

namespace rollgate::memory {

inline constexpr std::uint32_t kSlotsPerGroup = 14;

/// Eight bits of an id's hash, not 0, which marks a free slot.
using Tag = std::uint8_t;
inline Tag TagOf(std::uint64_t hash) {
  const auto low = static_cast<Tag>(hash);
  return static_cast<Tag>(low + (low == 0));
}

/// The header of the slots of a group: finds an id among them with one comparison.
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

inline constexpr std::size_t kLine = 64;

/// Prefetches a cache line to read and write.
inline void PrefetchLine(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1);
  // Without a visible effect, GCC 12 drops functions that only prefetch.
  asm volatile("" : : "r"(address));
#else
  static_cast<void>(address);
#endif
}

struct SlotLayout {
  std::size_t slot_bytes;
  std::size_t group_bytes;  ///< all slots of a group

  explicit SlotLayout(std::size_t payload_bytes)
      : slot_bytes(sizeof(Slot) + payload_bytes), group_bytes(kSlotsPerGroup * slot_bytes) {}
};

/// The location of an id. Valid until the table next inserts or erases.
struct Place {
  class Chunk* chunk = nullptr;
  Slot* slot = nullptr;
  std::uint32_t group = 0;
  std::uint32_t index = 0;
  bool in_draining = false;  ///< set by Table

  explicit operator bool() const { return slot != nullptr; }
};

/// Groups in a ring: an id whose home group is full goes to the next one with a free slot. `home`
/// is the high half of Share::rest and decides the home group.
///
/// All headers come before all slots. So the headers of a million ids fit into caches, and a slot
/// can be prefetched while its header is compared.
class Chunk {
 public:
  Chunk() = default;
  Chunk(const SlotLayout& layout, std::uint32_t group_count);

  bool exists() const { return group_count_ != 0; }
  std::uint32_t live() const { return live_; }
  std::uint32_t group_count() const { return group_count_; }
  std::uint32_t slot_count() const { return group_count_ * kSlotsPerGroup; }
  std::size_t bytes(const SlotLayout& layout) const {
    return group_count_ * (sizeof(GroupHeader) + layout.group_bytes + sizeof(Micros));
  }

  Place Find(const SlotLayout& layout, const Identity& identity, Tag tag, std::uint32_t home) {
    const std::uint32_t home_group = HomeGroup(home);
    std::uint32_t group = home_group;
    do {
      const GroupHeader& header = Header(group);
      for (std::uint32_t match = header.Match(tag); match != 0; match &= match - 1) {
        const auto index = static_cast<std::uint32_t>(std::countr_zero(match));
        Slot* slot = SlotAt(layout, group, index);
        if (slot->Holds(identity)) [[likely]] {
          return {this, slot, group, index, false};
        }
      }
      if (header.passed == 0) break;
      group = Next(group);
    } while (group != home_group);
    return {};
  }

  /// Prefetches what Find will probably read. Worth it outside of the near caches.
  void Prefetch(const SlotLayout& layout, Tag tag, std::uint32_t home) const {
    const std::uint32_t group = HomeGroup(home);
    const auto* slots = reinterpret_cast<const char*>(SlotAt(layout, group, FirstChoice(tag)));
    for (std::size_t i = 0; i < 3; ++i) PrefetchLine(slots + i * kLine);
    PrefetchLine(&Header(group));
  }

  /// Takes a slot; the caller fills all but the moment. Preconditions: one is free, tag != 0.
  Place Insert(const SlotLayout& layout, Tag tag, std::uint32_t home, Micros moment);

  void Erase(const Place& place, std::uint32_t home);

  /// Lowers the bound of the id's group to the id's new moment.
  void LowerBound(const Place& place, Micros moment) {
    assert(place.chunk == this && place.group < group_count_);
    Micros& bound = bounds()[place.group];
    if (moment >= bound) return;
    bound = moment;
    Header(place.group).nearest = static_cast<std::uint8_t>(place.index);
  }

  void TightenGroup(const SlotLayout& layout, std::uint32_t group) {
    bounds()[group] = FindNearest(layout, group);
  }

  /// Keeps the bound of a group exact, if it was, when the moment of an id has risen.
  void KeepTight(const SlotLayout& layout, const Place& place) {
    if (Header(place.group).nearest == place.index) TightenGroup(layout, place.group);
  }

  /// The group with the lowest bound, as of the last call of FindEarliest.
  std::uint32_t earliest() const { return earliest_; }
  /// No id's moment in the group is earlier than this. kNever without ids, if the bound is exact.
  Micros BoundOf(std::uint32_t group) const { return bounds()[group]; }

  /// Finds the group with the lowest bound. Returns the bound.
  Micros FindEarliest();

  /// The id whose moment is the group's bound, if there is one.
  Place NearestOf(const SlotLayout& layout, std::uint32_t group);

  /// Prefetches what the search for the id nearest to expiry will probably read.
  void PrefetchEarliest(const SlotLayout& layout) const {
    PrefetchLine(&bounds()[earliest_]);
    PrefetchLine(&Header(earliest_));
    const auto* slots = reinterpret_cast<const char*>(SlotAt(layout, earliest_, 0));
    for (std::size_t i = 0; i < layout.group_bytes; i += kLine) PrefetchLine(slots + i);
  }

  /// Calls visit(place) for each id of a group; visit may erase it.
  template <class Visit>
  void VisitGroup(const SlotLayout& layout, std::uint32_t group, Visit visit) {
    for (std::uint32_t taken = Header(group).Taken(); taken != 0; taken &= taken - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(taken));
      visit(Place{this, SlotAt(layout, group, index), group, index, false});
    }
  }

 private:
  struct AlignedDelete {
    void operator()(std::byte* bytes) const;
  };

  /// The slot that an id prefers in its home group, so a search reads a few cache lines.
  static std::uint32_t FirstChoice(Tag tag) { return std::uint32_t{tag} * kSlotsPerGroup >> 8; }

  /// Finds a group's id nearest to expiry. Returns its moment, kNever if the group is empty.
  Micros FindNearest(const SlotLayout& layout, std::uint32_t group);

  std::uint32_t HomeGroup(std::uint32_t home) const {
    return static_cast<std::uint32_t>(std::uint64_t{home} * group_count_ >> 32);
  }
  std::uint32_t Next(std::uint32_t group) const {
    return group + 1 == group_count_ ? 0 : group + 1;
  }
  GroupHeader* headers() const { return reinterpret_cast<GroupHeader*>(bytes_.get()); }
  GroupHeader& Header(std::uint32_t group) const {
    assert(group < group_count_);
    return headers()[group];
  }

  /// For each group, a moment no later than its ids'. Made exact only when the earliest is needed.
  Micros* bounds() const { return reinterpret_cast<Micros*>(headers() + group_count_); }

  Slot* SlotAt(const SlotLayout& layout, std::uint32_t group, std::uint32_t index) const {
    assert(group < group_count_ && index < kSlotsPerGroup);
    auto* const slots = reinterpret_cast<std::byte*>(bounds() + group_count_);
    return reinterpret_cast<Slot*>(slots + group * layout.group_bytes + index * layout.slot_bytes);
  }

  /// Headers, bounds, slots. No other members: the chunks of a million ids fit into caches.
  std::unique_ptr<std::byte[], AlignedDelete> bytes_;
  std::uint32_t live_ = 0;
  std::uint16_t group_count_ = 0;  // hashes would have to be very uneven for more
  std::uint16_t earliest_ = 0;
};
static_assert(sizeof(void*) != 8 || sizeof(Chunk) == 16, "a search for any id reads one");
static_assert(sizeof(GroupHeader) % alignof(Micros) == 0, "bounds follow the headers");

}  // namespace rollgate::memory
