// A small open-addressing table of its own: the piece in which the whole table grows and moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/identity.h"
#include "core/time.h"
#include "memory/group.h"
#include "memory/slot.h"

namespace rollgate::memory {

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
  std::size_t group_bytes;

  explicit SlotLayout(std::size_t payload_bytes)
      : slot_bytes(sizeof(Slot) + payload_bytes),
        group_bytes((sizeof(GroupHeader) + kSlotsPerGroup * slot_bytes + 15) / 16 * 16) {}
};

/// Where an id was found. Valid until the table next inserts or erases.
struct Place {
  class Chunk* chunk = nullptr;
  GroupHeader* header = nullptr;
  Slot* slot = nullptr;
  std::uint32_t group = 0;
  std::uint32_t index = 0;
  bool in_draining = false;  ///< the table's: which of its two generations

  explicit operator bool() const { return slot != nullptr; }
  Micros moment() const { return header->moment[index]; }
};

/// Groups in a row; an id that finds its home group full goes to the next one, and after the last
/// comes the first. `home` is the high half of what ShareOf leaves: it places an id in order.
class Chunk {
 public:
  Chunk() = default;
  Chunk(const SlotLayout& layout, std::uint32_t group_count);

  bool exists() const { return group_count_ != 0; }
  std::uint32_t live() const { return live_; }
  std::uint32_t group_count() const { return group_count_; }
  std::uint32_t slot_count() const { return group_count_ * kSlotsPerGroup; }
  std::size_t bytes(const SlotLayout& layout) const {
    return group_count_ * (layout.group_bytes + sizeof(Micros));
  }

  Place Find(const SlotLayout& layout, const Identity& identity, Tag tag, std::uint32_t home) {
    const std::uint32_t home_group = HomeGroup(home);
    std::uint32_t group = home_group;
    do {
      GroupHeader* header = Header(layout, group);
      for (std::uint32_t match = header->Match(tag); match != 0; match &= match - 1) {
        const auto index = static_cast<std::uint32_t>(std::countr_zero(match));
        Slot* slot = SlotAt(layout, header, index);
        if (slot->Holds(identity)) [[likely]] {
          return {this, header, slot, group, index, false};
        }
      }
      if (header->passed == 0) break;
      group = Next(group);
    } while (group != home_group);
    return {};
  }

  /// Asks for all that Find will probably want at once. Worth it where it is not in a near cache.
  void Prefetch(const SlotLayout& layout, Tag tag, std::uint32_t home) const {
    GroupHeader* header = Header(layout, HomeGroup(home));
    PrefetchLine(header);
    PrefetchLine(reinterpret_cast<const char*>(header) + sizeof(GroupHeader) / 2);
    for (const std::uint32_t index : {FirstChoice(tag), SecondChoice(tag)}) {
      const auto* slot = reinterpret_cast<const char*>(SlotAt(layout, header, index));
      PrefetchLine(slot);
      PrefetchLine(slot + layout.slot_bytes - 1);
    }
  }

  /// Takes a free slot; its bytes are the caller's to fill. Precondition: there is a free slot.
  Place Insert(const SlotLayout& layout, Tag tag, std::uint32_t home, Micros moment);

  /// Frees a slot of this chunk.
  void Erase(const SlotLayout& layout, const Place& place, std::uint32_t home);

  /// Changes an id's moment.
  void Touch(const Place& place, Micros moment) {
    place.header->moment[place.index] = moment;
    if (place.index == place.header->nearest) {
      earliest_[place.group] = place.header->FindNearest();
    } else if (moment < earliest_[place.group]) {
      place.header->nearest = static_cast<std::uint8_t>(place.index);
      earliest_[place.group] = moment;
    }
  }

  /// The earliest moment of all ids, kNever without ids.
  Micros Earliest() const;

  /// The id nearest to expiry. Precondition: live() > 0.
  Place Nearest(const SlotLayout& layout);

  /// Calls visit(place) for each id of a group; visit may erase that id.
  template <class Visit>
  void VisitGroup(const SlotLayout& layout, std::uint32_t group, Visit visit) {
    GroupHeader* header = Header(layout, group);
    for (std::uint32_t taken = header->Taken(); taken != 0; taken &= taken - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(taken));
      visit(Place{this, header, SlotAt(layout, header, index), group, index, false});
    }
  }

 private:
  struct AlignedDelete {
    void operator()(std::byte* bytes) const;
  };

  /// The two slots of its home group between which an id takes the first that is free, if one is:
  /// they come from memory at the same time as the header that tells which is the right one.
  static std::uint32_t FirstChoice(Tag tag) { return std::uint32_t{tag} * kSlotsPerGroup >> 8; }
  static std::uint32_t SecondChoice(Tag tag) {
    return (std::uint32_t{tag} * 7 & 0xff) * kSlotsPerGroup >> 8;
  }

  std::uint32_t HomeGroup(std::uint32_t home) const {
    return static_cast<std::uint32_t>(std::uint64_t{home} * group_count_ >> 32);
  }
  std::uint32_t Next(std::uint32_t group) const {
    return group + 1 == group_count_ ? 0 : group + 1;
  }
  GroupHeader* Header(const SlotLayout& layout, std::uint32_t group) const {
    return reinterpret_cast<GroupHeader*>(groups_.get() + group * layout.group_bytes);
  }
  static Slot* SlotAt(const SlotLayout& layout, GroupHeader* header, std::uint32_t index) {
    return reinterpret_cast<Slot*>(reinterpret_cast<std::byte*>(header + 1) +
                                   index * layout.slot_bytes);
  }

  std::unique_ptr<std::byte[], AlignedDelete> groups_;
  Micros* earliest_ = nullptr;  // of each group; behind the groups in the same allocation
  std::uint32_t group_count_ = 0;
  std::uint32_t live_ = 0;
};

}  // namespace rollgate::memory
