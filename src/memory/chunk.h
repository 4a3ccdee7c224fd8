// A small open-addressing table of its own: the piece in which the whole table grows and moves.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/identity.h"
#include "core/time.h"
#include "memory/group.h"
#include "memory/slot.h"

namespace rollgate::memory {

inline constexpr std::size_t kLine = 64;

/// Asks for a cache line that is about to be read and written.
inline void PrefetchLine(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1);
  // Without an effect that it can see, GCC 12 takes whole functions of prefetches for nothing.
  asm volatile("" : : "r"(address));
#else
  static_cast<void>(address);
#endif
}

/// Sizes that depend on the policy alone.
struct SlotLayout {
  std::size_t slot_bytes;
  std::size_t group_bytes;  ///< of a group's slots

  explicit SlotLayout(std::size_t payload_bytes)
      : slot_bytes(sizeof(Slot) + payload_bytes), group_bytes(kSlotsPerGroup * slot_bytes) {}
};

/// Where an id was found. Valid until the table next inserts or erases.
struct Place {
  class Chunk* chunk = nullptr;
  Slot* slot = nullptr;
  std::uint32_t group = 0;
  std::uint32_t index = 0;
  bool in_draining = false;  ///< the table's: which of its two sub-tables

  explicit operator bool() const { return slot != nullptr; }
};

/// Groups in a row; an id that finds its home group full goes to the next one, and after the last
/// comes the first. `home` is the high half of what ShareOf leaves: it places an id in order.
///
/// All headers come first and all slots last: so the headers of a million ids are near enough to
/// each other to stay in caches, and a slot is asked for while its header tells whether it is it.
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

  /// Asks for all that Find will probably want at once. Worth it where it is not in a near cache.
  void Prefetch(const SlotLayout& layout, Tag tag, std::uint32_t home) const {
    const std::uint32_t group = HomeGroup(home);
    const auto* slots = reinterpret_cast<const char*>(SlotAt(layout, group, FirstChoice(tag)));
    for (std::size_t i = 0; i < 3; ++i) PrefetchLine(slots + i * kLine);
    PrefetchLine(&Header(group));
  }

  /// Asks for all slots of a group.
  void PrefetchGroup(const SlotLayout& layout, std::uint32_t group) const {
    const auto* slots = reinterpret_cast<const char*>(SlotAt(layout, group, 0));
    for (std::size_t i = 0; i < layout.group_bytes; i += kLine) PrefetchLine(slots + i);
  }

  /// Takes a free slot; all its bytes but the moment are the caller's to fill. Precondition: there
  /// is a free slot.
  Place Insert(const SlotLayout& layout, Tag tag, std::uint32_t home, Micros moment);

  /// Frees a slot of this chunk.
  void Erase(const Place& place, std::uint32_t home);

  /// Takes note that the moment of an id is now this, which may be earlier than it was.
  void LowerBound(const Place& place, Micros moment) {
    Micros& bound = bounds()[place.group];
    if (moment >= bound) return;
    bound = moment;
    Header(place.group).nearest = static_cast<std::uint8_t>(place.index);
  }

  /// Makes the bound of a group exact.
  void TightenGroup(const SlotLayout& layout, std::uint32_t group) {
    bounds()[group] = FindNearest(layout, group);
  }

  /// Keeps the bound of a group exact, if it was, now that the moment of an id is later.
  void KeepTight(const SlotLayout& layout, const Place& place) {
    if (Header(place.group).nearest == place.index) TightenGroup(layout, place.group);
  }

  /// The id nearest to expiry, found by making bounds of groups exact, from the least on. None
  /// without ids, or if more than `looks` groups would have to be looked through; counts those
  /// down.
  Place Nearest(const SlotLayout& layout, std::size_t& looks);

  /// No id's moment is earlier than this; kNever without ids, unless that has yet to be found out.
  Micros EarliestBound() const;

  /// Calls visit(place) for each id of a group; visit may erase that id.
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

  /// The slot of its home group that an id takes if it is free, or else the next that is: so it is
  /// among a few that lie together.
  static std::uint32_t FirstChoice(Tag tag) { return std::uint32_t{tag} * kSlotsPerGroup >> 8; }

  /// Looks through a group for its id nearest to expiry; returns that one's moment, kNever if the
  /// group is empty.
  Micros FindNearest(const SlotLayout& layout, std::uint32_t group);

  std::uint32_t HomeGroup(std::uint32_t home) const {
    return static_cast<std::uint32_t>(std::uint64_t{home} * group_count_ >> 32);
  }
  std::uint32_t Next(std::uint32_t group) const {
    return group + 1 == group_count_ ? 0 : group + 1;
  }
  GroupHeader* headers() const { return reinterpret_cast<GroupHeader*>(bytes_.get()); }
  GroupHeader& Header(std::uint32_t group) const { return headers()[group]; }

  /// For each group a moment no later than that of any id in it. It may lag behind what ids do, and
  /// is made exact when the earliest is wanted.
  Micros* bounds() const { return reinterpret_cast<Micros*>(headers() + group_count_); }

  Slot* SlotAt(const SlotLayout& layout, std::uint32_t group, std::uint32_t index) const {
    auto* const slots = reinterpret_cast<std::byte*>(bounds() + group_count_);
    return reinterpret_cast<Slot*>(slots + group * layout.group_bytes + index * layout.slot_bytes);
  }

  /// Of all groups the headers, then the bounds, then the slots. Nothing but this and two numbers,
  /// for the chunks of a million ids should be near, too.
  std::unique_ptr<std::byte[], AlignedDelete> bytes_;
  std::uint32_t group_count_ = 0;
  std::uint32_t live_ = 0;
};

}  // namespace rollgate::memory
